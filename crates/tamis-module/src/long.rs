//! Runs a command with very many items in parts. The server runs commands of other clients between
//! two parts.
//!
//! ```text
//! command ──▶ part ──▶ timer: part ──▶ timer: part ──▶ ... ──▶ the blocked client gets its reply
//!             each part is a command of its own: its change is sent to replicas
//! ```
//!
//! The module blocks the client during a long command, and the server keeps the arguments of a blocked client. In a
//! transaction, in a script, and for a command from the primary, the module cannot block the client, so the whole
//! command runs in one turn.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tamis_commands::text::server::MEMORY;
use tamis_commands::{Command, KeyReply};
use tamis_resp::{Protocol, Reply};
use valkey_module::raw::{self, RedisModuleBlockedClient, RedisModuleCallReply};

use crate::api::{Ctx, ServerString, api, bytes, reply_text};
use crate::call::{Call, protocol};
use crate::replicate::Sent;
use crate::reply;

/// The maximum number of items that a command runs in one turn. A command with more than `MAX_ITEMS` items is a long
/// command.
const MAX_ITEMS: usize = 4096;

/// The maximum number of words before the first item. The options of a command precede the items.
const MAX_START: usize = 32;

/// The number of items in a part. The module measures the time after each part. An insert into a
/// full cuckoo filter may take 0.1 ms.
const STEP_ITEMS: usize = 64;

/// The duration of a turn. After each turn, the server runs commands of other clients.
const TURN: Duration = Duration::from_millis(1);

/// The state of a long command. The timer owns this structure.
struct Long {
    client: *mut RedisModuleBlockedClient,
    /// The context to which each part appends its replies.
    reply_ctx: *mut Ctx,
    command: &'static Command,
    protocol: Protocol,
    /// The arguments of the client. The arguments are valid until the client is unblocked or has
    /// disconnected.
    strings: *const [*mut ServerString],
    /// The index of the first item.
    first: usize,
    /// The index of the next item.
    next: usize,
    /// The number of values in the reply so far.
    values: usize,
    /// True if the client has disconnected, or if the server has unblocked the client.
    is_gone: bool,
}

/// Starts a long command. Returns false if the command is not long, or must run in one turn.
///
/// # Safety
///
/// The server passed the arguments to a callback of this command.
pub unsafe fn begin(
    command: &'static Command,
    ctx: *mut Ctx,
    strings: &[*mut ServerString],
) -> bool {
    if strings.len() <= MAX_ITEMS {
        return false;
    }
    // SAFETY: the strings and the context belong to the command. The server keeps the strings of a
    // blocked client.
    unsafe {
        let start: Vec<&[u8]> = strings[..MAX_START].iter().map(|word| bytes(*word)).collect();
        let Some(first) = command.first_item(&start) else { return false };
        let flags = api!(RedisModule_GetContextFlags(ctx)) as u32;
        if strings.len() - first <= MAX_ITEMS || flags & AT_ONCE > 0 {
            return false;
        }
        // While this node imports a slot, a client sends ASKING before a command. The timer cannot send ASKING, so this
        // code tests whether the timer may access the key.
        if flags & raw::REDISMODULE_CTX_FLAGS_CLUSTER > 0 {
            let timer = api!(RedisModule_GetDetachedThreadSafeContext(ctx));
            api!(RedisModule_SelectDb(timer, api!(RedisModule_GetSelectedDb(ctx))));
            let is_refused = other_node(timer, strings[1]).is_some();
            api!(RedisModule_FreeThreadSafeContext(timer));
            if is_refused {
                return false;
            }
        }
        let mut long = Box::new(Long {
            client: null_mut(),
            reply_ctx: ctx,
            command,
            protocol: protocol(flags),
            strings,
            first,
            next: first,
            values: 0,
            is_gone: false,
        });
        // The first part runs before the reply array begins, because a command that fails as a whole replies with one
        // error and not with an array.
        let KeyReply { reply, stops } = long.part(ctx);
        if matches!(reply, Reply::Error(_)) {
            reply::send(ctx, &reply, long.protocol);
            return true;
        }
        long.client = api!(RedisModule_BlockClient(ctx, None, None, None, 0));
        api!(RedisModule_SetDisconnectCallback(long.client, Some(disconnected)));
        long.reply_ctx = api!(RedisModule_GetThreadSafeContext(long.client));
        api!(RedisModule_ReplyWithArray(long.reply_ctx, POSTPONED_LEN));
        long.push(&reply);
        if stops {
            long.next = strings.len();
        }
        next_turn(ctx, long, 0);
    }
    true
}

/// The flags of a context in which the module cannot block the client.
const AT_ONCE: u32 = raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING
    | raw::REDISMODULE_CTX_FLAGS_MULTI
    | raw::REDISMODULE_CTX_FLAGS_LUA
    | raw::REDISMODULE_CTX_FLAGS_REPLICATED
    | raw::REDISMODULE_CTX_FLAGS_LOADING;

/// The placeholder length of an array whose length is known only after the last value.
const POSTPONED_LEN: i64 = raw::REDISMODULE_POSTPONED_LEN as i64;

/// The time between two tests for paused writes, in milliseconds.
const PAUSE_MILLIS: i64 = 5;

/// Continues the command after `millis` milliseconds. Zero milliseconds mean the next turn of the event loop.
///
/// # Safety
///
/// `ctx` is the context of the current command or timer.
unsafe fn next_turn(ctx: *mut Ctx, long: Box<Long>, millis: i64) {
    let long = Box::into_raw(long).cast();
    // SAFETY: the timer owns the command after this call.
    unsafe { api!(RedisModule_CreateTimer(ctx, millis, Some(turn), long)) };
}

/// Runs the parts of one turn when the timer fires.
unsafe extern "C" fn turn(ctx: *mut Ctx, data: *mut c_void) {
    // SAFETY: `next_turn` passed the ownership of the command to the timer.
    let mut long = unsafe { Box::from_raw(data.cast::<Long>()) };
    let client = long.client.addr();
    long.is_gone = gone().extract_if(.., |gone| *gone == client).count() > 0;
    // SAFETY: the server passes a valid context to this callback.
    unsafe {
        let ran = catch_unwind(AssertUnwindSafe(|| long.parts(ctx)));
        let pause_millis = ran.unwrap_or_else(|_| {
            long.fail(&Reply::error(FAILED));
            0
        });
        if long.is_done() { long.end() } else { next_turn(ctx, long, pause_millis) }
    }
}

/// The addresses of blocked clients that have disconnected. The timer of the command removes the
/// address of its client.
fn gone() -> MutexGuard<'static, Vec<usize>> {
    static GONE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    GONE.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn disconnected(_: *mut Ctx, client: *mut RedisModuleBlockedClient) {
    gone().push(client.addr());
}

impl Long {
    fn is_done(&self) -> bool {
        // SAFETY: the code reads only the length of the slice.
        self.is_gone || self.next >= self.strings.len()
    }

    /// Runs parts until the time of a turn has passed. Returns the milliseconds to wait before the
    /// next turn.
    ///
    /// # Safety
    ///
    /// The conditions are the same as for [`part`](Self::part).
    unsafe fn parts(&mut self, ctx: *mut Ctx) -> i64 {
        if !self.is_done() && self.is_paused() {
            return PAUSE_MILLIS;
        }
        let began = Instant::now();
        while !self.is_done() && began.elapsed() < TURN {
            // SAFETY: the caller meets the conditions of this function.
            unsafe {
                if let Some(refusal) = self.refusal(ctx) {
                    self.fail(&refusal);
                    break;
                }
                let KeyReply { reply, stops } = self.part(ctx);
                self.push(&reply);
                if stops || matches!(reply, Reply::Error(_)) {
                    self.next = self.strings.len();
                }
            }
        }
        0
    }

    /// Appends an error as the last value of the reply, and ends the command.
    ///
    /// # Safety
    ///
    /// The client is blocked.
    unsafe fn fail(&mut self, error: &Reply) {
        // SAFETY: the caller meets the conditions of this function.
        unsafe { self.push_one(error) };
        self.next = self.strings.len();
    }

    /// Runs the next part and returns the reply of the part.
    ///
    /// # Safety
    ///
    /// `ctx` is the context of the current command or timer. The client has not disconnected.
    unsafe fn part(&mut self, ctx: *mut Ctx) -> KeyReply {
        // SAFETY: the client has not disconnected, so the strings of the client are valid.
        let strings = unsafe { &*self.strings };
        let end = strings.len().min(self.next + STEP_ITEMS);
        let words = strings[..self.first].iter().chain(&strings[self.next..end]);
        // SAFETY: the strings of the client are valid.
        let argv: Vec<&[u8]> = words.map(|word| unsafe { bytes(*word) }).collect();
        self.next = end;
        Call { ctx, command: self.command, strings, argv: &argv, sent: Sent::Argv(&argv) }.run()
    }

    /// Tests whether the command must not change a key now, because a client has paused writes or a failover to a
    /// replica is in progress. If a module sends a change while writes are paused, the server exits.
    fn is_paused(&self) -> bool {
        // SAFETY: this function of the server has no preconditions.
        self.command.may_change() && unsafe { api!(RedisModule_AvoidReplicaTraffic()) } != 0
    }

    /// Returns an error if the command cannot continue. The state of the server may have changed
    /// since the start of the command.
    ///
    /// # Safety
    ///
    /// The conditions are the same as for [`part`](Self::part).
    unsafe fn refusal(&self, ctx: *mut Ctx) -> Option<Reply> {
        // SAFETY: the context and the strings are valid.
        unsafe {
            let flags = api!(RedisModule_GetContextFlags(ctx)) as u32;
            if self.command.may_change() {
                if flags & raw::REDISMODULE_CTX_FLAGS_SLAVE > 0 {
                    return Some(Reply::error(READ_ONLY));
                }
                if flags & raw::REDISMODULE_CTX_FLAGS_OOM > 0 {
                    return Some(Reply::error(MEMORY));
                }
            }
            if flags & raw::REDISMODULE_CTX_FLAGS_CLUSTER == 0 {
                return None;
            }
            other_node(ctx, (&*self.strings)[1]).map(Reply::error)
        }
    }

    /// Appends the reply of a part to the reply of the command.
    ///
    /// # Safety
    ///
    /// The client is blocked.
    unsafe fn push(&mut self, reply: &Reply) {
        // SAFETY: the context of the reply belongs to the blocked client.
        unsafe {
            match reply {
                Reply::Array(values) => values.iter().for_each(|value| self.push_one(value)),
                Reply::Bools { mask, len } => {
                    for i in 0..*len {
                        reply::send_bool(self.reply_ctx, mask[i / 64] >> (i % 64) & 1 == 1);
                    }
                    self.values += len;
                }
                value => self.push_one(value),
            }
        }
    }

    /// # Safety
    ///
    /// The conditions are the same as for [`push`](Self::push).
    unsafe fn push_one(&mut self, value: &Reply) {
        // SAFETY: the context of the reply belongs to the blocked client.
        unsafe { reply::send(self.reply_ctx, value, self.protocol) };
        self.values += 1;
    }

    /// Sends the reply to the client and frees the command.
    ///
    /// # Safety
    ///
    /// The module has blocked `client` and has not unblocked `client`.
    unsafe fn end(self) {
        // SAFETY: the caller meets the conditions of this function.
        unsafe {
            api!(RedisModule_ReplySetArrayLength(self.reply_ctx, self.values as i64));
            api!(RedisModule_FreeThreadSafeContext(self.reply_ctx));
            api!(RedisModule_SetDisconnectCallback(self.client, None));
            api!(RedisModule_UnblockClient(self.client, null_mut()));
        }
    }
}

const FAILED: &str = "ERR tamis: the command failed unexpectedly; please report this";
const READ_ONLY: &str = "READONLY You can't write against a read only replica.";

/// Returns an error if another node of the cluster owns the slot of the key, or stores the key
/// while the slot migrates. The server rejects a call with a key of another node.
///
/// # Safety
///
/// The context and the key are valid.
unsafe fn other_node(ctx: *mut Ctx, key: *mut ServerString) -> Option<String> {
    // SAFETY: the format names one string, and `E` requests errors as replies.
    unsafe {
        let reply = api!(RedisModule_Call(ctx, c"EXISTS".as_ptr(), c"Es".as_ptr(), key));
        let refusal = error_of(reply);
        if !reply.is_null() {
            api!(RedisModule_FreeCallReply(reply));
        }
        refusal
    }
}

/// Returns the text of an error reply. Returns `None` for any other reply.
///
/// # Safety
///
/// `reply` is null or the result of `RedisModule_Call`.
unsafe fn error_of(reply: *mut RedisModuleCallReply) -> Option<String> {
    // SAFETY: the caller meets the conditions of this function.
    unsafe {
        if reply.is_null() {
            return Some("ERR the key is not on this node any more".to_owned());
        }
        if api!(RedisModule_CallReplyType(reply)) != raw::REDISMODULE_REPLY_ERROR as c_int {
            return None;
        }
        Some(reply_text(reply))
    }
}
