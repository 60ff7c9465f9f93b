//! The replies of a connection to commands that may have changed a value. The replies are valid
//! only after the log is written.

use std::ops::Range;

use tamis_commands::text::server;
use tamis_resp::{Protocol, Reply};

/// The byte ranges of the replies in the output, in order. Each range has its number of commands.
#[derive(Debug, Default)]
pub(crate) struct ChangeReplies(Vec<(Range<usize>, usize)>);

impl ChangeReplies {
    /// Records that the bytes `range` of the output contain the replies to `commands` commands.
    pub fn push(&mut self, range: Range<usize>, commands: usize) {
        match self.0.last_mut() {
            Some((last, count)) if last.end == range.start => {
                last.end = range.end;
                *count += commands;
            }
            _ => self.0.push((range, commands)),
        }
    }

    /// Tests whether no replies are recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all ranges. The caller has sent the replies.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Replaces each recorded reply by an error, because the log could not be written after the
    /// changes were applied. The changes exist in memory, but may be missing after a restart.
    pub fn replace_by_error(&mut self, why: &str, protocol: Protocol, output: &mut Vec<u8>) {
        let mut error = Vec::new();
        Reply::error(server::uncertain(why)).encode(protocol, &mut error);
        let before = std::mem::take(output);
        let mut at = 0;
        for (range, commands) in self.0.drain(..) {
            output.extend_from_slice(&before[at..range.start]);
            (0..commands).for_each(|_| output.extend_from_slice(&error));
            at = range.end;
        }
        output.extend_from_slice(&before[at..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replies_to_changes_become_errors() {
        let mut replies = ChangeReplies::default();
        let mut output = b"+PONG\r\n:1\r\n:0\r\n$1\r\na\r\n:7\r\n".to_vec();
        replies.push(7..11, 1);
        replies.push(11..15, 1);
        replies.push(22..26, 1);
        replies.replace_by_error("full", Protocol::Resp2, &mut output);
        let error = format!("-{}\r\n", server::uncertain("full"));
        let expected = format!("+PONG\r\n{error}{error}$1\r\na\r\n{error}");
        assert_eq!(String::from_utf8(output).unwrap(), expected);
        assert!(replies.is_empty());
    }
}
