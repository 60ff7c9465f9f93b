//! The keys of a command, and whether the command reads or writes each key.

use crate::command::Command;
use crate::command::argv::{Argv, is};
use crate::command::keys::{Access, KeyOption, Keys};
use crate::command::permission::Permission;

impl Command {
    /// Returns each key in `argv`, with the access of the command to the key.
    ///
    /// An insert into a filter needs write access only, although the reply shows whether the item was new. Redis also
    /// requires only write access for `SADD`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_commands::{Access, find};
    ///
    /// let words: [&[u8]; 4] = [b"TM.MERGE", b"all", b"one", b"two"];
    /// let keys: Vec<_> = find(words[0]).unwrap().keys_of(&words).collect();
    /// assert_eq!(keys[0], (&b"all"[..], Access::WRITE));
    /// assert_eq!(keys[2], (&b"two"[..], Access::READ));
    /// ```
    pub fn keys_of<'w>(&'static self, argv: Argv<'w>) -> impl Iterator<Item = (&'w [u8], Access)> {
        let keys = match self.keys {
            Keys::NONE => Permission::of(self, argv)
                .subcommand
                .map_or(Keys::NONE, |subcommand| subcommand.keys),
            keys => keys,
        };
        let (first, others) = keys.access(argv);
        let of_row = keys.of(argv).enumerate();
        let of_row = of_row.map(move |(i, key)| (key, if i == 0 { first } else { others }));
        of_row.chain(self.like_key(argv).map(|key| (key, Access::READ)))
    }

    /// Returns the source key `other` of `TM.RESERVE key LIKE other`. The new filter gets the parameters of the filter
    /// at the source key.
    #[must_use]
    pub fn like_key<'w>(&self, argv: Argv<'w>) -> Option<&'w [u8]> {
        match (self.keys.option, argv) {
            (KeyOption::SourceAfter(name), [_, _, option, source]) if is(option, name) => {
                Some(source)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Flag;
    use crate::table::{COMMANDS, find};

    #[test]
    fn only_commands_that_change_keys_have_write_access() {
        for command in COMMANDS {
            let (first, others) = command.keys.access(&[]);
            if command.has(Flag::Write) && command.keys != Keys::NONE {
                assert!(first.writes || others.writes, "{}", command.name);
            }
            if command.has(Flag::ReadOnly) {
                assert!(!first.writes && !others.writes, "{}", command.name);
            }
        }
    }

    #[test]
    fn keys_of_subcommands_are_found() {
        let keys = |argv: Argv<'_>| find(argv[0]).unwrap().keys_of(argv).count();
        assert_eq!(keys(&[b"MEMORY", b"usage", b"k"]), 1);
        assert_eq!(keys(&[b"MEMORY", b"usage"]), 0);
        assert_eq!(keys(&[b"MEMORY", b"nothing", b"k"]), 0);
        assert_eq!(keys(&[b"OBJECT", b"ENCODING", b"k"]), 1);
        assert_eq!(keys(&[b"CLIENT", b"SETNAME", b"k"]), 0);
        let reserve: [&[u8]; 4] = [b"TM.RESERVE", b"k", b"like", b"other"];
        let found: Vec<_> = find(reserve[0]).unwrap().keys_of(&reserve).collect();
        assert_eq!(found, [(&b"k"[..], Access::WRITE), (b"other", Access::READ)]);
        let access = |argv: Argv<'_>| find(argv[0]).unwrap().keys_of(argv).next().unwrap().1;
        assert_eq!(access(&[b"SET", b"get", b"get"]), Access::WRITE);
        assert_eq!(access(&[b"SET", b"k", b"v", b"NX", b"get"]), Access::BOTH);
        let words: [&[u8]; 5] = [b"BITOP", b"AND", b"to", b"a", b"b"];
        let found: Vec<_> = find(words[0]).unwrap().keys_of(&words).collect();
        assert_eq!(found.len(), 3);
        assert_eq!((found[0], found[2].1), ((&b"to"[..], Access::WRITE), Access::READ));
    }
}
