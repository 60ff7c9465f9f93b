//! Checks whether a command may run.

use tamis_commands::{Argv, Command, Flag, Handler, InMulti, WriteKeys, text};
use tamis_resp::Reply;

use crate::config::Config;
use crate::session::Session;
use crate::session::chunk_pacing::most_items;
use crate::session::subcommand::check_subcommand;
use crate::system::clock::now_millis;
use crate::system::held_memory::Hold;
use crate::users::{AclLogEntry, Denied};

/// The memory of a new key in addition to its bytes and its value, with a margin.
const KEY_BYTES: u64 = 256;

/// An upper bound of the bytes that the log needs for a word of a command, in addition to the bytes
/// of the word.
pub(crate) const WORD_BYTES: u64 = 32;

/// Returns an upper bound of the bytes that a command writes to the log. The log contains the words
/// of the command, or the hashes of its items. If the command creates a filter, the log contains
/// the parameters and the key of the filter.
///
/// The bound does not include the value that `RESTORE` logs, because the size of the value is
/// unknown until the payload is decoded.
pub(crate) fn logged_bytes(command: &Command, argv: Argv<'_>) -> u64 {
    let argv = match command.handler {
        Handler::WriteKeys(WriteKeys::Restore) => &argv[..2],
        _ => argv,
    };
    let key_bytes = argv.get(1).map_or(0, |key| key.len() as u64);
    // A long command is logged in chunks. Each chunk in the log contains the key.
    let chunks = match command.first_item(argv) {
        Some(first) => (argv.len() - first).div_ceil(most_items(command)) as u64,
        None => 0,
    };
    let words = argv.iter().map(|word| word.len() as u64 + WORD_BYTES).sum::<u64>();
    512 + words + (1 + chunks) * key_bytes
}

impl Session {
    /// Checks whether a command may run. Returns a reservation of disk space for the change of the
    /// command. The caller keeps the reservation until the change is logged. Returns `None` if
    /// there is no log or no change.
    ///
    /// # Errors
    ///
    /// Returns the error reply if the command may not run now.
    pub fn check(
        &mut self,
        command: &'static Command,
        argv: Argv<'_>,
        config: &Config,
    ) -> Result<Option<Hold>, Reply> {
        self.refresh_user()?;
        if !command.takes(argv.len()) {
            return Err(text::wrong_arity(command.name));
        }
        if !self.is_authenticated && !command.has(Flag::NoAuth) {
            return Err(Reply::error(text::acl::NO_AUTH));
        }
        if let Err(refusal) = self.user.check(command, argv) {
            self.log_refusal(&refusal);
            return Err(match refusal {
                Denied::Command(name) => text::acl::no_command(&self.user.name, &name),
                Denied::Key(_) => Reply::error(text::acl::NO_KEY),
            });
        }
        check_subcommand(command, argv)?;
        // A command that is queued for `EXEC` does not change data before `EXEC`.
        let bytes = if self.transaction.is_some() { 0 } else { logged_bytes(command, argv) };
        let admitted = self.check_change(command, bytes, config).map_err(Reply::error)?;
        if command.has(Flag::DenyOom) && config.max_memory_bytes != 0 {
            // The sum is an upper bound: the key may be new, and a string or an item takes at most
            // as much memory as its argument.
            let bytes = KEY_BYTES + argv.iter().map(|word| word.len() as u64).sum::<u64>();
            if self.server.used_memory() + bytes > config.max_memory_bytes {
                return Err(Reply::error(text::server::MEMORY));
            }
        }
        if self.transaction.is_some() && command.in_multi == InMulti::Refused {
            return Err(Reply::error(text::server::NOT_IN_MULTI));
        }
        Ok(admitted)
    }

    /// Records in `ACL LOG` a command or key for which the user has no permission.
    pub fn log_refusal(&self, refusal: &Denied) {
        let (reason, object) = match refusal {
            Denied::Command(name) => ("command", name.as_bytes()),
            Denied::Key(key) => ("key", key.as_slice()),
        };
        self.log_refused(reason, object, &self.user.name);
    }

    /// Records a refusal in `ACL LOG`: the reason, the object and the user.
    pub fn log_refused(&self, reason: &'static str, object: &[u8], user: &[u8]) {
        let now = now_millis();
        let refused = AclLogEntry {
            number: 0,
            count: 0,
            reason,
            context: if self.transaction.is_some() { "multi" } else { "toplevel" },
            object: object[..object.len().min(AclLogEntry::KEPT_BYTES)].to_vec(),
            user: user[..user.len().min(AclLogEntry::KEPT_BYTES)].to_vec(),
            client: self.client.line(now).trim_end().to_owned(),
            created_millis: now,
            updated_millis: now,
        };
        self.server.users.log.push(refused, self.server.config().max_refusals);
    }

    /// Returns a reservation of disk space for a change that takes at most `bytes` bytes in the
    /// log. The caller keeps the reservation until the change is logged.
    ///
    /// # Errors
    ///
    /// Returns the reason why the command may not change a value now.
    pub fn check_change(
        &self,
        command: &Command,
        bytes: u64,
        config: &Config,
    ) -> Result<Option<Hold>, String> {
        if command.has(Flag::DenyOom)
            && config.max_memory_bytes != 0
            && self.server.used_memory() > config.max_memory_bytes
        {
            return Err(text::server::MEMORY.to_owned());
        }
        if command.may_change() { self.server.admit_change(bytes) } else { Ok(None) }
    }
}
