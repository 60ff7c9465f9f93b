//! Runs a command: opens the key, calls the handler and sends the change to replicas.

use std::cell::Cell;
use std::ffi::c_int;

use tamis_commands::text::server::MEMORY;
use tamis_commands::{
    Argv, Batch, BatchItems, BatchPart, Command, Env, ErrorReply, Family, Handler, KeyHandler,
    KeyReply, Outcome, ScalableBloom, Value, WriteKeys, made_like, merge, reserve_like,
};
use tamis_resp::{Protocol, Reply};
use valkey_module::raw;

use crate::api::{Ctx, ServerString, api, bytes};
use crate::open_key::OpenKey;
use crate::registered_name::registered_name;
use crate::replicate::{Replicated, Sent, replicate};
use crate::value_type::Slot;
use crate::{config, max_memory};

/// A command in progress.
///
/// Invariant: `ctx` is the context of the command, and `strings` are valid during the command.
pub struct Call<'c> {
    pub ctx: *mut Ctx,
    pub command: &'static Command,
    /// The arguments of the client. The first two strings are the name and the key.
    pub strings: &'c [*mut ServerString],
    pub argv: Argv<'c>,
    /// The argv that replicas run.
    pub sent: Sent<'c>,
}

impl Call<'_> {
    /// Runs the command and sends the change to replicas. The caller sends the reply.
    pub fn run(&self) -> KeyReply {
        match self.command.handler {
            Handler::Key(KeyHandler::Items(items)) if !items.inserts => self.look_up(items),
            Handler::Key(KeyHandler::Read(read)) => {
                let key = OpenKey::read(self.ctx, self.strings[1]);
                self.with_env(|env| read(key.value(), self.argv, env)).into()
            }
            Handler::Key(KeyHandler::Items(items)) => self.insert(items),
            Handler::Key(handler) => match self.like_key() {
                Some(other) => self.reserve_like(other),
                None => self.write_key(|slot, env| handler.run(slot, self.argv, env)),
            },
            Handler::WriteKeys(WriteKeys::Merge) => self.merge(),
            Handler::Answer(answer) => self.with_env(|env| answer(self.argv, env)).into(),
            _ => unreachable!("only commands of a module are registered"),
        }
    }

    fn look_up(&self, items: BatchItems) -> KeyReply {
        let key = OpenKey::read(self.ctx, self.strings[1]);
        if let Some((filter, hash)) = self.bloom_and_hash(items, key.value()) {
            return Reply::Bool(filter.contains_hash(hash)).into();
        }
        // Only a window filter needs the time.
        let is_window = key.value().is_some_and(|value| value.window_began_millis().is_some());
        let now_millis = if is_window { now_millis() } else { 0 };
        self.with_batch(|batch| {
            _ = batch.run(items, key.value(), now_millis);
            batch.answers(items).next().expect("one command was pushed")
        })
    }

    /// Returns the filter and the hash of the item if the command has one item and the key holds a
    /// filter of `BF.RESERVE`. A command with one item runs without a batch, because the batch
    /// takes a tenth of the command's time.
    fn bloom_and_hash<'v>(
        &self,
        items: BatchItems,
        value: Option<&'v Value>,
    ) -> Option<(&'v ScalableBloom, u64)> {
        match value {
            Some(Value::Bloom(filter)) if items.is_one && items.family != Family::Cuckoo => {
                Some((filter, filter.hasher().hash(self.argv[2])))
            }
            _ => None,
        }
    }

    /// Calls a function with a batch that contains this command.
    fn with_batch<R>(&self, run: impl FnOnce(&mut Batch<'_>) -> R) -> R {
        // After a panic, the next command gets a new batch.
        let mut batch = BATCH.take().reused();
        batch.push(self.argv);
        let ran = run(&mut batch);
        BATCH.set(batch.reused());
        ran
    }

    fn insert(&self, items: BatchItems) -> KeyReply {
        let mut key = OpenKey::write(self.ctx, self.strings[1]);
        let hash = self.bloom_and_hash(items, key.value()).map(|(_, hash)| hash);
        if let (Some(hash), Some(Some(Value::Bloom(filter)))) = (hash, key.slot())
            && let Ok(is_new) = filter.insert_hash(hash)
        {
            if is_new {
                self.send_change(Replicated::VERBATIM);
            }
            return Reply::Bool(is_new).into();
        }
        self.with_batch(|batch| {
            // An insert into a Bloom filter that need not grow uses neither the settings nor the
            // time.
            if let Some(mut answers) = batch.run(items, key.value(), 0) {
                let changed = answers.count_ones() > 0;
                let answered = answers.next().expect("one command was pushed");
                if changed {
                    self.send_change(Replicated::VERBATIM);
                }
                return answered;
            }
            self.write(key, |slot, env| {
                let outcome = batch.insert(items, slot, BatchPart::All, env);
                let answered = batch.answers(items).next().expect("one command was pushed");
                outcome.with_reply(answered)
            })
        })
    }

    fn write_key(&self, handle: impl FnOnce(&mut Slot, &Env<'_>) -> Outcome) -> KeyReply {
        self.write(OpenKey::write(self.ctx, self.strings[1]), handle)
    }

    /// Runs a command that may change its key.
    fn write(
        &self,
        mut key: OpenKey,
        handle: impl FnOnce(&mut Slot, &Env<'_>) -> Outcome,
    ) -> KeyReply {
        let stored = key.value().and_then(Value::window_stored_millis);
        let existed = key.value().is_some();
        let outcome = self.with_env(|env| {
            key.change(|slot| {
                if let Some(layers @ (Value::RedisBloom(_) | Value::RedisCuckoo(_))) = slot {
                    layers.limit_growth(growth_bytes(env, layers.heap_bytes()));
                }
                let outcome = handle(slot, env);
                if !existed && slot.as_ref().is_some_and(|new| is_above_max_memory(env, new)) {
                    *slot = None;
                    return outcome.undone().with_reply(Reply::error(MEMORY).into());
                }
                outcome
            })
        });
        if outcome.has_changed() {
            let advanced = key.value().and_then(Value::window_began_millis);
            self.send_change(Replicated {
                created: outcome.created.as_deref(),
                advanced_millis: advanced.filter(|_| stored.is_some() && advanced != stored),
                is_deleted: existed && key.value().is_none(),
                change: &outcome.change,
            });
        }
        KeyReply { reply: outcome.reply, stops: outcome.stops }
    }

    /// Sends a change to replicas, and notifies clients that watch the key.
    fn send_change(&self, replicated: Replicated<'_>) {
        let name = registered_name(self.command);
        // SAFETY: the context and the strings are valid by the invariant.
        unsafe {
            replicate(self.ctx, self.strings[1], self.sent, replicated);
            api!(RedisModule_SignalModifiedKey(self.ctx, self.strings[1]));
            let class = raw::REDISMODULE_NOTIFY_MODULE as c_int;
            api!(RedisModule_NotifyKeyspaceEvent(self.ctx, class, name.as_ptr(), self.strings[1]));
        }
    }

    /// Creates a filter with the layout of the filter under another key. The two keys may be the same key, so this
    /// function closes the other key before opening the new key.
    fn reserve_like(&self, other: *mut ServerString) -> KeyReply {
        let other = OpenKey::read(self.ctx, other);
        let made = self.with_env(|env| made_like(other.value(), env));
        drop(other);
        self.write_key(|slot, _| {
            let reserved = made.map_err(ErrorReply).and_then(|made| reserve_like(slot, made));
            reserved.unwrap_or_else(Outcome::from)
        })
    }

    fn merge(&self) -> KeyReply {
        let is_source = |string: &&*mut ServerString| {
            // SAFETY: the context and the strings are valid by the invariant.
            unsafe { bytes(**string) != self.argv[1] }
        };
        let sources: Vec<OpenKey> = self.strings[2..]
            .iter()
            .filter(is_source)
            .map(|string| OpenKey::read(self.ctx, *string))
            .collect();
        let sources: Vec<(&[u8], Option<&Value>)> =
            sources.iter().map(|key| (key.name(), key.value())).collect();
        self.write_key(|slot, env| {
            merge(self.argv[1], slot, &sources, env).unwrap_or_else(Outcome::from)
        })
    }

    /// Returns the source key of `TM.RESERVE key LIKE other`.
    fn like_key(&self) -> Option<*mut ServerString> {
        self.command.like_key(self.argv).map(|_| self.strings[3])
    }

    /// Calls a handler with the settings, the client's protocol and the time.
    ///
    /// A server has already accepted each command from a primary or from the append-only file. This function therefore
    /// applies no limits to an accepted command, and an accepted command does not advance the clock of a window. If an
    /// accepted command creates a filter, RedisBloom wrote the command, so the filter gets RedisBloom's layout.
    fn with_env<R>(&self, handle: impl FnOnce(&Env<'_>) -> R) -> R {
        let flags = self.flags();
        if flags & (raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING) > 0
        {
            let settings = config::settings().obeying();
            return handle(&Env::new(&settings, Protocol::Resp2, 0));
        }
        handle(&Env::new(&config::settings(), protocol(flags), now_millis()))
    }

    /// Returns the flags that describe the server and the client. A call of this method takes longer than a lookup in a
    /// filter.
    pub fn flags(&self) -> u32 {
        // SAFETY: the context and the strings are valid by the invariant.
        unsafe { api!(RedisModule_GetContextFlags(self.ctx)) as u32 }
    }

    /// Returns the client's protocol if the encoding of the reply depends on the protocol,
    /// otherwise RESP2.
    pub fn protocol_of(&self, reply: &Reply) -> Protocol {
        match reply {
            // The server encodes booleans and integers for the protocol of the client.
            Reply::Bool(_) | Reply::Bools { .. } | Reply::Integer(_) => Protocol::Resp2,
            _ => protocol(self.flags()),
        }
    }
}

/// Returns how many bytes one growth step of a filter may allocate. `held_bytes` is the current size of the filter. A
/// command that another server has accepted has no limit. The time 0 marks an accepted command.
fn growth_bytes(env: &Env<'_>, held_bytes: u64) -> u64 {
    match env.now_millis {
        0 => u64::MAX,
        _ => max_memory::growth_bytes(held_bytes).min(env.settings.max_filter_bytes),
    }
}

/// Tests whether a new filter exceeds `maxmemory`.
fn is_above_max_memory(env: &Env<'_>, new: &Value) -> bool {
    env.now_millis > 0 && max_memory::is_above(new.heap_bytes())
}

/// Returns the client's protocol according to the context flags.
pub fn protocol(flags: u32) -> Protocol {
    if flags & raw::REDISMODULE_CTX_FLAGS_RESP3 > 0 { Protocol::Resp3 } else { Protocol::Resp2 }
}

/// Returns the time, in milliseconds since 1970.
pub fn now_millis() -> u64 {
    // SAFETY: this function of the server has no preconditions.
    unsafe { api!(RedisModule_Milliseconds()) as u64 }
}

thread_local! {
    /// The last batch, whose memory the next batch uses again.
    static BATCH: Cell<Batch<'static>> = Cell::default();
}
