//! The expiry times of keys: `EXPIRE`, `PERSIST`, `TTL` and similar commands.

use tamis_commands::text::server;
use tamis_commands::{Argv, Env, TimeUnit, parse_integer, text};
use tamis_resp::Reply;

use crate::keyspace::{ExclusiveAccess, KeyspaceRef};
use crate::session::write_keys::outcome::{WriteResult, count_changes};

/// Sets the expiry time of a key. The time argument of the command is relative to `start_millis`,
/// in milliseconds since 1970.
pub(super) fn expire(
    unit: TimeUnit,
    start_millis: i64,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
) -> WriteResult {
    let at = expire_at(unit, start_millis, argv)?;
    let rules = ExpireRules::parse(&argv[3..])?;
    let set = |expires: &mut Option<u64>| {
        let is_allowed = rules.allow(*expires, at);
        if is_allowed {
            *expires = Some(at);
        }
        is_allowed
    };
    let is_set = keys.expiry(argv[1], env.now_millis, set).unwrap_or(false);
    count_changes(usize::from(is_set))
}

/// Removes the expiry time of a key.
pub(super) fn persist(key: &[u8], env: &Env<'_>, keys: &ExclusiveAccess<'_>) -> WriteResult {
    let is_done = keys.expiry(key, env.now_millis, |at| at.take().is_some()).unwrap_or(false);
    count_changes(usize::from(is_done))
}

/// Parses the time in the second argument of a command. Returns the time in milliseconds since
/// 1970.
fn expire_at(unit: TimeUnit, start_millis: i64, argv: Argv<'_>) -> Result<u64, Reply> {
    let number = parse_integer(argv[2]).ok_or_else(|| Reply::error(text::NO_INTEGER))?;
    let millis = match unit {
        TimeUnit::Millis => Some(number),
        TimeUnit::Seconds => number.checked_mul(1000),
    };
    let at = millis.and_then(|millis| millis.checked_add(start_millis));
    at.map(|at| at.max(0) as u64).ok_or_else(|| {
        let name = String::from_utf8_lossy(argv[0]).to_ascii_lowercase();
        server::expire_time(&name)
    })
}

/// The conditions under which `EXPIRE` may replace the expiry time of a key.
#[derive(Default)]
struct ExpireRules {
    if_none: bool,
    if_some: bool,
    if_later: bool,
    if_earlier: bool,
}

impl ExpireRules {
    fn parse(options: Argv<'_>) -> Result<Self, Reply> {
        let mut rules = Self::default();
        for option in options {
            match option.to_ascii_uppercase().as_slice() {
                b"NX" => rules.if_none = true,
                b"XX" => rules.if_some = true,
                b"GT" => rules.if_later = true,
                b"LT" => rules.if_earlier = true,
                _ => return Err(server::expire_option(&text::shown(option))),
            }
        }
        if rules.if_none && (rules.if_some || rules.if_later || rules.if_earlier) {
            return Err(Reply::error(server::EXPIRE_NX));
        }
        if rules.if_later && rules.if_earlier {
            return Err(Reply::error(server::EXPIRE_GT_LT));
        }
        Ok(rules)
    }

    /// Tests whether the expiry time may be set. A key without an expiry time is treated as a key
    /// that expires later than any other key.
    fn allow(&self, before: Option<u64>, at: u64) -> bool {
        match before {
            None => !self.if_some && !self.if_later,
            Some(before) => {
                !(self.if_none || self.if_later && at <= before || self.if_earlier && at >= before)
            }
        }
    }
}

/// Returns the time between `start_millis` and the expiry time of a key. Returns -2 if the key does
/// not exist, and -1 if the key has no expiry time.
pub(crate) fn time_until_expiry(
    unit: TimeUnit,
    start_millis: u64,
    key: &[u8],
    env: &Env<'_>,
    keys: &KeyspaceRef<'_>,
) -> Reply {
    Reply::Integer(match keys.expires_millis(key, env.now_millis) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => {
            let millis = at.saturating_sub(start_millis);
            match unit {
                TimeUnit::Millis => millis as i64,
                TimeUnit::Seconds => ((millis + 500) / 1000) as i64,
            }
        }
    })
}
