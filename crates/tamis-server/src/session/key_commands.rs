//! Runs commands on one key under a shared or an exclusive lock of its value.

use tamis_commands::{
    Argv, Batch, BatchItems, BatchPart, Command, Env, Flag, KeyHandler, KeyReply, Outcome,
    ReadHandler, Value, WriteHandler, load_decoded, made_like, reserve_like,
    text::{self, Text},
};
use tamis_resp::Reply;

use crate::keyspace::KeyspaceRef;
use crate::persistence::Log;
use crate::session::decoding::Decoded;
use crate::session::write_keys::restore::NotDecoded;
use crate::session::{Call, Session};
use crate::system::clock::now_millis;

/// Calls of one command on one key: a single call, or several calls that form a batch.
#[derive(Clone, Copy)]
pub(crate) struct KeyCalls<'c, 'w> {
    pub handler: KeyHandler,
    pub command: &'static Command,
    pub argvs: &'c [Argv<'w>],
    /// The number of keyspace hits or misses that the calls count as, if the calls only read.
    pub lookups: u64,
}

impl Session {
    /// Runs one or more calls of a command on one key. `batch` holds the items of the calls if the
    /// command has items. If the command changes the key, waits until no read lease of the key
    /// exists before the calls run. Passes the reply to each call to `take`. Returns the time at
    /// which the calls ran.
    pub async fn run_on_key(
        &self,
        calls: KeyCalls<'_, '_>,
        batch: &mut Batch<'_>,
        env: &Env<'_>,
        mut take: impl FnMut(KeyReply),
    ) -> u64 {
        let KeyCalls { handler, command, argvs, lookups } = calls;
        let (argv, keyspace) = (argvs[0], &self.server.keyspace);
        let call = Call { command, argv, env: *env };
        match handler {
            KeyHandler::Read(read) => {
                take(self.read_one(read, call, &keyspace.shared()).into());
                env.now_millis
            }
            KeyHandler::Write(write) => {
                let decoded = self.decode(call).await;
                let keys = keyspace.shared_to_change(argv[1]).await;
                let call = call.at(now_millis());
                // Until this line, the memory of the decoded value counts as held memory.
                let decoded =
                    decoded.map(|it| it.map(Decoded::into_value).map_err(NotDecoded::into_reply));
                take(self.write_one(write, call, &keys, decoded));
                call.env.now_millis
            }
            KeyHandler::Items(items) => {
                if self.run_shared(items, batch, lookups, argv[1], env, &mut take) {
                    return env.now_millis;
                }
                loop {
                    let keys = keyspace.shared_to_change(argv[1]).await;
                    let env = env.at(now_millis());
                    self.insert(items, BatchPart::Short, batch, (command, argvs), &keys, &env);
                    if batch.is_done() {
                        batch.answers(items).for_each(take);
                        return env.now_millis;
                    }
                    // Yield, so that other connections run and can take the lock of the key.
                    drop(keys);
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Runs a command on the value of its key. The caller has exclusive access to all keys.
    /// `decoded` is the data of the command if the caller has already decoded the data.
    pub fn run_one(
        &self,
        handler: KeyHandler,
        call: Call<'_>,
        keys: &KeyspaceRef<'_>,
        decoded: Option<Result<Value, Reply>>,
    ) -> Reply {
        let Call { command, argv, env } = call;
        match handler {
            KeyHandler::Read(read) => self.read_one(read, call, keys),
            KeyHandler::Write(write) => self.write_one(write, call, keys, decoded).reply,
            KeyHandler::Items(items) => {
                let mut batch = Batch::default();
                batch.push(argv);
                if items.inserts {
                    self.insert(items, BatchPart::All, &mut batch, (command, &[argv]), keys, &env);
                } else {
                    keys.read(argv[1], env.now_millis, |value| {
                        self.note_lookups(value.is_some(), 1);
                        _ = batch.run(items, value, env.now_millis);
                    });
                }
                batch.answers(items).next().expect("one command was pushed").reply
            }
        }
    }

    /// Runs a batch under shared access to the value of the key, and passes the replies to `take`.
    /// Returns false and changes nothing if the batch needs exclusive access.
    fn run_shared(
        &self,
        items: BatchItems,
        batch: &mut Batch<'_>,
        lookups: u64,
        key: &[u8],
        env: &Env<'_>,
        take: impl FnMut(KeyReply),
    ) -> bool {
        let now_millis = env.now_millis;
        let mut has_run = false;
        let log = self.server.durable.as_ref().map(|durable| &durable.log);
        let run = |value: Option<&Value>| {
            // The command sets bits before the log contains the insert. The ticket of the insert
            // delays all replies that may depend on the set bits until the insert is logged.
            let _inserting = log.filter(|_| items.inserts).map(Log::begin_insert);
            let Some(answers) = batch.run(items, value, now_millis) else { return false };
            has_run = true;
            if !items.inserts {
                self.note_lookups(value.is_some(), lookups);
            }
            let has_changed = items.inserts && answers.count_ones() > 0;
            answers.for_each(take);
            if has_changed {
                self.server.log_inserted(key, batch, now_millis);
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

    /// Runs a part of an inserting batch under an exclusive lock of the value. After the call,
    /// `batch` contains the replies.
    fn insert(
        &self,
        items: BatchItems,
        part: BatchPart,
        batch: &mut Batch<'_>,
        (command, commands): (&Command, &[Argv<'_>]),
        keys: &KeyspaceRef<'_>,
        env: &Env<'_>,
    ) {
        let insert = |value: &mut Option<Value>| batch.insert(items, value, part, env);
        if let Err(refusal) = self.change(command, commands, keys, env, insert) {
            batch.refuse(refusal);
        }
    }

    fn read_one(&self, read: ReadHandler, call: Call<'_>, keys: &KeyspaceRef<'_>) -> Reply {
        let Call { argv, env, .. } = call;
        keys.read_measured(argv[1], env.now_millis, |value, items_per_second| {
            self.note_lookups(value.is_some(), 1);
            let max_reply_bytes = env.max_reply_bytes.min(self.server.max_reply_bytes(value));
            read(value, argv, &Env { items_per_second, max_reply_bytes, ..env })
        })
    }

    fn write_one(
        &self,
        write: WriteHandler,
        Call { command, argv, env }: Call<'_>,
        keys: &KeyspaceRef<'_>,
        mut decoded: Option<Result<Value, Reply>>,
    ) -> KeyReply {
        // Read the value of the other key before the key is locked, because no command holds the
        // locks of two keys.
        let like = command
            .like_key(argv)
            .map(|other| keys.read(other, env.now_millis, |other| made_like(other, &env)));
        let mut made = match like.transpose() {
            Ok(made) => made,
            Err(reply) => return reply.into(),
        };
        let outcome = self.change(command, &[argv], keys, &env, |value| {
            let written = match (made.take(), decoded.take()) {
                (Some(made), _) => reserve_like(value, made),
                (None, Some(decoded)) => load_decoded(value, argv, decoded, &env),
                (None, None) => {
                    let max_reply_bytes = self.server.max_reply_bytes(value.as_ref());
                    let max_reply_bytes = max_reply_bytes.min(env.max_reply_bytes);
                    write(value, argv, &Env { max_reply_bytes, ..env })
                }
            };
            written.unwrap_or_else(Outcome::from)
        });
        match outcome {
            Ok(outcome) => KeyReply { reply: outcome.reply, stops: outcome.stops },
            Err(refusal) => Reply::error(refusal).into(),
        }
    }

    /// Changes the value of a key under an exclusive lock, and logs the change. `commands` are the
    /// commands that `apply` runs.
    ///
    /// # Errors
    ///
    /// Returns the same error for every command if there is no memory for a value that the commands
    /// created. If there is no memory for the new value, the new value is removed.
    fn change<R>(
        &self,
        command: &Command,
        commands: &[Argv<'_>],
        keys: &KeyspaceRef<'_>,
        env: &Env<'_>,
        apply: impl FnOnce(&mut Option<Value>) -> Outcome<R>,
    ) -> Result<Outcome<R>, Text> {
        let (key, mut refusal) = (commands[0][1], None);
        let outcome = keys.change(key, env.now_millis, |value| {
            let was_there = value.is_some();
            if let Some(layers @ (Value::RedisBloom(_) | Value::RedisCuckoo(_))) = value {
                let most = self.server.memory_left().min(env.settings.max_filter_bytes);
                layers.limit_growth(most);
            }
            let outcome = apply(value);
            // The new value can be removed, because no other command has read the new value before
            // this point.
            if !was_there
                && command.has(Flag::DenyOom)
                && !self.server.has_memory_for(value.as_ref())
            {
                *value = None;
                refusal = Some(text::server::MEMORY);
                return outcome.undone();
            }
            self.server.log_outcome(key, commands, &outcome, env);
            outcome
        });
        refusal.map_or(Ok(outcome), Err)
    }
}
