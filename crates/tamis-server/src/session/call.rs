//! A command that runs.

use tamis_commands::{Argv, Command, Env};

/// A command that runs, with its arguments and its environment.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    pub command: &'static Command,
    pub argv: Argv<'c>,
    pub env: Env<'c>,
}

impl Call<'_> {
    /// Returns the same call at another time, in milliseconds since 1970.
    pub fn at(&self, now_millis: u64) -> Self {
        Self { env: self.env.at(now_millis), ..*self }
    }

    /// Tests whether the command may access a key.
    pub fn may_access(&self, key: &[u8]) -> bool {
        let keys = self.command.keys;
        keys.first == 0 || keys.of(self.argv).any(|own| own == key)
    }
}
