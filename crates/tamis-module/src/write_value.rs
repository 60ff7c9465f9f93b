//! What follows a panic while a value is written.
//!
//! The callbacks cannot report an error. An incomplete value makes a whole file unreadable, and the
//! file would replace the last complete one. So the process that writes a file ends:
//!
//! | command | what ends | what remains |
//! | --- | --- | --- |
//! | `BGSAVE`, `BGREWRITEAOF`, synchronization | the forked child; the server reports the error | the last file, and the keys |
//! | `SAVE`, `SHUTDOWN` | the server | the last file |
//! | `DUMP`, `MIGRATE` | nothing: `RESTORE` refuses the incomplete payload | the key |

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use valkey_module::raw::{self, RedisModuleEvent, RedisModuleIO};

use crate::api::{Ctx, Level, api, log};

/// Whether the server itself is saving. Only the main thread reads and writes it.
static IS_SAVING: AtomicBool = AtomicBool::new(false);

/// Asks the server to report when it saves.
///
/// # Safety
///
/// `ctx` is the context of the start.
pub unsafe fn register(ctx: *mut Ctx) {
    let event = RedisModuleEvent { id: raw::REDISMODULE_EVENT_PERSISTENCE, dataver: 1 };
    // SAFETY: the caller.
    unsafe { api!(RedisModule_SubscribeToServerEvent(ctx, event, Some(changed))) };
}

unsafe extern "C" fn changed(_: *mut Ctx, _: RedisModuleEvent, subevent: u64, _: *mut c_void) {
    let is_saving = subevent == raw::REDISMODULE_SUBEVENT_PERSISTENCE_SYNC_RDB_START;
    IS_SAVING.store(is_saving, Ordering::Relaxed);
}

/// Calls a function that writes a value.
///
/// # Safety
///
/// `io` is the argument of the present callback.
pub unsafe fn write_value(io: *mut RedisModuleIO, write: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(write)).is_ok() {
        return;
    }
    // SAFETY: the caller.
    unsafe {
        let ctx = api!(RedisModule_GetContextFromIO(io));
        log(ctx, Level::Warning, "tamis: a value could not be written; please report this");
        let flags = api!(RedisModule_GetContextFlags(ctx)) as u32;
        if flags & raw::REDISMODULE_CTX_FLAGS_IS_CHILD > 0 || IS_SAVING.load(Ordering::Relaxed) {
            // The server removes the file of a child that a signal ended.
            libc::raise(libc::SIGKILL);
        }
    }
}
