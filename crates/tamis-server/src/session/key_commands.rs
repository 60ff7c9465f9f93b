//! Runs commands about one key under a shared or an exclusive lock of its value.

use tamis_commands::{
    Argv, Batch, BatchAnswers, BatchItems, Command, Env, Flag, KeyHandler, Outcome, ReadHandler,
    Value, WriteHandler, load_decoded, made_like, reserve_like, text,
};
use tamis_resp::Reply;

use super::Session;
use crate::keyspace::{KeyspaceRef, SharedAccess};
use crate::persistence::Log;

/// The reply to a command about one key.
pub(crate) struct KeyReply {
    pub reply: Reply,
    /// Every later item would get the same error: see [`Outcome::stops`].
    pub stops: bool,
}

impl Session {
    /// Runs a batch under shared access to its value and passes the answers to `take`. Counts
    /// `lookups` commands as keyspace hits or misses if the batch only reads. Returns false, with
    /// nothing changed, if the batch needs exclusive access.
    pub fn run_shared(
        &self,
        items: BatchItems,
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
            // Bits are set before they are logged. Until then the ticket holds back answers that
            // may depend on them.
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

    /// Runs a batch that inserts under exclusive access to its value, and writes a reply for each
    /// command. Returns false, with nothing changed, if each command must run alone.
    pub(super) fn run_alone(
        &self,
        items: BatchItems,
        batch: &mut Batch<'_>,
        commands: &[Argv<'_>],
        keys: &SharedAccess<'_>,
        env: &Env<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut has_run = false;
        keys.write(commands[0][1], env.now_millis, |value| {
            let Some(mut answers) = batch.run_alone(value, env.now_millis) else { return };
            has_run = true;
            for argv in commands {
                answers.next_reply(items, argv.len()).encode(self.protocol, out);
                self.server.log_command(argv, env);
            }
        });
        has_run
    }

    /// Runs a command about the value of its key. `decoded` is the data of the command if the
    /// caller has decoded it already.
    pub fn run_one(
        &self,
        handler: KeyHandler,
        command: &Command,
        argv: Argv<'_>,
        keys: &KeyspaceRef<'_>,
        env: &Env<'_>,
        decoded: Option<Result<Value, Reply>>,
    ) -> KeyReply {
        match handler {
            KeyHandler::Read(read) => {
                KeyReply { reply: self.read_one(read, argv, keys, env), stops: false }
            }
            KeyHandler::Write(write) => self.write_one(write, command, argv, keys, env, decoded),
        }
    }

    fn read_one(
        &self,
        read: ReadHandler,
        argv: Argv<'_>,
        keys: &KeyspaceRef<'_>,
        env: &Env<'_>,
    ) -> Reply {
        keys.read_measured(argv[1], env.now_millis, |value, items_per_second| {
            self.note_lookups(value.is_some(), 1);
            let max_reply_bytes = env.max_reply_bytes.min(self.server.max_reply_bytes(value));
            read(value, argv, &Env { items_per_second, max_reply_bytes, ..*env })
        })
    }

    fn write_one(
        &self,
        write: WriteHandler,
        command: &Command,
        argv: Argv<'_>,
        keys: &KeyspaceRef<'_>,
        env: &Env<'_>,
        mut decoded: Option<Result<Value, Reply>>,
    ) -> KeyReply {
        // Read before the key is locked: no command holds the locks of two keys.
        let like = command
            .like_key(argv)
            .map(|other| keys.read(other, env.now_millis, |other| made_like(other, env)));
        let mut made = match like.transpose() {
            Ok(made) => made,
            Err(reply) => return KeyReply { reply, stops: false },
        };
        let outcome = keys.change(argv[1], env.now_millis, |value| {
            let was_there = value.is_some();
            if let Some(layers @ (Value::RedisBloom(_) | Value::RedisCuckoo(_))) = value {
                layers.limit_growth(self.server.memory_left());
            }
            let outcome = match (made.take(), decoded.take()) {
                (Some(made), _) => reserve_like(value, made),
                (None, Some(decoded)) => load_decoded(value, argv, decoded),
                (None, None) => {
                    let max_reply_bytes = self.server.max_reply_bytes(value.as_ref());
                    let max_reply_bytes = max_reply_bytes.min(env.max_reply_bytes);
                    write(value, argv, &Env { max_reply_bytes, ..*env })
                }
            };
            // No other command has seen the new value yet, so it can be removed.
            if !was_there
                && command.has(Flag::DenyOom)
                && !self.server.has_memory_for(value.as_ref())
            {
                *value = None;
                return Outcome::refused(text::server::MEMORY);
            }
            self.server.log_outcome(argv[1], argv, &outcome, env);
            outcome
        });
        KeyReply { reply: outcome.reply, stops: outcome.stops }
    }
}
