//! Limits the size of a new filter and the growth of a filter to the server's `maxmemory`.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use valkey_module::raw::{self, RedisModuleEvent};

use crate::api::{Ctx, api, reply_text};

/// The value of `maxmemory` in bytes, or 0 if the server has no limit. Only the main thread reads
/// and writes `MAX_BYTES` and `EVICTS`.
static MAX_BYTES: AtomicU64 = AtomicU64::new(0);

/// True if `maxmemory-policy` makes the server evict keys.
static EVICTS: AtomicBool = AtomicBool::new(false);

/// Reads `maxmemory` and `maxmemory-policy`, now and after each change of the server's
/// configuration.
///
/// # Safety
///
/// `ctx` is the context that the server passed to `RedisModule_OnLoad`.
pub unsafe fn register(ctx: *mut Ctx) {
    let event = RedisModuleEvent { id: raw::REDISMODULE_EVENT_CONFIG, dataver: 1 };
    // SAFETY: the caller passes a valid context.
    unsafe {
        api!(RedisModule_SubscribeToServerEvent(ctx, event, Some(changed)));
        read(ctx);
    }
}

unsafe extern "C" fn changed(ctx: *mut Ctx, _: RedisModuleEvent, _: u64, _: *mut c_void) {
    // SAFETY: the server passes a valid context to this callback.
    unsafe { read(ctx) };
}

/// # Safety
///
/// `ctx` is the context of the current callback.
unsafe fn read(ctx: *mut Ctx) {
    // SAFETY: the caller passes a valid context.
    let (bytes, policy) =
        unsafe { (parameter(ctx, c"maxmemory"), parameter(ctx, c"maxmemory-policy")) };
    MAX_BYTES.store(bytes.parse().unwrap_or(0), Ordering::Relaxed);
    EVICTS.store(policy != "noeviction", Ordering::Relaxed);
}

/// Returns the value of a server parameter. Returns an empty text if the server has no parameter of
/// this name.
///
/// # Safety
///
/// The conditions are the same as for [`read`].
unsafe fn parameter(ctx: *mut Ctx, name: &CStr) -> String {
    // SAFETY: the format names two texts. The reply is null if the server has renamed the command.
    unsafe {
        let (command, format) = (c"CONFIG".as_ptr(), c"cc".as_ptr());
        let reply = api!(RedisModule_Call(ctx, command, format, c"GET".as_ptr(), name.as_ptr()));
        if reply.is_null() {
            return String::new();
        }
        let value = api!(RedisModule_CallReplyArrayElement(reply, 1));
        let text = if value.is_null() { String::new() } else { reply_text(value) };
        api!(RedisModule_FreeCallReply(reply));
        text
    }
}

/// Returns how many bytes one growth step of a filter may allocate. `held_bytes` is the current size of the filter. The
/// limit is the unused part of `maxmemory`. If the server evicts keys, the growth may also use the memory of all other
/// keys.
pub fn growth_bytes(held_bytes: u64) -> u64 {
    match MAX_BYTES.load(Ordering::Relaxed) {
        0 => u64::MAX,
        max if EVICTS.load(Ordering::Relaxed) => evictable_bytes(max).saturating_sub(held_bytes),
        max => (max as f64 * (1.0 - used_ratio())) as u64,
    }
}

/// Tests whether a new filter of `new_bytes` exceeds `maxmemory`. The filter is already allocated.
/// If the server evicts keys, the filter may use the memory of all other keys.
pub fn is_above(new_bytes: u64) -> bool {
    match MAX_BYTES.load(Ordering::Relaxed) {
        0 => false,
        max if EVICTS.load(Ordering::Relaxed) => new_bytes > evictable_bytes(max),
        _ => used_ratio() > 1.0,
    }
}

/// Returns how many bytes all keys together may use. The remaining part of `maxmemory` is for clients and the server.
/// Without a reserve for clients and the server, the server would evict all other keys, and then the filter.
fn evictable_bytes(max: u64) -> u64 {
    max - (max / 8).min(64 << 20)
}

/// Returns the ratio of used memory to `maxmemory`.
fn used_ratio() -> f64 {
    // SAFETY: this function of the server has no preconditions.
    f64::from(unsafe { api!(RedisModule_GetUsedMemoryRatio()) })
}
