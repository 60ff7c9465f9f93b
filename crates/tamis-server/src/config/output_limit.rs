//! `client-output-buffer-limit`: limits the bytes of replies that wait for a client.

use std::fmt;
use std::str::FromStr;

use crate::config::error::OptionValueError;
use crate::config::values::parse_bytes;

/// The limit of unread replies per client. The server disconnects a client whose unread replies
/// exceed the limit.
///
/// The syntax is the same as in Redis: `normal <hard> <soft> <soft seconds>`. A limit of zero bytes
/// means that the limit is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    /// The server disconnects a client immediately if more than this number of reply bytes are
    /// unread. The value 0 disables the hard limit.
    pub hard_bytes: u64,
    /// The server disconnects a client if more than this number of reply bytes are unread for
    /// longer than `soft_seconds`. The value 0 disables the soft limit.
    pub soft_bytes: u64,
    /// The maximum time for which more than `soft_bytes` bytes of replies may be unread, in
    /// seconds.
    pub soft_seconds: u64,
}

impl Default for OutputLimit {
    /// Returns 256 MiB as the hard limit, and no soft limit. Redis has no limit for normal clients.
    fn default() -> Self {
        Self { hard_bytes: 256 << 20, soft_bytes: 0, soft_seconds: 0 }
    }
}

impl fmt::Display for OutputLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hard_bytes, soft_bytes, soft_seconds } = self;
        write!(f, "normal {hard_bytes} {soft_bytes} {soft_seconds}")
    }
}

const INVALID: OptionValueError = OptionValueError("expected 'normal <hard> <soft> <seconds>'");

impl FromStr for OutputLimit {
    type Err = OptionValueError;

    /// Parses Redis's list of client classes. The server has only normal clients. The limits for
    /// replicas and subscribers are checked, but have no effect.
    fn from_str(text: &str) -> Result<Self, OptionValueError> {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        if fields.is_empty() || !fields.len().is_multiple_of(4) {
            return Err(INVALID);
        }
        let mut limit = None;
        for class in fields.chunks_exact(4) {
            let read = OutputLimit {
                hard_bytes: parse_bytes(class[1]).ok_or(INVALID)?,
                soft_bytes: parse_bytes(class[2]).ok_or(INVALID)?,
                soft_seconds: class[3].parse().map_err(|_| INVALID)?,
            };
            match class[0].to_ascii_lowercase().as_str() {
                "normal" => limit = Some(read),
                "slave" | "replica" | "pubsub" => {}
                _ => return Err(INVALID),
            }
        }
        limit.ok_or(INVALID)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed_as_in_redis() {
        let limit = OutputLimit { hard_bytes: 1 << 20, soft_bytes: 1000, soft_seconds: 60 };
        for text in [
            "normal 1mb 1k 60",
            "NORMAL 1048576 1000 60",
            "normal 1mb 1k 60 slave 256mb 64mb 60 pubsub 32mb 8mb 60",
            "replica 0 0 0 normal 1mb 1k 60",
        ] {
            assert_eq!(text.parse(), Ok(limit), "{text}");
        }
        assert_eq!(limit.to_string().parse(), Ok(limit));
        for text in [
            "",
            "normal",
            "normal 1 1",
            "normal 1 1 1 1",
            "normal -1 0 0",
            "normal 1x 0 0",
            "normal 1 0 1s",
            "pubsub 1 1 1",
            "other 1 1 1",
        ] {
            assert_eq!(text.parse::<OutputLimit>(), Err(INVALID), "{text}");
        }
    }
}
