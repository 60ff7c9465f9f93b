//! Runs a command: opens its key, calls the handler, sends the reply and the change.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tamis_commands::{
    Argv, Batch, BatchItems, BatchPart, Command, Env, Handler, KeyHandler, Outcome, Settings,
    Value, WriteKeys, made_like, merge, reserve_like,
};
use tamis_resp::{Protocol, Reply};
use valkey_module::raw;

use crate::api::{Ctx, Key, Level, OK, ServerString, api, bytes, c_text, log, strings};
use crate::config;
use crate::replicate::{Replicated, Sent, replicate};
use crate::reply;
use crate::types::{self, Slot, ValueType};

/// Runs a command that a client sent.
///
/// # Safety
///
/// The arguments are those of a callback of this command.
pub unsafe fn run(
    command: &'static Command,
    ctx: *mut Ctx,
    argv: *mut *mut ServerString,
    argc: c_int,
) -> c_int {
    // SAFETY: the server passes `argc` strings, which are valid during the command.
    let ran = catch_unwind(AssertUnwindSafe(|| unsafe {
        let strings = strings(argv, argc);
        if !command.takes(strings.len()) {
            api!(RedisModule_WrongArity(ctx));
            return;
        }
        let words: Vec<&[u8]> = strings.iter().map(|word| bytes(*word)).collect();
        Call { ctx, command, strings, argv: &words }.run();
    }));
    if ran.is_err() {
        let text = format!("tamis: {} failed unexpectedly; please report this", command.name);
        // SAFETY: a command sends its reply last, so none was sent.
        unsafe {
            log(ctx, Level::Warning, &text);
            api!(RedisModule_ReplyWithError(ctx, c_text(&format!("ERR {text}")).as_ptr()));
        }
    }
    OK
}

/// A command in progress.
///
/// Invariant: `ctx` is the context of the command, and the strings are valid during it.
struct Call<'c> {
    ctx: *mut Ctx,
    command: &'static Command,
    strings: &'c [*mut ServerString],
    argv: Argv<'c>,
}

impl Call<'_> {
    fn run(&self) {
        match self.command.handler {
            Handler::Key(KeyHandler::Items(items)) if !items.inserts => self.look_up(items),
            Handler::Key(KeyHandler::Read(read)) => {
                let key = OpenKey::read(self.ctx, self.strings[1]);
                let reply = self.with_env(|env| read(key.value(), self.argv, env));
                self.send(&reply);
            }
            Handler::Key(KeyHandler::Items(items)) => self.insert(items),
            Handler::Key(handler) => self.write(|slot, env| match self.like_key() {
                Some(other) => {
                    let other = OpenKey::read(self.ctx, other);
                    match made_like(other.value(), env) {
                        Ok(made) => reserve_like(slot, made).unwrap_or_else(Outcome::from),
                        Err(reply) => Outcome::from(tamis_commands::ErrorReply(reply)),
                    }
                }
                None => handler.run(slot, self.argv, env),
            }),
            Handler::WriteKeys(WriteKeys::Merge) => self.merge(),
            Handler::Answer(answer) => self.send(&self.with_env(|env| answer(self.argv, env))),
            _ => unreachable!("only commands of a module are registered"),
        }
    }

    fn look_up(&self, items: BatchItems) {
        let key = OpenKey::read(self.ctx, self.strings[1]);
        let mut batch = Batch::default();
        batch.push(self.argv);
        // Only windows need the time.
        let is_window = key.value().is_some_and(|value| value.window_began_millis().is_some());
        let now_millis = if is_window { now_millis() } else { 0 };
        _ = batch.run(items, key.value(), now_millis);
        let answered = batch.answers(items).next().expect("one command was pushed");
        self.send(&answered.reply);
    }

    fn insert(&self, items: BatchItems) {
        self.write(|slot, env| {
            let mut batch = Batch::default();
            batch.push(self.argv);
            let outcome = batch.insert(items, slot, BatchPart::All, env);
            let answered = batch.answers(items).next().expect("one command was pushed");
            outcome.with_reply(answered)
        });
    }

    /// Runs a command that may change its key.
    fn write(&self, handle: impl FnOnce(&mut Slot, &Env<'_>) -> Outcome) {
        let mut key = OpenKey::write(self.ctx, self.strings[1]);
        let began = key.value().and_then(Value::window_began_millis);
        let outcome = self.with_env(|env| key.change(|slot| handle(slot, env)));
        if outcome.has_changed() {
            let advanced = key.value().and_then(Value::window_began_millis);
            self.send_change(&outcome, advanced.filter(|_| began.is_some() && advanced != began));
        }
        self.send(&outcome.reply);
    }

    /// Sends a change to replicas, and to clients that watch the key.
    fn send_change(&self, outcome: &Outcome, advanced_millis: Option<u64>) {
        let created = outcome.created.as_deref();
        let replicated = Replicated { created, advanced_millis, change: &outcome.change };
        let name = c_text(&self.command.name.to_ascii_lowercase());
        // SAFETY: the invariant.
        unsafe {
            replicate(self.ctx, self.strings[1], Sent::Verbatim, &replicated);
            api!(RedisModule_SignalModifiedKey(self.ctx, self.strings[1]));
            let class = raw::REDISMODULE_NOTIFY_MODULE as c_int;
            api!(RedisModule_NotifyKeyspaceEvent(self.ctx, class, name.as_ptr(), self.strings[1]));
        }
    }

    fn merge(&self) {
        let is_source = |string: &&*mut ServerString| {
            // SAFETY: the invariant.
            unsafe { bytes(**string) != self.argv[1] }
        };
        let sources: Vec<OpenKey> = self.strings[2..]
            .iter()
            .filter(is_source)
            .map(|string| OpenKey::read(self.ctx, *string))
            .collect();
        let sources: Vec<(&[u8], Option<&Value>)> =
            sources.iter().map(|key| (key.name(), key.value())).collect();
        self.write(|slot, env| {
            merge(self.argv[1], slot, &sources, env).unwrap_or_else(Outcome::from)
        });
    }

    /// Returns the source key of `TM.RESERVE key LIKE other`.
    fn like_key(&self) -> Option<*mut ServerString> {
        self.command.like_key(self.argv).map(|_| self.strings[3])
    }

    /// Calls a handler with the settings, the protocol of the client and the time.
    ///
    /// A command from a primary or from the append-only file was accepted there. So it has no
    /// limits here, and does not move the clock of a window.
    fn with_env<R>(&self, handle: impl FnOnce(&Env<'_>) -> R) -> R {
        let flags = self.flags();
        if flags & (raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING) > 0
        {
            let settings = Settings::without_limits();
            return handle(&Env::new(&settings, Protocol::Resp2, 0));
        }
        handle(&Env::new(&config::settings(), protocol(flags), now_millis()))
    }

    fn flags(&self) -> u32 {
        // SAFETY: the invariant.
        unsafe { api!(RedisModule_GetContextFlags(self.ctx)) as u32 }
    }

    fn send(&self, reply: &Reply) {
        // The server encodes these replies itself.
        let is_plain = matches!(reply, Reply::Bool(_) | Reply::Bools { .. } | Reply::Integer(_));
        let protocol = if is_plain { Protocol::Resp2 } else { protocol(self.flags()) };
        // SAFETY: the invariant. This is the only reply of the command.
        unsafe { reply::send(self.ctx, reply, protocol) };
    }
}

fn protocol(flags: u32) -> Protocol {
    if flags & raw::REDISMODULE_CTX_FLAGS_RESP3 > 0 { Protocol::Resp3 } else { Protocol::Resp2 }
}

/// Returns the time, in milliseconds since 1970.
fn now_millis() -> u64 {
    // SAFETY: the function has no conditions.
    unsafe { api!(RedisModule_Milliseconds()) as u64 }
}

/// An open key. Dropping it closes the key.
///
/// Invariant: `key` is open, or null for a key that is read and does not exist.
struct OpenKey {
    key: *mut Key,
    name: *mut ServerString,
}

impl OpenKey {
    fn read(ctx: *mut Ctx, name: *mut ServerString) -> Self {
        Self::open(ctx, name, raw::REDISMODULE_READ)
    }

    fn write(ctx: *mut Ctx, name: *mut ServerString) -> Self {
        Self::open(ctx, name, raw::REDISMODULE_READ | raw::REDISMODULE_WRITE)
    }

    fn open(ctx: *mut Ctx, name: *mut ServerString, mode: u32) -> Self {
        // SAFETY: context and name are those of the present command.
        let key = unsafe { api!(RedisModule_OpenKey(ctx, name, mode as c_int)) };
        Self { key: key.cast(), name }
    }

    fn name(&self) -> &[u8] {
        // SAFETY: the name is valid during the command.
        unsafe { bytes(self.name) }
    }

    /// Tests whether the key holds a value of the server or of another module.
    fn is_of_another_type(&self) -> bool {
        // SAFETY: the invariant. A null key is empty.
        unsafe {
            let key_type = api!(RedisModule_KeyType(self.key));
            key_type != raw::REDISMODULE_KEYTYPE_EMPTY as c_int && types::slot(self.key).is_none()
        }
    }

    /// Returns the value; `None` if the key does not exist.
    fn value(&self) -> Option<&Value> {
        // SAFETY: the invariant. `change` needs `&mut self`, so no exclusive reference exists.
        match unsafe { types::slot(self.key) } {
            Some(slot) => slot.as_ref(),
            None => self.is_of_another_type().then_some(&OTHER_TYPE),
        }
    }

    /// Calls a handler with the value, and stores the result under the key.
    fn change(&mut self, handle: impl FnOnce(&mut Slot) -> Outcome) -> Outcome {
        // SAFETY: the invariant, and `self` is borrowed uniquely.
        let Some(slot) = (unsafe { types::slot(self.key) }) else {
            let is_other = self.is_of_another_type();
            let mut slot = is_other.then(other_type);
            let outcome = handle(&mut slot);
            if let Some(value) = slot
                && !matches!(value, Value::Bytes(_))
            {
                self.set(value);
            }
            return outcome;
        };
        let before = slot.as_ref().map(ValueType::of);
        let outcome = handle(slot);
        if slot.as_ref().map(ValueType::of) != before {
            match slot.take() {
                Some(value) => self.set(value),
                // SAFETY: the key is open for a write.
                None => _ = unsafe { api!(RedisModule_DeleteKey(self.key)) },
            }
        }
        outcome
    }

    /// Replaces the value of a key that is open for a write.
    fn set(&mut self, value: Value) {
        let value_type = ValueType::of(&value).pointer();
        let pointer = types::into_pointer(value);
        // SAFETY: the key is open for a write. The server now owns the value.
        unsafe { api!(RedisModule_ModuleTypeSetValue(self.key, value_type, pointer)) };
    }
}

impl Drop for OpenKey {
    fn drop(&mut self) {
        // SAFETY: the invariant. A null key is not open.
        unsafe { api!(RedisModule_CloseKey(self.key)) };
    }
}

/// What handlers see of a value of another type: a string, which is no filter.
static OTHER_TYPE: std::sync::LazyLock<Value> = std::sync::LazyLock::new(other_type);

fn other_type() -> Value {
    Value::Bytes(tamis_commands::SparseBytes::default())
}
