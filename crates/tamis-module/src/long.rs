//! Runs a command with very many items in parts, between which other clients have their turn.
//!
//! ```text
//! command ──▶ part ──▶ timer: part ──▶ timer: part ──▶ ... ──▶ the blocked client gets its reply
//!             each part is a command of its own: its change is sent to replicas
//! ```
//!
//! The server keeps the arguments of a blocked client. In a transaction, in a script, and for a
//! command of the primary, a client cannot be blocked, so the command runs at once.

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

/// A command with more items is long.
const MAX_ITEMS: usize = 4096;

/// Options come before the items: no command has more words before its first item.
const MAX_START: usize = 32;

/// The items of a part that is measured. An insert into a full cuckoo filter may take 0.1 ms.
const STEP_ITEMS: usize = 64;

/// How long parts run before other clients have their turn.
const TURN: Duration = Duration::from_millis(1);

/// A long command in progress. The timer owns it.
struct Long {
    client: *mut RedisModuleBlockedClient,
    /// The context in which the reply grows.
    reply_ctx: *mut Ctx,
    command: &'static Command,
    protocol: Protocol,
    /// The arguments of the client, which are valid until the client is unblocked or gone.
    strings: *const [*mut ServerString],
    /// The index of the first item, and of the next.
    first: usize,
    next: usize,
    /// The values of the reply so far.
    values: usize,
    /// The client disconnected, or the server unblocked it.
    is_gone: bool,
}

/// Starts a long command. Returns false if the command is not long, or must run at once.
///
/// # Safety
///
/// The arguments are those of a callback of this command.
pub unsafe fn begin(
    command: &'static Command,
    ctx: *mut Ctx,
    strings: &[*mut ServerString],
) -> bool {
    if strings.len() <= MAX_ITEMS {
        return false;
    }
    // SAFETY: the strings and the context are those of the command. The server keeps the strings of
    // a blocked client.
    unsafe {
        let start: Vec<&[u8]> = strings[..MAX_START].iter().map(|word| bytes(*word)).collect();
        let Some(first) = command.first_item(&start) else { return false };
        let flags = api!(RedisModule_GetContextFlags(ctx)) as u32;
        if strings.len() - first <= MAX_ITEMS || flags & AT_ONCE > 0 {
            return false;
        }
        // The timer is not a client that sent ASKING for a key of a slot that is being imported.
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
        // A refusal of the whole command is a single error, so the first part runs before the
        // array begins.
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

/// The conditions in which a client cannot be blocked.
const AT_ONCE: u32 = raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING
    | raw::REDISMODULE_CTX_FLAGS_MULTI
    | raw::REDISMODULE_CTX_FLAGS_LUA
    | raw::REDISMODULE_CTX_FLAGS_REPLICATED
    | raw::REDISMODULE_CTX_FLAGS_LOADING;

/// The length of an array that is known only at its end.
const POSTPONED_LEN: i64 = raw::REDISMODULE_POSTPONED_LEN as i64;

/// How long a command waits before it tests again whether writes are paused, in milliseconds.
const PAUSE_MILLIS: i64 = 5;

/// Continues after some milliseconds; zero is the next turn of the event loop.
///
/// # Safety
///
/// `ctx` is the context of the present command or timer.
unsafe fn next_turn(ctx: *mut Ctx, long: Box<Long>, millis: i64) {
    let long = Box::into_raw(long).cast();
    // SAFETY: the timer owns the command from here on.
    unsafe { api!(RedisModule_CreateTimer(ctx, millis, Some(turn), long)) };
}

/// Runs parts for a turn.
unsafe extern "C" fn turn(ctx: *mut Ctx, data: *mut c_void) {
    // SAFETY: `next_turn` gave the command to the timer.
    let mut long = unsafe { Box::from_raw(data.cast::<Long>()) };
    let client = long.client.addr();
    long.is_gone = gone().extract_if(.., |gone| *gone == client).count() > 0;
    // SAFETY: the context of this callback.
    unsafe {
        let ran = catch_unwind(AssertUnwindSafe(|| long.parts(ctx)));
        let pause_millis = ran.unwrap_or_else(|_| {
            long.fail(&Reply::error(FAILED));
            0
        });
        if long.is_done() { long.end() } else { next_turn(ctx, long, pause_millis) }
    }
}

/// The addresses of blocked clients that are gone, until the timer of their command sees them.
fn gone() -> MutexGuard<'static, Vec<usize>> {
    static GONE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    GONE.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn disconnected(_: *mut Ctx, client: *mut RedisModuleBlockedClient) {
    gone().push(client.addr());
}

impl Long {
    fn is_done(&self) -> bool {
        // SAFETY: only the length of the slice is read.
        self.is_gone || self.next >= self.strings.len()
    }

    /// Runs parts for a turn. Returns the milliseconds to wait before the next turn.
    ///
    /// # Safety
    ///
    /// As for [`part`](Self::part).
    unsafe fn parts(&mut self, ctx: *mut Ctx) -> i64 {
        if !self.is_done() && self.is_paused() {
            return PAUSE_MILLIS;
        }
        let began = Instant::now();
        while !self.is_done() && began.elapsed() < TURN {
            // SAFETY: the caller.
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

    /// Ends the reply with an error.
    ///
    /// # Safety
    ///
    /// The client is blocked.
    unsafe fn fail(&mut self, error: &Reply) {
        // SAFETY: the caller.
        unsafe { self.push_one(error) };
        self.next = self.strings.len();
    }

    /// Runs the next part. Returns its reply.
    ///
    /// # Safety
    ///
    /// `ctx` is the context of the present command or timer, and the client is blocked.
    unsafe fn part(&mut self, ctx: *mut Ctx) -> KeyReply {
        // SAFETY: the client is not gone, so its strings are valid.
        let strings = unsafe { &*self.strings };
        let end = strings.len().min(self.next + STEP_ITEMS);
        let words = strings[..self.first].iter().chain(&strings[self.next..end]);
        // SAFETY: as above.
        let argv: Vec<&[u8]> = words.map(|word| unsafe { bytes(*word) }).collect();
        self.next = end;
        Call { ctx, command: self.command, strings, argv: &argv, sent: Sent::Argv(&argv) }.run()
    }

    /// Tests whether the command must not change anything now: a client has paused writes, or the
    /// server hands over to a replica. The server ends itself if a module sends a change then.
    fn is_paused(&self) -> bool {
        // SAFETY: the function has no conditions.
        self.command.may_change() && unsafe { api!(RedisModule_AvoidReplicaTraffic()) } != 0
    }

    /// Returns why the command cannot go on. The state of the server may have changed since its
    /// start.
    ///
    /// # Safety
    ///
    /// As for [`part`](Self::part).
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

    /// Appends the values of the reply to a part.
    ///
    /// # Safety
    ///
    /// The client is blocked.
    unsafe fn push(&mut self, reply: &Reply) {
        // SAFETY: the context of the reply belongs to the client.
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
    /// As for [`push`](Self::push).
    unsafe fn push_one(&mut self, value: &Reply) {
        // SAFETY: as in `push`.
        unsafe { reply::send(self.reply_ctx, value, self.protocol) };
        self.values += 1;
    }

    /// Sends the reply and frees the command.
    ///
    /// # Safety
    ///
    /// `client` was blocked and not unblocked.
    unsafe fn end(self) {
        // SAFETY: the caller.
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

/// Returns an error if another node of the cluster owns the slot of the key, or has the key while
/// the slot migrates. The server refuses a call for such a key.
///
/// # Safety
///
/// The context and the key are valid.
unsafe fn other_node(ctx: *mut Ctx, key: *mut ServerString) -> Option<String> {
    // SAFETY: the format names one string, and asks for errors as a reply.
    unsafe {
        let reply = api!(RedisModule_Call(ctx, c"EXISTS".as_ptr(), c"Es".as_ptr(), key));
        let refusal = error_of(reply);
        if !reply.is_null() {
            api!(RedisModule_FreeCallReply(reply));
        }
        refusal
    }
}

/// Returns the text of an error reply.
///
/// # Safety
///
/// `reply` is null or a reply of a call.
unsafe fn error_of(reply: *mut RedisModuleCallReply) -> Option<String> {
    // SAFETY: the caller.
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
