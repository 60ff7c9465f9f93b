//! The state of a client connection between commands.

pub(crate) mod checks;
pub(crate) mod chunk_pacing;
mod chunked;
pub(crate) mod decoding;
pub(crate) mod exec;
pub(crate) mod key_commands;
mod login;
pub(crate) mod monitors;
mod run;
pub(crate) mod subcommand;
pub(crate) mod transaction;
pub(crate) mod write_keys;

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tamis_commands::{Argv, Command, Env, Handler, ServerCommand, find};
use tamis_resp::{Protocol, Reply};

use crate::config::Config;
use crate::connection::change_replies::ChangeReplies;
use crate::connection::clients::Client;
use crate::session::chunk_pacing::ChunkPacing;
use crate::session::monitors::Monitoring;
use crate::session::transaction::{Transaction, Watched};
use crate::shared_state::SharedState;
use crate::users::User;

/// A connection's state between commands.
pub(crate) struct Session {
    pub server: Arc<SharedState>,
    pub client: Arc<Client>,
    pub protocol: Protocol,
    pub is_authenticated: bool,
    /// The user that runs the commands. The user is the default user until the connection
    /// authenticates as another user.
    pub user: Arc<User>,
    /// The version of the user list when `user` was looked up.
    users_version: u64,
    pub transaction: Option<Transaction>,
    /// The monitoring of the client, while the client monitors the commands of all other clients
    /// with `MONITOR`.
    pub monitoring: Option<Monitoring>,
    pub watched: Watched,
    /// The positions of replies to commands that may have changed a value, since the last write.
    pub change_replies: ChangeReplies,
    /// True if the connection ends after the replies are written.
    pub is_closing: bool,
    /// The length of the longest reply since the last write of replies, in bytes.
    pub longest_reply: usize,
    /// Counts the keys that commands have looked up since the last write of replies: `[found, not
    /// found]`.
    lookups: Cell<[u64; 2]>,
    /// The chunk size for long commands.
    pub pace: ChunkPacing,
    /// The last command that ran. The server compares the next command with the last command before
    /// any lookup, because consecutive commands often have the same name.
    last_command: Option<&'static Command>,
}

impl Session {
    pub fn new(server: Arc<SharedState>, client: Arc<Client>) -> Self {
        let users_version = server.users.version();
        let user = server.users.default_user();
        let watched = Watched::new(server.held.hold(0));
        let mut session = Self {
            server,
            client,
            protocol: Protocol::Resp2,
            is_authenticated: false,
            user,
            users_version,
            transaction: None,
            monitoring: None,
            watched,
            change_replies: ChangeReplies::default(),
            is_closing: false,
            longest_reply: 0,
            lookups: Cell::default(),
            pace: ChunkPacing::default(),
            last_command: None,
        };
        session.reset_user();
        session
    }

    /// Finds a command by its name. Compares the name with the last command before the lookup in
    /// the table.
    pub(crate) fn find(&mut self, name: &[u8]) -> Option<&'static Command> {
        let last = self.last_command.filter(|it| it.name.as_bytes() == name);
        self.last_command = last.or_else(|| find(name));
        self.last_command
    }

    /// Counts commands that ran, and the keys that the commands looked up.
    pub(crate) fn count_run(&self, commands: usize) {
        let stats = &self.server.stats;
        stats.commands.fetch_add(commands as u64, Ordering::Relaxed);
        let [hits, misses] = self.lookups.take();
        if hits > 0 {
            stats.hits.fetch_add(hits, Ordering::Relaxed);
        }
        if misses > 0 {
            stats.misses.fetch_add(misses, Ordering::Relaxed);
        }
    }

    /// Sends consecutive calls of one command to the monitoring clients.
    pub fn show(&self, command: &'static Command, commands: &[Argv<'_>], config: &Config) {
        if self.server.monitors.any() {
            let most = config.output_limit.hard_bytes;
            self.server.monitors.show(&self.client, command, commands, most);
        }
    }

    /// Records the position of the replies to commands that may have changed a value.
    pub(crate) fn note_change(
        &mut self,
        command: &Command,
        replies: Range<usize>,
        commands: usize,
    ) {
        // Include `EXEC`, because a transaction may contain commands that change a value.
        let is_logged = self.server.durable.is_some();
        if is_logged && (command.may_change() || is_exec(command)) {
            self.change_replies.push(replies, commands);
        }
    }

    /// Ends the connection of a client if the client's replies exceed the limit.
    pub fn overflow(&mut self) {
        self.is_closing = true;
        self.server.stats.overflows.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            peer = %self.client.peer,
            "a client was disconnected: the replies of its transaction exceed \
             client-output-buffer-limit or maxmemory"
        );
    }

    /// Counts key lookups of commands that only read.
    pub fn note_lookups(&self, is_there: bool, count: u64) {
        let [mut hits, mut misses] = self.lookups.get();
        *if is_there { &mut hits } else { &mut misses } += count;
        self.lookups.set([hits, misses]);
    }

    /// Appends the reply to a command that ran.
    pub fn answer(&self, command: &Command, reply: &Reply, out: &mut Vec<u8>) {
        self.count_failure(command, reply);
        reply.encode(self.protocol, out);
    }

    /// If the reply is an error, counts the error.
    pub fn count_failure(&self, command: &Command, reply: &Reply) {
        if let Reply::Error(error) = reply {
            self.server.stats.count_failed(command, error);
        }
    }

    /// Counts consecutive calls of one command that ran since `began`. Each call counts with an
    /// equal share of the time. Returns the time of the call.
    pub fn count(
        &self,
        command: &Command,
        commands: &[Argv<'_>],
        began: Instant,
        config: &Config,
    ) -> Instant {
        let ended = Instant::now();
        let stats = &self.server.stats;
        let each = ended.duration_since(began) / commands.len() as u32;
        stats.calls.count(command.index(), commands.len() as u64, each);
        let is_slow = u64::try_from(config.slow_micros)
            .is_ok_and(|limit| each >= Duration::from_micros(limit));
        // Do not record `EXEC` as slow, because each command of a transaction is counted
        // separately.
        if is_slow && !is_exec(command) {
            stats.slow.push(&self.client, commands, each, config.slow_entries);
        }
        ended
    }
}

/// A running command, with its arguments and its environment.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    pub command: &'static Command,
    pub argv: Argv<'c>,
    pub env: Env<'c>,
}

impl Call<'_> {
    /// Returns a copy of this call with the current time `now_millis`, in milliseconds since 1970.
    pub fn at(&self, now_millis: u64) -> Self {
        Self { env: self.env.at(now_millis), ..*self }
    }

    /// Tests whether the command may access a key.
    pub fn may_access(&self, key: &[u8]) -> bool {
        let keys = self.command.keys;
        keys.first == 0 || keys.of(self.argv).any(|own| own == key)
    }
}

/// Tests whether a command is `EXEC`.
pub(crate) fn is_exec(command: &Command) -> bool {
    matches!(command.handler, Handler::Server(ServerCommand::Exec))
}
