//! Prepares the commands of a transaction before the keys are locked.

use std::ops::Range;

use tamis_commands::{Argv, COMMANDS, Command, find};

/// The number of commands that the task prepares before the task yields to other connections.
pub(super) const TURN_COMMANDS: usize = 4096;

/// The commands of a transaction, looked up in the table before the keys are locked.
pub(super) struct Prepared<'t> {
    pub(super) commands: Vec<(&'static Command, Range<usize>)>,
    argv: Vec<&'t [u8]>,
    /// Each distinct command once, in the order of first use.
    pub(super) distinct: Vec<&'static Command>,
}

impl<'t> Prepared<'t> {
    /// Prepares the queued commands. Yields to other connections repeatedly.
    pub(super) async fn of(queued: &'t [Vec<Vec<u8>>]) -> Self {
        let commands = Vec::with_capacity(queued.len());
        let mut prepared = Self { commands, argv: Vec::new(), distinct: Vec::new() };
        let mut is_known = vec![false; COMMANDS.len()];
        for queued in queued.chunks(TURN_COMMANDS) {
            for argv in queued {
                let command = find(&argv[0]).expect("it was found when it was queued");
                if !std::mem::replace(&mut is_known[command.index()], true) {
                    prepared.distinct.push(command);
                }
                let start = prepared.argv.len();
                prepared.argv.extend(argv.iter().map(Vec::as_slice));
                prepared.commands.push((command, start..prepared.argv.len()));
            }
            if queued.len() == TURN_COMMANDS {
                tokio::task::yield_now().await;
            }
        }
        prepared
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static Command, Argv<'_>)> {
        self.commands.iter().map(|(command, argv)| (*command, &self.argv[argv.clone()]))
    }
}
