//! A client's commands, run in order: checked, gathered into batches, answered.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tamis_commands::{
    Batch, BatchAnswers, Command, Env, Flag, Items, Outcome, Run, Value, Words, decode_file, find,
    load_decoded, made_like, reserve_like, text,
};
use tamis_resp::{Protocol, Reply};

use crate::change_replies::ChangeReplies;
use crate::clients::Client;
use crate::config::Config;
use crate::cross_protocol::is_http;
use crate::durability::Log;
use crate::host;
use crate::keyspace::{Exclusive, Shared};
use crate::monitors::Monitoring;
use crate::server::Shared as Server;
use crate::slices::{self, Pace};
use crate::stats::now_millis;
use crate::transaction::{Transaction, Watched};
use crate::users::{Refusal, Refused, User};

/// A connection's state between commands.
pub(crate) struct Session {
    pub server: Arc<Server>,
    pub client: Arc<Client>,
    pub protocol: Protocol,
    pub is_authenticated: bool,
    /// Who runs the commands: the default user until another has shown to be there.
    pub user: Arc<User>,
    /// What the users were when this one was looked up.
    users_version: u64,
    pub transaction: Option<Transaction>,
    /// The client sees the commands of all others.
    pub monitoring: Option<Monitoring>,
    pub watched: Watched,
    /// Which replies since the last write answer commands that may have changed something.
    pub change_replies: ChangeReplies,
    /// The connection ends once the replies are written.
    pub is_closing: bool,
    /// The length of the longest reply since the last replies were written.
    pub longest_reply: usize,
    /// Keys that commands have looked up since the last replies were written: found, and not.
    lookups: Cell<[u64; 2]>,
    /// How long commands are cut.
    pub pace: Pace,
}

/// Replies are written when there are so many bytes of them, so that a long pipeline does not gather in memory.
const WRITE_BYTES: usize = 256 << 10;

/// Longer data is decoded on a thread of its own.
const LONG_DATA_BYTES: usize = 256 << 10;

/// What a new key takes besides its bytes and its value, with some to spare.
const KEY_BYTES: u64 = 256;

/// The keys, as a command may have them: one of many, or alone.
#[derive(Clone, Copy)]
pub(crate) enum Keys<'a, 'k> {
    Shared(&'a Shared<'k>),
    Exclusive(&'a Exclusive<'k>),
}

/// Calls a method that both kinds of access have.
macro_rules! with_keys {
    ($access:expr, $keys:ident => $call:expr) => {
        match $access {
            $crate::session::Keys::Shared($keys) => $call,
            $crate::session::Keys::Exclusive($keys) => $call,
        }
    };
}
pub(crate) use with_keys;

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
            pace: Pace::default(),
        };
        session.log_out();
        session
    }

    /// Makes the connection that of a user who has shown to be there.
    pub fn log_in(&mut self, user: Arc<User>) {
        self.client.about.lock().user = Some(user.name.clone());
        self.is_authenticated = true;
        self.user = user;
    }

    /// Makes the connection that of nobody, which is the default user if that needs no password.
    pub fn log_out(&mut self) {
        let user = self.server.users.default_user();
        self.is_authenticated = false;
        self.client.about.lock().user = None;
        if user.is_open() {
            self.log_in(user);
        } else {
            self.user = user;
        }
    }

    /// Looks the user up again if users have changed; an error if it is gone.
    pub fn refresh_user(&mut self) -> Result<(), Reply> {
        let version = self.server.users.version();
        if version == self.users_version {
            return Ok(());
        }
        if !self.is_authenticated {
            self.users_version = version;
            self.log_out();
            return Ok(());
        }
        let user = self.server.users.get(&self.user.name);
        match user.filter(|user| user.number == self.user.number && user.is_on) {
            Some(user) => {
                // The version from before the look-up: a change in between is seen the next time.
                self.users_version = version;
                self.user = user;
                Ok(())
            }
            None => {
                // The version stays the old one, so that every later command of a transaction is refused too.
                self.is_closing = true;
                Err(Reply::error(text::acl::GONE))
            }
        }
    }

    /// Tests whether the user may still see the commands of others.
    pub fn may_monitor(&mut self) -> bool {
        self.refresh_user().is_ok() && self.is_authenticated && self.user.may_run("monitor")
    }

    /// Runs commands in order and appends their replies, until these are many bytes; returns how many ran.
    pub async fn run(&mut self, commands: &[Words<'_>], out: &mut Vec<u8>) -> usize {
        let server = self.server.clone();
        let mut config = server.config();
        let mut now = now_millis();
        let mut batch = Batch::default();
        let mut known: Option<&'static Command> = None;
        let mut at = 0;
        let mut began = Instant::now();
        let mut answered = out.len();
        while at < commands.len() && !self.is_closing && out.len() < WRITE_BYTES {
            self.longest_reply = self.longest_reply.max(out.len() - answered);
            answered = out.len();
            let words = commands[at];
            at += 1;
            let command = match known.filter(|it| it.name.as_bytes() == words[0]) {
                Some(command) => command,
                None => match find(words[0]) {
                    Some(command) => command,
                    None if is_http(words) => {
                        self.end_http();
                        break;
                    }
                    None => {
                        self.refuse(None, &text::unknown_command(words), out);
                        began = Instant::now();
                        continue;
                    }
                },
            };
            known = Some(command);
            if let Err(refusal) = self.check(command, words, &config) {
                self.refuse(Some(command), &refusal, out);
                began = Instant::now();
                continue;
            }
            self.client.about.lock().last_command = command.name;
            if self.transaction.is_some() && !host::ends_transaction(command) {
                self.queue(words).encode(self.protocol, out);
                began = Instant::now();
                continue;
            }
            let env = Env {
                settings: &config.filters,
                protocol: self.protocol,
                now_millis: now,
                items_per_second: None,
                max_reply_bytes: u64::MAX,
            };
            // Neighbours are shown when they are gathered. `EXEC` is shown behind the commands of its transaction, as Redis
            // does.
            if command.items.is_none() && command.name != "EXEC" {
                self.show(command, &commands[at - 1..at], &config);
            }
            if let Some(first) = slices::first_item(command, words)
                && words.len() - first > slices::most_items(command)
            {
                if command.items.is_some() {
                    self.show(command, &commands[at - 1..at], &config);
                }
                self.run_in_slices(command, words, first, &env, out).await;
                self.note_change(command, answered..out.len(), 1);
                now = now_millis();
                began = self.count(command, &commands[at - 1..at], began, &config);
                continue;
            }
            if let Some(items) = command.items {
                // The neighbours of the same name, key and kind.
                batch.clear();
                batch.push(words);
                let first = at - 1;
                while let Some(next) = commands.get(at) {
                    let is_alike = next[0].eq_ignore_ascii_case(words[0])
                        && command.takes(next.len())
                        && next[1] == words[1]
                        && batch.len() + next.len() <= slices::ITEMS;
                    if !is_alike {
                        break;
                    }
                    batch.push(next);
                    at += 1;
                }
                let alike = &commands[first..at];
                self.show(command, alike, &config);
                let lookups = alike.len() as u64;
                let has_run =
                    self.run_shared(items, &mut batch, lookups, words[1], &env, |mut answers| {
                        for words in alike {
                            answers.next_reply(items, words.len()).encode(self.protocol, out);
                        }
                    });
                if !has_run {
                    let keys = server.keyspace.shared_to_change(words[1]).await;
                    let env = at_present(&env);
                    now = env.now_millis;
                    if !self.run_alone(items, &mut batch, alike, &keys, &env, out) {
                        for words in alike {
                            let reply = self.run_one(command, words, Keys::Shared(&keys), &env);
                            self.answer(command, &reply, out);
                        }
                    }
                }
                self.note_change(command, answered..out.len(), alike.len());
                began = self.count(command, alike, began, &config);
                continue;
            }
            let reply = match command.run {
                Run::Host if command.name == "EXEC" => {
                    let ran = host::exec(self, &env, out).await;
                    now = now_millis();
                    self.show(command, &commands[at - 1..at], &config);
                    ran.err()
                }
                Run::Host => {
                    let reply = host::run(self, command, words, &env).await;
                    now = now_millis();
                    // Redis ends the connection without an answer, and clients take one for a failure.
                    (command.name != "SHUTDOWN").then_some(reply)
                }
                Run::Write(_) => {
                    let key = key_of(command, words);
                    let decoded = self.decode_beside(command, words, &env).await;
                    let keys = server.keyspace.shared_to_change(key).await;
                    let env = at_present(&env);
                    now = env.now_millis;
                    Some(self.run_one_with(command, words, Keys::Shared(&keys), &env, decoded))
                }
                _ => {
                    let keys = server.keyspace.shared();
                    Some(self.run_one(command, words, Keys::Shared(&keys), &env))
                }
            };
            if let Some(reply) = reply {
                self.answer(command, &reply, out);
            }
            self.note_change(command, answered..out.len(), 1);
            if matches!(command.name, "CONFIG" | "EXEC") {
                // What it has set is for the commands behind it.
                config = server.config();
            }
            began = self.count(command, &commands[at - 1..at], began, &config);
        }
        self.longest_reply = self.longest_reply.max(out.len() - answered);
        server.stats.commands.fetch_add(at as u64, Ordering::Relaxed);
        let [hits, misses] = self.lookups.take();
        if hits > 0 {
            server.stats.hits.fetch_add(hits, Ordering::Relaxed);
        }
        if misses > 0 {
            server.stats.misses.fetch_add(misses, Ordering::Relaxed);
        }
        at
    }

    /// Shows neighbours of one command to clients that monitor.
    pub fn show(&self, command: &'static Command, commands: &[Words<'_>], config: &Config) {
        if self.server.monitors.are_there() {
            let most = config.output_limit.hard_bytes;
            self.server.monitors.show(&self.client, command, commands, most);
        }
    }

    /// Notes where the replies to commands stand that may have changed something.
    fn note_change(&mut self, command: &Command, replies: Range<usize>, commands: usize) {
        // A transaction may have such commands in it.
        let is_logged = self.server.durable.is_some();
        if is_logged && (command.may_change() || command.name == "EXEC") {
            self.change_replies.push(replies, commands);
        }
    }

    /// Ends the connection of a client whose replies exceed the limit of one client.
    pub fn overflow(&mut self) {
        self.is_closing = true;
        self.server.stats.overflows.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            peer = %self.client.peer,
            "a client was disconnected because the replies of its transaction exceed client-output-buffer-limit or maxmemory"
        );
    }

    /// Ends the connection of a web page without an answer.
    fn end_http(&mut self) {
        self.is_closing = true;
        if self.server.http_warnings.is_due(now_millis()) {
            tracing::warn!(
                peer = %self.client.peer,
                "possible attack: a client sent HTTP to the port of commands, as a web page can; its connection was closed"
            );
        }
    }

    /// Counts lookups of a key, of commands that only read.
    pub fn note_lookups(&self, is_there: bool, count: u64) {
        let [mut hits, mut misses] = self.lookups.get();
        *if is_there { &mut hits } else { &mut misses } += count;
        self.lookups.set([hits, misses]);
    }

    /// Runs a batch of so many commands beside others and hands out its answers; false if it must have the value alone, and nothing has changed.
    pub fn run_shared(
        &self,
        items: Items,
        batch: &mut Batch<'_>,
        lookups: u64,
        key: &[u8],
        env: &Env<'_>,
        take: impl FnOnce(BatchAnswers<'_>),
    ) -> bool {
        let now_millis = env.now_millis;
        let mut has_run = false;
        let log = self.server.durable.as_ref().map(|durable| &durable.log);
        let run = |value: Option<&tamis_commands::Value>| {
            // Bits are set before the log has them: answers that may have seen them wait until it has.
            let _inserting = log.filter(|_| items.inserts).map(Log::begin_insert);
            let Some(answers) = batch.run(items, value, now_millis) else { return false };
            has_run = true;
            if !items.inserts {
                self.note_lookups(value.is_some(), lookups);
            }
            let has_changed = items.inserts && answers.count_ones() > 0;
            take(answers);
            if has_changed {
                self.server.log_inserted(key, batch.new_hashes(), now_millis);
            }
            has_changed
        };
        let keys = self.server.keyspace.shared();
        if items.inserts {
            keys.insert(key, now_millis, run);
        } else {
            keys.read(key, now_millis, run);
        }
        has_run
    }

    /// Runs neighbours that insert, with the value to themselves; false if each must run by itself, and nothing has
    /// changed.
    fn run_alone(
        &self,
        items: Items,
        batch: &mut Batch<'_>,
        commands: &[Words<'_>],
        keys: &Shared<'_>,
        env: &Env<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut has_run = false;
        keys.write(commands[0][1], env.now_millis, |value| {
            let Some(mut answers) = batch.run_alone(value, env.now_millis) else { return };
            has_run = true;
            for words in commands {
                answers.next_reply(items, words.len()).encode(self.protocol, out);
                self.server.log_command(words, env);
            }
        });
        has_run
    }

    /// Decodes the data of a command before its keys are taken: long data on a thread of its own. `None` if it has none.
    async fn decode_beside(
        &self,
        command: &Command,
        words: Words<'_>,
        env: &Env<'_>,
    ) -> Option<Result<Value, Reply>> {
        let data = command.decoded_data(words)?;
        if data.len() <= LONG_DATA_BYTES {
            return Some(decode_file(data, env));
        }
        let server = self.server.clone();
        let _permit = server.copies.acquire().await.expect("it is never closed");
        // A copy of the data, and what it becomes.
        let Some(_hold) = server.reserve_memory(2 * data.len() as u64) else {
            return Some(Err(Reply::error(text::host::MEMORY)));
        };
        let (data, settings) = (data.to_vec(), env.settings.clone());
        let (protocol, now_millis) = (env.protocol, env.now_millis);
        let decoding = tokio::task::spawn_blocking(move || {
            let env = Env {
                settings: &settings,
                protocol,
                now_millis,
                items_per_second: None,
                max_reply_bytes: u64::MAX,
            };
            decode_file(&data, &env)
        });
        let failed = || Err(Reply::error(text::host::NOT_COPIED));
        Some(decoding.await.unwrap_or_else(|_| failed()))
    }

    /// Runs a command about one key, or none.
    pub fn run_one(
        &self,
        command: &Command,
        words: Words<'_>,
        keys: Keys<'_, '_>,
        env: &Env<'_>,
    ) -> Reply {
        self.run_one_with(command, words, keys, env, None)
    }

    /// Does so with the data of the command decoded already, if it has some.
    fn run_one_with(
        &self,
        command: &Command,
        words: Words<'_>,
        keys: Keys<'_, '_>,
        env: &Env<'_>,
        mut decoded: Option<Result<Value, Reply>>,
    ) -> Reply {
        let key = key_of(command, words);
        match command.run {
            Run::Read(run) => with_keys!(keys, keys => {
                keys.read_measured(key, env.now_millis, |value, items_per_second| {
                    self.note_lookups(value.is_some(), 1);
                    let max_reply_bytes = env.max_reply_bytes.min(self.server.max_reply_bytes(value));
                    run(value, words, &Env { items_per_second, max_reply_bytes, ..*env })
                })
            }),
            Run::Write(run) => {
                // Read before the key is locked: no command holds the locks of two keys.
                let like = command.like_key(words).map(|other| {
                    with_keys!(keys, keys => {
                        keys.read(other, env.now_millis, |other| made_like(other, env))
                    })
                });
                let mut made = match like.transpose() {
                    Ok(made) => made,
                    Err(refusal) => return refusal,
                };
                let outcome: Outcome = with_keys!(keys, keys => {
                    keys.change(key, env.now_millis, |value| {
                        let was_there = value.is_some();
                        if let Some(layers @ (Value::RedisBloom(_) | Value::RedisCuckoo(_))) = value {
                            layers.limit_growth(self.server.memory_left());
                        }
                        let outcome = match (made.take(), decoded.take()) {
                            (Some(made), _) => reserve_like(value, made),
                            (None, Some(decoded)) => load_decoded(value, words, decoded),
                            (None, None) => {
                                let max_reply_bytes = self.server.max_reply_bytes(value.as_ref());
                                let max_reply_bytes = max_reply_bytes.min(env.max_reply_bytes);
                                run(value, words, &Env { max_reply_bytes, ..*env })
                            }
                        };
                        // Before anybody has seen it.
                        if !was_there
                            && command.has(Flag::DenyOom)
                            && !self.server.has_memory_for(value.as_ref())
                        {
                            *value = None;
                            return Outcome::refused(text::host::MEMORY);
                        }
                        self.server.log_outcome(key, words, &outcome, env);
                        outcome
                    })
                });
                outcome.reply
            }
            Run::Answer(run) => run(words, env),
            Run::Host => unreachable!("the host runs {}", command.name),
        }
    }

    /// Tells whether a command may run now.
    fn check(
        &mut self,
        command: &'static Command,
        words: Words<'_>,
        config: &Config,
    ) -> Result<(), Reply> {
        self.refresh_user()?;
        if !command.takes(words.len()) {
            return Err(text::wrong_arity(command.name));
        }
        if !self.is_authenticated && !command.has(Flag::NoAuth) {
            return Err(Reply::error(text::acl::NO_AUTH));
        }
        if let Err(refusal) = self.user.check(command, words) {
            self.log_refusal(&refusal);
            return Err(match refusal {
                Refusal::Command(name) => text::acl::no_command(&self.user.name, &name),
                Refusal::Key(_) => Reply::error(text::acl::NO_KEY),
            });
        }
        host::check_subcommand(command, words)?;
        self.check_change(command, config).map_err(Reply::error)?;
        if command.has(Flag::DenyOom) && config.max_memory_bytes != 0 {
            // A string takes as much as it has, items take less, and the key may be new.
            let bytes = KEY_BYTES + words.iter().map(|word| word.len() as u64).sum::<u64>();
            if self.server.used_memory() + bytes > config.max_memory_bytes {
                return Err(Reply::error(text::host::MEMORY));
            }
        }
        if self.transaction.is_some() && command.has(Flag::NoMulti) {
            return Err(Reply::error(text::host::NOT_IN_MULTI));
        }
        Ok(())
    }

    /// Keeps for operators what the user may not do.
    pub fn log_refusal(&self, refusal: &Refusal) {
        let (reason, object) = match refusal {
            Refusal::Command(name) => ("command", name.as_bytes()),
            Refusal::Key(key) => ("key", key.as_slice()),
        };
        self.log_refused(reason, object, &self.user.name);
    }

    /// Keeps for operators what was refused: why, what and to whom.
    pub fn log_refused(&self, reason: &'static str, object: &[u8], user: &[u8]) {
        let now = now_millis();
        let refused = Refused {
            number: 0,
            count: 0,
            reason,
            context: if self.transaction.is_some() { "multi" } else { "toplevel" },
            object: object[..object.len().min(Refused::KEPT_BYTES)].to_vec(),
            user: user[..user.len().min(Refused::KEPT_BYTES)].to_vec(),
            client: self.client.line(now).trim_end().to_owned(),
            created_millis: now,
            updated_millis: now,
        };
        self.server.users.refusals.push(refused, self.server.config().max_refusals);
    }

    /// Tells why a command may not change anything now, if so.
    pub fn check_change(&self, command: &Command, config: &Config) -> Result<(), String> {
        if command.has(Flag::DenyOom)
            && config.max_memory_bytes != 0
            && self.server.used_memory() > config.max_memory_bytes
        {
            return Err(text::host::MEMORY.to_owned());
        }
        let failure = command.may_change().then(|| self.server.log_failure()).flatten();
        match failure {
            Some(error) => Err(text::host::no_log(&error)),
            None => Ok(()),
        }
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

    /// Counts neighbours that ran since then, each with its share of the time; returns the present.
    pub fn count(
        &self,
        command: &Command,
        commands: &[Words<'_>],
        began: Instant,
        config: &Config,
    ) -> Instant {
        let ended = Instant::now();
        let stats = &self.server.stats;
        let each = ended.duration_since(began) / commands.len() as u32;
        stats.calls.count(command.index(), commands.len() as u64, each);
        let is_slow = u64::try_from(config.slow_micros)
            .is_ok_and(|limit| each >= Duration::from_micros(limit));
        // Of a transaction each command counts by itself.
        if is_slow && command.name != "EXEC" {
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

    fn queue(&mut self, words: Words<'_>) -> Reply {
        let transaction = self.transaction.as_mut().expect("only inside one");
        if self.server.memory_left() == 0 {
            transaction.is_broken = true;
            return Reply::error(text::host::MEMORY);
        }
        let is_kept = transaction.push(words);
        self.client.about.lock().queued = Some(transaction.queued.len());
        if is_kept { Reply::simple("QUEUED") } else { Reply::error(text::host::LARGE_MULTI) }
    }
}

/// Returns the same at the present time, for what has waited.
pub(crate) fn at_present<'e>(env: &Env<'e>) -> Env<'e> {
    Env { now_millis: now_millis(), ..*env }
}

/// Returns the key of a command that is about one.
fn key_of<'w>(command: &Command, words: Words<'w>) -> &'w [u8] {
    words.get(command.keys.first).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Server;

    #[test]
    fn a_time_to_live_begins_when_the_commands_before_it_are_done() {
        let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
        let server = Server::start(config).unwrap();
        let shared = server.shared();
        let client = shared.clients.add(server.addresses()[0], server.addresses()[0], 0);
        let mut session = Session::new(shared.clone(), client.client.clone());
        let runtime = crate::server::runtime();
        let mut run = |commands: &[Words<'_>]| {
            let mut out = Vec::new();
            runtime.block_on(session.run(commands, &mut out));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(run(&[&[b"SET", b"a", b"1"]]), "+OK\r\n");
        let (begun, has_begun) = std::sync::mpsc::channel();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                shared.keyspace.lend(b"a", 0, |_| {
                    begun.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(1000));
                });
            });
            has_begun.recv().unwrap();
            // The first of each waits, and the second has less time than that.
            let replies = run(&[&[b"INCR", b"a"], &[b"PEXPIRE", b"a", b"900"], &[b"EXISTS", b"a"]]);
            assert_eq!(replies, ":2\r\n:1\r\n:1\r\n");
            assert_eq!(run(&[&[b"EXISTS", b"a"]]), ":1\r\n", "its time came too early");
        });
    }

    #[test]
    fn a_file_is_decoded_before_the_keys_are_taken() {
        let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
        let server = Server::start(config).unwrap();
        let shared = server.shared();
        let address = server.addresses()[0];
        // Whoever asks for the keys waits for this.
        let alone = shared.keyspace.exclusive();
        let (sender, decoded) = std::sync::mpsc::channel();
        let thread = shared.clone();
        std::thread::spawn(move || {
            let client = thread.clients.add(address, address, 0);
            let session = Session::new(thread.clone(), client.client.clone());
            let command = find(b"TM.LOAD").unwrap();
            let config = thread.config();
            let env = Env {
                settings: &config.filters,
                protocol: Protocol::Resp2,
                now_millis: 0,
                items_per_second: None,
                max_reply_bytes: u64::MAX,
            };
            for data in [vec![0; 10], vec![0; LONG_DATA_BYTES + 1]] {
                let words: [&[u8]; 3] = [b"TM.LOAD", b"k", &data];
                let decoding = session.decode_beside(command, &words, &env);
                let result = crate::server::runtime().block_on(decoding);
                sender.send(result.is_some_and(|it| it.is_err())).unwrap();
            }
        });
        for _ in 0..2 {
            assert!(decoded.recv_timeout(Duration::from_secs(30)).expect("it waits for the keys"));
        }
        drop(alone);
    }
}
