//! The slow log: the latest slow commands.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tamis_commands::{Argv, Secrets, find};

use crate::config::Config;
use crate::connection::clients::Client;
use crate::system::clock::since_1970;

/// The entries of `SLOWLOG`.
#[derive(Debug, Default)]
pub(crate) struct SlowLog(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// The entries, oldest first.
    entries: VecDeque<SlowCommand>,
    next_id: u64,
}

/// A slow command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlowCommand {
    pub id: u64,
    /// The time at which the command ended, in seconds since 1970.
    pub seconds: u64,
    pub micros: u64,
    /// The truncated arguments, without passwords.
    pub argv: Vec<Vec<u8>>,
    pub address: String,
    pub client: String,
}

impl SlowLog {
    /// Records consecutive commands that each took the time `each`. The log keeps the last `most`
    /// entries.
    pub fn push(&self, client: &Client, commands: &[Argv<'_>], each: Duration, most: usize) {
        let (address, name) = (client.peer.to_string(), client.properties.lock().name.clone());
        let mut log = self.0.lock();
        // Skip the first commands if the log would immediately remove their entries.
        let skipped = commands.len().saturating_sub(most);
        log.next_id += skipped as u64;
        for argv in &commands[skipped..] {
            let entry = SlowCommand {
                id: log.next_id,
                seconds: since_1970().as_secs(),
                micros: u64::try_from(each.as_micros()).unwrap_or(u64::MAX),
                argv: shown(argv),
                address: address.clone(),
                client: name.clone(),
            };
            log.next_id += 1;
            log.entries.push_back(entry);
        }
        log.truncate(most);
    }

    /// Removes all entries except the last `most` entries. Returns at most `count` entries, newest
    /// first.
    pub fn latest(&self, count: usize, most: usize) -> Vec<SlowCommand> {
        let mut log = self.0.lock();
        log.truncate(most);
        log.entries.iter().rev().take(count).cloned().collect()
    }

    /// Removes all entries except the last `most` entries. Returns the number of the entries that
    /// remain.
    pub fn len(&self, most: usize) -> usize {
        let mut log = self.0.lock();
        log.truncate(most);
        log.entries.len()
    }

    /// Counts all slow commands since the server started, including entries that were removed.
    pub fn ever(&self) -> u64 {
        self.0.lock().next_id
    }

    /// Removes all entries of the slow log.
    pub fn reset(&self) {
        self.0.lock().entries.clear();
    }
}

impl Entries {
    fn truncate(&mut self, most: usize) {
        self.entries.drain(..self.entries.len().saturating_sub(most));
    }
}

/// The maximum number of arguments in an entry. The last argument states how many arguments are
/// omitted.
const MAX_WORDS: usize = 32;

/// The maximum length of an argument in an entry, in bytes.
const MAX_WORD_BYTES: usize = 128;

/// Truncates the arguments of a command in the same way as Redis, and hides secrets.
pub(crate) fn shown(argv: Argv<'_>) -> Vec<Vec<u8>> {
    let is_secret = secrets(argv);
    let kept = if argv.len() > MAX_WORDS { MAX_WORDS - 1 } else { argv.len() };
    let show = |(i, word): (usize, &&[u8])| {
        if is_secret(i) {
            return b"(redacted)".to_vec();
        }
        let (start, rest) = word.split_at(word.len().min(MAX_WORD_BYTES));
        let mut start = start.to_vec();
        if !rest.is_empty() {
            start.extend_from_slice(format!("... ({} more bytes)", rest.len()).as_bytes());
        }
        start
    };
    let mut shown: Vec<Vec<u8>> = argv[..kept].iter().enumerate().map(show).collect();
    if kept < argv.len() {
        shown.push(format!("... ({} more arguments)", argv.len() - kept).into_bytes());
    }
    shown
}

/// Returns a function that tests whether the argument at an index is secret.
fn secrets(argv: Argv<'_>) -> impl Fn(usize) -> bool + '_ {
    let is = |i: usize, name: &str| {
        argv.get(i).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
    };
    let secrets = argv.first().and_then(|name| find(name)).map_or(Secrets::None, |it| it.secrets);
    let option = match secrets {
        Secrets::TwoBehind(name) => (1..argv.len()).find(|&i| is(i, name)),
        _ => None,
    };
    move |i| match secrets {
        Secrets::None => false,
        Secrets::All => i > 0,
        Secrets::TwoBehind(_) => option.is_some_and(|at| i > at && i <= at + 2),
        Secrets::OfSubcommands(names) => i > 1 && names.iter().any(|name| is(1, name)),
        Secrets::OptionValues(subcommand) => {
            i > 2 && is(1, subcommand) && Config::is_secret(argv[i - 1])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::clients::Clients;

    fn texts(argv: &[&[u8]]) -> Vec<String> {
        let text = |word: Vec<u8>| String::from_utf8(word).unwrap();
        shown(argv).into_iter().map(text).collect()
    }

    #[test]
    fn arguments_are_truncated_and_secrets_hidden() {
        let long = [b'x'; 200];
        let mut argv: Vec<&[u8]> = vec![b"BF.MADD", &long];
        argv.resize(32, b"a");
        let all = texts(&argv);
        assert_eq!(
            (all.len(), &all[1][..]),
            (32, &*format!("{}... (72 more bytes)", "x".repeat(128)))
        );
        argv.resize(40, b"a");
        let truncate = texts(&argv);
        assert_eq!((truncate.len(), &truncate[31][..]), (32, "... (9 more arguments)"));
        for (argv, expected) in [
            ("auth pw", "auth (redacted)"),
            ("AUTH user pw more", "AUTH (redacted) (redacted) (redacted)"),
            ("AUTH", "AUTH"),
            ("hello 3 auth a b setname c", "hello 3 auth (redacted) (redacted) setname c"),
            ("HELLO 3 AUTH pw", "HELLO 3 AUTH (redacted)"),
            ("HELLO AUTH AUTH AUTH", "HELLO AUTH (redacted) (redacted)"),
            ("ACL SETUSER a >pw on", "ACL SETUSER (redacted) (redacted) (redacted)"),
            ("acl whoami", "acl whoami"),
            (
                "CONFIG SET maxclients 3 RequirePass pw port 1",
                "CONFIG SET maxclients 3 RequirePass (redacted) port 1",
            ),
            ("CONFIG GET requirepass", "CONFIG GET requirepass"),
            ("CONFIG SET requirepass", "CONFIG SET requirepass"),
            ("CONFIG SET Hash-Key 0123 maxmemory 0", "CONFIG SET Hash-Key (redacted) maxmemory 0"),
        ] {
            let argv: Vec<&[u8]> = argv.split(' ').map(str::as_bytes).collect();
            assert_eq!(texts(&argv).join(" "), expected);
        }
    }

    #[test]
    fn the_latest_entries_are_kept_and_ids_increase() {
        let (log, clients) = (SlowLog::default(), Clients::default());
        let address = "127.0.0.1:1".parse().unwrap();
        let connected = clients.add(address, address, 0);
        let client = &connected.client;
        let ids = |count, most| -> Vec<u64> {
            log.latest(count, most).iter().map(|entry| entry.id).collect()
        };
        let commands: Vec<Argv<'_>> = vec![&[b"PING"]; 10];
        log.push(client, &commands, Duration::from_micros(5), 4);
        assert_eq!(ids(10, 4), [9, 8, 7, 6]);
        log.push(client, &commands[..1], Duration::from_micros(5), 4);
        assert_eq!((ids(2, 4), ids(9, 1)), (vec![10, 9], vec![10]));
        log.reset();
        log.push(client, &commands[..1], Duration::from_micros(5), 4);
        assert_eq!(ids(9, 4), [11]);
        log.push(client, &commands, Duration::MAX, 0);
        assert_eq!(ids(9, 4), [0; 0]);
        assert_eq!(log.ever(), 22);
    }
}
