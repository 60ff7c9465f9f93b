//! Runs the commands of a client in order: checks the commands, groups the commands into batches,
//! and appends the replies.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tamis_commands::{
    Argv, Batch, Command, Env, Flag, Handler, InMulti, KeyHandler, KeyReply, ServerCommand, text,
};
use tamis_resp::Reply;

use crate::config::Config;
use crate::connection::cross_protocol::is_http;
use crate::handlers;
use crate::session::checks::logged_bytes;
use crate::session::chunk_pacing::{ITEMS, most_items};
use crate::session::exec::exec;
use crate::session::key_commands::KeyCalls;
use crate::session::{Call, Session, is_exec};
use crate::system::clock::now_millis;
use crate::system::held_memory::Hold;

/// The state that is shared by the commands of one call of [`Session::run`].
struct Turn<'w> {
    /// The time of the next command, in milliseconds since 1970.
    now_millis: u64,
    /// The time at which the next command began.
    began: Instant,
    /// The new configuration, if a command may have changed the configuration.
    new_config: Option<Arc<Config>>,
    /// The buffers that all batches use.
    batch: Batch<'w>,
}

/// The connection writes the replies to the socket when the replies have this many bytes. With this
/// limit, the replies to a long pipeline do not accumulate in memory.
const WRITE_BYTES: usize = 256 << 10;

impl Session {
    /// Runs commands in order and appends their replies. Stops when the replies have
    /// [`WRITE_BYTES`] bytes. Returns the number of commands that ran.
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

    /// Runs the first command, and the next commands if these commands form a batch with the first
    /// command. Returns the number of commands that ran.
    async fn run_next<'w>(
        &mut self,
        commands: &[Argv<'w>],
        config: &Config,
        turn: &mut Turn<'w>,
        out: &mut Vec<u8>,
    ) -> usize {
        // The variable `_admitted` keeps the reservation of disk space until the change is logged.
        let Some((command, _admitted)) = self.admit(commands[0], config, out) else {
            turn.began = Instant::now();
            return 1;
        };
        let reply_start = out.len();
        let ran = self.run_admitted(command, commands, config, turn, out).await;
        self.note_change(command, reply_start..out.len(), ran);
        // If this command is `CONFIG SET slowlog-log-slower-than`, the new limit applies to the
        // command itself, as in Redis.
        let config = turn.new_config.as_deref().unwrap_or(config);
        turn.began = self.count(command, &commands[..ran], turn.began, config);
        ran
    }

    /// Finds a command and checks whether the command may run now. Returns the command with the
    /// disk space for its change. If the command was refused or queued by `MULTI`, appends the
    /// reply and returns `None`.
    fn admit(
        &mut self,
        argv: Argv<'_>,
        config: &Config,
        out: &mut Vec<u8>,
    ) -> Option<(&'static Command, Option<Hold>)> {
        let Some(command) = self.find(argv[0]) else {
            if is_http(argv) {
                self.end_http();
            } else {
                self.refuse(None, &text::unknown_command(argv), out);
            }
            return None;
        };
        let checked = self.check(command, argv, config);
        let admitted = checked.map_err(|refusal| self.refuse(Some(command), &refusal, out)).ok()?;
        self.client.properties.lock().last_command = command.name;
        if self.transaction.is_some() && command.in_multi != InMulti::AtOnce {
            self.queue(argv).encode(self.protocol, out);
            return None;
        }
        Some((command, admitted))
    }

    /// Runs a command that was already checked. Runs the next commands together with this command
    /// if these commands form a batch. Returns the number of commands that ran.
    async fn run_admitted<'w>(
        &mut self,
        command: &'static Command,
        commands: &[Argv<'w>],
        config: &Config,
        turn: &mut Turn<'w>,
        out: &mut Vec<u8>,
    ) -> usize {
        let argv = commands[0];
        let env = Env::new(&config.filters, self.protocol, turn.now_millis);
        let call = Call { command, argv, env };
        let is_exec = is_exec(command);
        if !is_exec && !matches!(command.handler, Handler::Key(_)) {
            self.show(command, &[argv], config);
        }
        let reply = match command.handler {
            Handler::Key(handler) => {
                return self.run_key_commands(handler, call, commands, config, turn, out).await;
            }
            Handler::Answer(answer) => Some(answer(argv, &env)),
            Handler::Server(ServerCommand::Exec) => exec(self, &env, out).await.err(),
            Handler::Server(handler) => Some(handlers::run_server(self, handler, call).await),
            Handler::ReadKeys(handler) => Some(handlers::run_read_keys(self, handler, call).await),
            Handler::WriteKeys(handler) => {
                Some(handlers::run_write_keys(self, handler, call).await)
            }
        };
        if command.has(Flag::Admin) || is_exec {
            turn.new_config = Some(self.server.config());
        }
        // Update the time, because a command on several keys may wait for the keys, and `SAVE` and
        // `DEBUG RELOAD` take seconds.
        let is_about_keys = matches!(command.handler, Handler::ReadKeys(_) | Handler::WriteKeys(_));
        if turn.new_config.is_some() || is_about_keys {
            turn.now_millis = now_millis();
        }
        if is_exec {
            // Monitors see `EXEC` after the commands of the transaction, as in Redis.
            self.show(command, &[argv], config);
        }
        // Redis closes the connection without a reply to some commands. If Redis sends no reply to
        // a command, clients treat a reply as a failure.
        if let Some(reply) = reply.filter(|_| !command.has(Flag::NoReply)) {
            self.answer(command, &reply, out);
        }
        1
    }

    /// Runs a command on one key. Runs the next commands together with this command if these
    /// commands form a batch. Returns the number of commands that ran.
    async fn run_key_commands<'w>(
        &mut self,
        handler: KeyHandler,
        Call { command, argv, env }: Call<'_>,
        commands: &[Argv<'w>],
        config: &Config,
        turn: &mut Turn<'w>,
        out: &mut Vec<u8>,
    ) -> usize {
        if let Some(first) = command.first_item(argv)
            && argv.len() - first > most_items(command)
        {
            self.show(command, &commands[..1], config);
            self.run_in_chunks(handler, command, argv, first, &env, out).await;
            turn.now_millis = now_millis();
            return 1;
        }
        let Turn { now_millis, batch, .. } = turn;
        let mut len = match handler {
            KeyHandler::Items(_) => gather(command, commands, batch),
            KeyHandler::Read(_) | KeyHandler::Write(_) => 1,
        };
        // The caller has already checked the first command.
        let _admitted =
            self.check_others(command, &commands[1..len], config).unwrap_or_else(|_| {
                len = gather(command, &commands[..1], batch);
                None
            });
        let commands = &commands[..len];
        self.show(command, commands, config);
        let calls = KeyCalls { handler, command, argvs: commands, lookups: len as u64 };
        let answer = |done: KeyReply| self.answer(command, &done.reply, out);
        *now_millis = self.run_on_key(calls, batch, &env, answer).await;
        len
    }

    /// Checks that the commands of a batch after the first command may change a value now. The
    /// user, the arity and the key are equal for all commands of a batch, so [`check`](Self::check)
    /// of the first command is sufficient for these three.
    fn check_others(
        &self,
        command: &'static Command,
        others: &[Argv<'_>],
        config: &Config,
    ) -> Result<Option<Hold>, String> {
        if others.is_empty() || !command.may_change() {
            return Ok(None);
        }
        let bytes = others.iter().map(|argv| logged_bytes(command, argv)).sum();
        self.check_change(command, bytes, config)
    }

    /// Ends the connection of a web page. Sends no reply.
    fn end_http(&mut self) {
        self.is_closing = true;
        if self.server.http_warnings.is_due(now_millis()) {
            tracing::warn!(
                peer = %self.client.peer,
                "possible attack: a client sent HTTP to the Redis port, as a web page can; its \
                 connection was closed"
            );
        }
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
        self.client.properties.lock().queued = Some(transaction.queued.len());
        if is_kept { Reply::simple("QUEUED") } else { Reply::error(text::server::LARGE_MULTI) }
    }
}

/// Fills a batch with the first command and with the next commands that have the same name and key.
/// Returns the number of commands in the batch.
fn gather<'w>(command: &Command, commands: &[Argv<'w>], batch: &mut Batch<'w>) -> usize {
    let first = commands[0];
    batch.clear();
    batch.push(first);
    let mut len = 1;
    for next in &commands[1..] {
        let is_alike = next[0].eq_ignore_ascii_case(first[0])
            && command.takes(next.len())
            && next[1] == first[1]
            && batch.len() + next.len() <= ITEMS;
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
    use std::time::Duration;

    use tamis_commands::find;
    use tamis_resp::Protocol;

    use super::*;
    use crate::server::Server;
    use crate::shared_state::SharedState;
    use crate::test_server;

    /// Runs commands and returns the text of their replies.
    fn text(session: &mut Session, commands: &[Argv<'_>]) -> String {
        String::from_utf8(test_server::run(session, commands)).unwrap()
    }

    /// Runs a function while a second thread holds a read lease of the key `a` for one second.
    fn while_leased(server: &SharedState, run: impl FnOnce()) {
        let (begun, has_begun) = std::sync::mpsc::channel();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                server.keyspace.lease(b"a", 0, |_| {
                    begun.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(1000));
                });
            });
            tamis_testing::receive("the lease", &has_begun);
            run();
        });
    }

    #[test]
    fn a_time_to_live_begins_when_the_commands_before_it_are_done() {
        let server = test_server::start();
        let shared = server.shared();
        let mut session = test_server::session(shared);
        let mut run = |commands: &[Argv<'_>]| text(&mut session, commands);
        assert_eq!(run(&[&[b"SET", b"a", b"1"]]), "+OK\r\n");
        while_leased(shared, || {
            // `INCR` waits for the lease. `PEXPIRE` sets a time to live that is shorter than the
            // wait.
            let replies = run(&[&[b"INCR", b"a"], &[b"PEXPIRE", b"a", b"900"], &[b"EXISTS", b"a"]]);
            assert_eq!(replies, ":2\r\n:1\r\n:1\r\n");
            assert_eq!(run(&[&[b"EXISTS", b"a"]]), ":1\r\n", "its time came too early");
        });
    }

    #[test]
    fn commands_after_a_long_server_command_use_the_present_time() {
        let config =
            Config { debug_command: crate::config::DebugCommand::Yes, ..test_server::config() };
        let server = Server::start(config).unwrap();
        let shared = server.shared();
        let mut session = test_server::session(shared);
        let mut run = |commands: &[Argv<'_>]| text(&mut session, commands);
        run(&[&[b"SET", b"a", b"1"], &[b"SET", b"k", b"v", b"PX", b"100000"]]);
        while_leased(shared, || {
            // `DEBUG RELOAD` waits for the lease.
            let replies = run(&[&[b"DEBUG", b"RELOAD", b"NOSAVE"], &[b"PTTL", b"k"]]);
            let left: i64 = replies.strip_prefix("+OK\r\n:").unwrap().trim().parse().unwrap();
            assert!(left <= 99_500, "{left}");
        });
    }

    #[test]
    fn a_decoded_value_is_counted_until_its_key_is_locked() {
        let server = test_server::start();
        let shared = server.shared();
        let mut session = test_server::session(shared);
        let reserve: [&[u8]; 6] = [b"TM.RESERVE", b"k", b"KIND", b"classic", b"ITEMS", b"100000"];
        let out = test_server::run(&mut session, &[&reserve, &[b"TM.DUMP", b"k"]]);
        let bulk = out.strip_prefix(b"+OK\r\n$").unwrap();
        let file = &bulk[bulk.iter().position(|c| *c == b'\n').unwrap() + 1..];
        let load: [&[u8]; 3] = [b"TM.LOAD", b"l", &file[..file.len() - 2]];
        let config = shared.config();
        let env = Env::new(&config.filters, Protocol::Resp2, now_millis());
        let before = shared.held.bytes();
        let call = Call { command: find(b"TM.LOAD").unwrap(), argv: &load, env };
        let decoded = test_server::block_on(session.decode(call)).unwrap().unwrap();
        assert!(shared.held.bytes() >= before + 100_000, "{}", shared.held.bytes() - before);
        drop(decoded);
        assert_eq!(shared.held.bytes(), before);
    }
}
