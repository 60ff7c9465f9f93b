//! Handles a panic while the module writes a value.
//!
//! A callback that writes a value cannot report an error. An incomplete value makes the whole file unreadable, and the
//! unreadable file would replace the last complete file. To prevent this loss, the module ends the process that writes
//! the file:
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

/// True while the main process of the server is writing an RDB file. Only the main thread reads and writes this flag.
static IS_SAVING: AtomicBool = AtomicBool::new(false);

/// Subscribes to the persistence events of the server.
///
/// # Safety
///
/// `ctx` is the context that the server passed to `RedisModule_OnLoad`.
pub unsafe fn register(ctx: *mut Ctx) {
    let event = RedisModuleEvent { id: raw::REDISMODULE_EVENT_PERSISTENCE, dataver: 1 };
    // SAFETY: the caller meets the conditions of this function.
    unsafe { api!(RedisModule_SubscribeToServerEvent(ctx, event, Some(changed))) };
}

unsafe extern "C" fn changed(_: *mut Ctx, _: RedisModuleEvent, subevent: u64, _: *mut c_void) {
    let is_saving = subevent == raw::REDISMODULE_SUBEVENT_PERSISTENCE_SYNC_RDB_START;
    IS_SAVING.store(is_saving, Ordering::Relaxed);
}

/// Calls a function that writes a value, and handles a panic of this function.
///
/// # Safety
///
/// `io` is the argument of the current callback.
pub unsafe fn write_value(io: *mut RedisModuleIO, write: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(write)).is_ok() {
        return;
    }
    // SAFETY: the caller meets the conditions of this function.
    unsafe {
        let ctx = api!(RedisModule_GetContextFromIO(io));
        log(ctx, Level::Warning, "tamis: a value could not be written; please report this");
        let flags = api!(RedisModule_GetContextFlags(ctx)) as u32;
        if flags & raw::REDISMODULE_CTX_FLAGS_IS_CHILD > 0 || IS_SAVING.load(Ordering::Relaxed) {
            // SIGKILL ends the process. If the killed process is a child, the server removes the child's incomplete
            // file.
            libc::raise(libc::SIGKILL);
        }
    }
}
