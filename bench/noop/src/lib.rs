//! A module for Redis with the command `NOOP key item`, which replies with 0 and reads no key. The
//! time of the command is the lower bound for every module command with these arguments.

use std::ffi::c_int;

use valkey_module::raw::{self, RedisModuleCtx as Ctx, RedisModuleString as ServerString};

const OK: c_int = raw::REDISMODULE_OK as c_int;
const ERR: c_int = raw::REDISMODULE_ERR as c_int;

/// Registers the command.
///
/// # Safety
///
/// The server passes the context of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut Ctx,
    _: *mut *mut ServerString,
    _: c_int,
) -> c_int {
    let version = raw::REDISMODULE_APIVER_1 as c_int;
    // SAFETY: the context is valid, and the names end with a zero. The first call sets the pointer
    // to the function of the second call.
    unsafe {
        let status = raw::Export_RedisModule_Init(ctx, c"noop".as_ptr(), 1, version);
        if status != OK {
            return status;
        }
        let Some(create) = raw::RedisModule_CreateCommand else { return ERR };
        // The flags and the key positions are equal to the flags and key positions of `BF.EXISTS`.
        create(ctx, c"noop".as_ptr(), Some(noop), c"readonly fast".as_ptr(), 1, 1, 1)
    }
}

unsafe extern "C" fn noop(ctx: *mut Ctx, _: *mut *mut ServerString, _: c_int) -> c_int {
    // SAFETY: the server passes the context of this call.
    unsafe { raw::RedisModule_ReplyWithLongLong.expect("every server has this function")(ctx, 0) }
}
