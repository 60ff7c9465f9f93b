//! Runs a client's commands in order: checks them, groups them into batches, and replies.

mod checks;
mod key_commands;
mod login;

pub(crate) use key_commands::KeyCalls;

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tamis_commands::{
    Argv, Batch, Command, Env, Flag, Handler, InMulti, KeyHandler, KeyReply, ServerCommand, find,
    text,
};
use tamis_resp::{Protocol, Reply};

use crate::change_replies::ChangeReplies;
use crate::chunked::{self, ChunkPacing};
use crate::clients::Client;
use crate::clock::now_millis;
use crate::config::Config;
use crate::cross_protocol::is_http;
use crate::decoding::{Decoded, decode, refuses_data};
use crate::exec::exec;
use crate::handlers;
use crate::monitors::Monitoring;
use crate::not_decoded::NotDecoded;
use crate::shared_state::SharedState as Server;
use crate::transaction::{Transaction, Watched};
use crate::users::User;

/// A connection's state between commands.
pub(crate) struct Session {
    pub server: Arc<Server>,
    pub client: Arc<Client>,
    pub protocol: Protocol,
    pub is_authenticated: bool,
    /// The user that runs the commands: the default user until the connection authenticates as
    /// another user.
    pub user: Arc<User>,
    /// The version of the user list when `user` was looked up.
    users_version: u64,
    pub transaction: Option<Transaction>,
    /// Set while the client sees the commands of all others.
    pub monitoring: Option<Monitoring>,
    pub watched: Watched,
    /// Marks the replies since the last write that answer commands that may have changed a value.
    pub change_replies: ChangeReplies,
    /// The connection ends once the replies are written.
    pub is_closing: bool,
    /// The length of the longest reply since the last write of replies, in bytes.
    pub longest_reply: usize,
    /// Counts the keys that commands have looked up since the last write of replies: found, and not
    /// found.
    lookups: Cell<[u64; 2]>,
    /// The chunk size for long commands.
    pub pace: ChunkPacing,
    /// The last command that ran. Most often the next one has the same name.
    last_command: Option<&'static Command>,
}

/// The state that the commands of one call of [`Session::run`] share.
struct Turn<'w> {
    /// The time of the next command, in milliseconds since 1970.
    now_millis: u64,
    /// When the next command began.
    began: Instant,
    /// The configuration after a command that may have changed it.
    new_config: Option<Arc<Config>>,
    /// The buffers of batches.
    batch: Batch<'w>,
}

/// Replies are written when they have this many bytes, so that a long pipeline does not accumulate
/// in memory.
const WRITE_BYTES: usize = 256 << 10;

impl Session {
    pub fn new(server: Arc<Server>, client: Arc<Client>) -> Self {
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

    /// Runs commands in order and appends their replies, until the replies have [`WRITE_BYTES`].
    /// Returns how many commands ran.
    pub async fn run(&mut self, commands: &[Argv<'_>], out: &mut Vec<u8>) -> usize {
        let server = self.server.clone();
        let mut config = server.config();
        let mut turn = Turn {
            now_millis: now_millis(),
            began: Instant::now(),
            new_config: None,
            batch: Batch::default(),
        };
        self.client.last_millis.store(turn.now_millis, Ordering::Relaxed);
        let mut ran = 0;
        while ran < commands.len() && !self.is_closing && out.len() < WRITE_BYTES {
            let reply_start = out.len();
            ran += self.run_next(&commands[ran..], &config, &mut turn, out).await;
            self.longest_reply = self.longest_reply.max(out.len() - reply_start);
            config = turn.new_config.take().unwrap_or(config);
        }
        self.count_run(ran);
        ran
    }

    /// Runs the first command together with the following ones that form a batch with it. Returns
    /// how many ran.
    async fn run_next<'w>(
        &mut self,
        commands: &[Argv<'w>],
        config: &Config,
        turn: &mut Turn<'w>,
        out: &mut Vec<u8>,
    ) -> usize {
        let argv = commands[0];
        let Some(command) = self.find(argv[0]) else {
            if is_http(argv) {
                self.end_http();
            } else {
                self.refuse(None, &text::unknown_command(argv), out);
            }
            turn.began = Instant::now();
            return 1;
        };
        if let Err(refusal) = self.check(command, argv, config) {
            self.refuse(Some(command), &refusal, out);
            turn.began = Instant::now();
            return 1;
        }
        self.client.about.lock().last_command = command.name;
        if self.transaction.is_some() && command.in_multi != InMulti::AtOnce {
            self.queue(argv).encode(self.protocol, out);
            turn.began = Instant::now();
            return 1;
        }
        let reply_start = out.len();
        let env = Env::new(&config.filters, self.protocol, turn.now_millis);
        let ran = match command.handler {
            Handler::Key(handler) => {
                self.run_key_commands(handler, command, commands, config, turn, out).await
            }
            Handler::Server(ServerCommand::Exec) => {
                self.run_exec(command, argv, config, turn, out).await;
                1
            }
            Handler::Server(handler) => {
                self.show(command, &commands[..1], config);
                let reply = handlers::run_server_command(self, handler, command, argv, &env).await;
                if command.has(Flag::Admin) {
                    turn.new_config = Some(self.server.config());
                    // `SAVE` and `DEBUG RELOAD` take seconds.
                    turn.now_millis = now_millis();
                }
                // Redis closes the connection without a reply, and clients treat a reply as a
                // failure.
                if !command.has(Flag::NoReply) {
                    self.answer(command, &reply, out);
                }
                1
            }
            Handler::Answer(answer) => {
                self.show(command, &commands[..1], config);
                self.answer(command, &answer(argv, &env), out);
                1
            }
            Handler::ReadKeys(handler) => {
                self.show(command, &commands[..1], config);
                let reply = handlers::run_read_keys(self, handler, command, argv, &env).await;
                turn.now_millis = now_millis();
                self.answer(command, &reply, out);
                1
            }
            Handler::WriteKeys(handler) => {
                self.show(command, &commands[..1], config);
                let reply = handlers::run_write_keys(self, handler, command, argv, &env).await;
                turn.now_millis = now_millis();
                self.answer(command, &reply, out);
                1
            }
        };
        self.note_change(command, reply_start..out.len(), ran);
        // `CONFIG SET slowlog-log-slower-than` counts with the limit that it has set, as in Redis.
        let config = turn.new_config.as_deref().unwrap_or(config);
        turn.began = self.count(command, &commands[..ran], turn.began, config);
        ran
    }

    /// Runs a command about one key together with the following ones that form a batch with it.
    /// Returns how many ran.
    async fn run_key_commands<'w>(
        &mut self,
        handler: KeyHandler,
        command: &'static Command,
        commands: &[Argv<'w>],
        config: &Config,
        turn: &mut Turn<'w>,
        out: &mut Vec<u8>,
    ) -> usize {
        let argv = commands[0];
        let env = Env::new(&config.filters, self.protocol, turn.now_millis);
        if let Some(first) = command.first_item(argv)
            && argv.len() - first > chunked::most_items(command)
        {
            self.show(command, &commands[..1], config);
            self.run_in_chunks(handler, command, argv, first, &env, out).await;
            turn.now_millis = now_millis();
            return 1;
        }
        let Turn { now_millis, batch, .. } = turn;
        let len = match handler {
            KeyHandler::Items(_) => gather(command, commands, batch),
            KeyHandler::Read(_) | KeyHandler::Write(_) => 1,
        };
        let commands = &commands[..len];
        self.show(command, commands, config);
        let calls = KeyCalls { handler, command, argvs: commands, lookups: len as u64 };
        let answer = |done: KeyReply| self.answer(command, &done.reply, out);
        *now_millis = self.run_on_key(calls, batch, &env, answer).await;
        len
    }

    /// Runs `EXEC`.
    async fn run_exec(
        &mut self,
        command: &'static Command,
        argv: Argv<'_>,
        config: &Config,
        turn: &mut Turn<'_>,
        out: &mut Vec<u8>,
    ) {
        let env = Env::new(&config.filters, self.protocol, turn.now_millis);
        let refusal = exec(self, &env, out).await.err();
        turn.now_millis = now_millis();
        turn.new_config = Some(self.server.config());
        // Shown after the commands of its transaction, as in Redis.
        self.show(command, &[argv], config);
        if let Some(refusal) = refusal {
            self.answer(command, &refusal, out);
        }
    }

    /// Finds a command. Most often it is the same command as before.
    fn find(&mut self, name: &[u8]) -> Option<&'static Command> {
        let last = self.last_command.filter(|it| it.name.as_bytes() == name);
        self.last_command = last.or_else(|| find(name));
        self.last_command
    }

    /// Decodes the value that a command carries as data. Returns `None` if the command carries no
    /// data or will be refused. The command then refuses, or decodes the data itself if the key was
    /// removed meanwhile.
    async fn decode(
        &self,
        command: &Command,
        argv: Argv<'_>,
        env: &Env<'_>,
    ) -> Option<Result<Decoded, NotDecoded>> {
        if command.data(argv).is_none() || refuses_data(command, argv, env, &self.server) {
            return None;
        }
        decode(&self.server, command, argv, env).await
    }

    /// Counts commands that ran, and the keys that they looked up.
    fn count_run(&self, commands: usize) {
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

    /// Sends consecutive calls of one command to the clients that monitor.
    pub fn show(&self, command: &'static Command, commands: &[Argv<'_>], config: &Config) {
        if self.server.monitors.are_there() {
            let most = config.output_limit.hard_bytes;
            self.server.monitors.show(&self.client, command, commands, most);
        }
    }

    /// Records the position of replies to commands that may have changed a value.
    fn note_change(&mut self, command: &Command, replies: Range<usize>, commands: usize) {
        // A transaction may contain such commands.
        let is_logged = self.server.durable.is_some();
        if is_logged && (command.may_change() || is_exec(command)) {
            self.change_replies.push(replies, commands);
        }
    }

    /// Ends the connection of a client whose replies exceed the limit for one client.
    pub fn overflow(&mut self) {
        self.is_closing = true;
        self.server.stats.overflows.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            peer = %self.client.peer,
            "a client was disconnected: the replies of its transaction exceed client-output-buffer-limit or maxmemory"
        );
    }

    /// Ends the connection of a web page without a reply.
    fn end_http(&mut self) {
        self.is_closing = true;
        if self.server.http_warnings.is_due(now_millis()) {
            tracing::warn!(
                peer = %self.client.peer,
                "possible attack: a client sent HTTP to the Redis port, as a web page can; its connection was closed"
            );
        }
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

    /// Counts the reply to a command if it is an error.
    pub fn count_failure(&self, command: &Command, reply: &Reply) {
        if let Reply::Error(error) = reply {
            self.server.stats.count_failed(command, error);
        }
    }

    /// Counts consecutive calls of one command that ran since `began`, each with an equal share of
    /// the time. Returns the current time.
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
        // The commands of a transaction are counted one by one.
        if is_slow && !is_exec(command) {
            stats.slow.push(&self.client, commands, each, config.slow_entries);
        }
        ended
    }

    fn refuse(&mut self, command: Option<&Command>, refusal: &Reply, out: &mut Vec<u8>) {
        if let Reply::Error(error) = refusal {
            self.server.stats.count_rejected(command, error);
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.is_broken = true;
        }
        refusal.encode(self.protocol, out);
    }

    fn queue(&mut self, argv: Argv<'_>) -> Reply {
        let transaction = self.transaction.as_mut().expect("only inside one");
        if self.server.memory_left() == 0 {
            transaction.is_broken = true;
            return Reply::error(text::server::MEMORY);
        }
        let is_kept = transaction.push(argv);
        self.client.about.lock().queued = Some(transaction.queued.len());
        if is_kept { Reply::simple("QUEUED") } else { Reply::error(text::server::LARGE_MULTI) }
    }
}

fn is_exec(command: &Command) -> bool {
    matches!(command.handler, Handler::Server(ServerCommand::Exec))
}

/// Fills a batch with the first command and the following ones with the same name and key. Returns
/// how many it added.
fn gather<'w>(command: &Command, commands: &[Argv<'w>], batch: &mut Batch<'w>) -> usize {
    let first = commands[0];
    batch.clear();
    batch.push(first);
    let mut len = 1;
    for next in &commands[1..] {
        let is_alike = next[0].eq_ignore_ascii_case(first[0])
            && command.takes(next.len())
            && next[1] == first[1]
            && batch.len() + next.len() <= chunked::ITEMS;
        if !is_alike {
            break;
        }
        batch.push(next);
        len += 1;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Server;
    use crate::shared_state::SharedState;

    /// Returns the state of a server and a session without a socket.
    fn session(server: &Server) -> (Arc<SharedState>, Session) {
        let shared = server.shared().clone();
        let address = server.addresses()[0];
        let client = shared.clients.add(address, address, 0).client.clone();
        (shared.clone(), Session::new(shared, client))
    }

    #[test]
    fn a_time_to_live_begins_when_the_commands_before_it_are_done() {
        let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
        let server = Server::start(config).unwrap();
        let (shared, mut session) = session(&server);
        let runtime = crate::runtime::runtime();
        let mut run = |commands: &[Argv<'_>]| {
            let mut out = Vec::new();
            runtime.block_on(session.run(commands, &mut out));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(run(&[&[b"SET", b"a", b"1"]]), "+OK\r\n");
        let (begun, has_begun) = std::sync::mpsc::channel();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                shared.keyspace.lease(b"a", 0, |_| {
                    begun.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(1000));
                });
            });
            has_begun.recv().unwrap();
            // The first command of each pair waits, and the second has a shorter expiry time than
            // that wait.
            let replies = run(&[&[b"INCR", b"a"], &[b"PEXPIRE", b"a", b"900"], &[b"EXISTS", b"a"]]);
            assert_eq!(replies, ":2\r\n:1\r\n:1\r\n");
            assert_eq!(run(&[&[b"EXISTS", b"a"]]), ":1\r\n", "its time came too early");
        });
    }

    #[test]
    fn commands_after_a_long_server_command_use_the_present_time() {
        let config = Config {
            port: 0,
            threads: 1,
            append_only: false,
            debug_command: crate::config::DebugCommand::Yes,
            ..Config::default()
        };
        let server = Server::start(config).unwrap();
        let (shared, mut session) = session(&server);
        let runtime = crate::runtime::runtime();
        let mut run = |commands: &[Argv<'_>]| {
            let mut out = Vec::new();
            runtime.block_on(session.run(commands, &mut out));
            String::from_utf8(out).unwrap()
        };
        run(&[&[b"SET", b"a", b"1"], &[b"SET", b"k", b"v", b"PX", b"100000"]]);
        let (begun, has_begun) = std::sync::mpsc::channel();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                shared.keyspace.lease(b"a", 0, |_| {
                    begun.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(1000));
                });
            });
            has_begun.recv().unwrap();
            // The reload waits for the lease.
            let replies = run(&[&[b"DEBUG", b"RELOAD", b"NOSAVE"], &[b"PTTL", b"k"]]);
            let left: i64 = replies.strip_prefix("+OK\r\n:").unwrap().trim().parse().unwrap();
            assert!(left <= 99_500, "{left}");
        });
    }

    #[test]
    fn a_decoded_value_is_counted_until_its_key_is_locked() {
        let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
        let server = Server::start(config).unwrap();
        let (shared, mut session) = session(&server);
        let runtime = crate::runtime::runtime();
        let mut out = Vec::new();
        let reserve: [&[u8]; 6] = [b"TM.RESERVE", b"k", b"KIND", b"classic", b"ITEMS", b"100000"];
        runtime.block_on(session.run(&[&reserve, &[b"TM.DUMP", b"k"]], &mut out));
        let bulk = out.strip_prefix(b"+OK\r\n$").unwrap();
        let file = &bulk[bulk.iter().position(|c| *c == b'\n').unwrap() + 1..];
        let load: [&[u8]; 3] = [b"TM.LOAD", b"l", &file[..file.len() - 2]];
        let config = shared.config();
        let env = Env::new(&config.filters, Protocol::Resp2, now_millis());
        let before = shared.held.bytes();
        let command = find(b"TM.LOAD").unwrap();
        let decoded = runtime.block_on(session.decode(command, &load, &env)).unwrap().unwrap();
        assert!(shared.held.bytes() >= before + 100_000, "{}", shared.held.bytes() - before);
        drop(decoded);
        assert_eq!(shared.held.bytes(), before);
    }
}
