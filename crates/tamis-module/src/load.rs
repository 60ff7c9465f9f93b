//! The start of the module: `RedisModule_OnLoad`.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use valkey_module::raw;

use crate::api::{Ctx, ERR, Level, OK, ServerString, api, has_api, is_valkey, log};
use crate::{allocator, commands, config, info, max_memory, types, write_value};

/// The version that `MODULE LIST` shows: 10,000 × major + 100 × minor + patch.
const VERSION: c_int = 100;

/// Registers types, commands and parameters. A server calls this function when the server loads the
/// module.
///
/// # Safety
///
/// The server passes the context of the call and `argc` strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut Ctx,
    argv: *mut *mut ServerString,
    argc: c_int,
) -> c_int {
    // SAFETY: the name ends with a zero. This call sets the pointers to the server's functions, so
    // the module must not allocate before this call.
    let status = unsafe {
        raw::Export_RedisModule_Init(
            ctx,
            c"tamis".as_ptr(),
            VERSION,
            raw::REDISMODULE_APIVER_1 as c_int,
        )
    };
    if status == ERR {
        return ERR;
    }
    // SAFETY: the server passed the arguments.
    let loaded = catch_unwind(AssertUnwindSafe(|| unsafe { load(ctx, argv, argc) }));
    let refusal = match loaded {
        Ok(Ok(())) => return OK,
        Ok(Err(refusal)) => refusal,
        Err(_) => "the module failed at its start; please report this".to_owned(),
    };
    // SAFETY: the server passed the context to this call.
    unsafe { log(ctx, Level::Warning, &format!("tamis: {refusal}")) };
    ERR
}

/// Registers types, commands and parameters. Returns the reason if the module cannot be loaded.
///
/// # Safety
///
/// The conditions are the same as for [`RedisModule_OnLoad`].
unsafe fn load(ctx: *mut Ctx, argv: *mut *mut ServerString, argc: c_int) -> Result<(), String> {
    // SAFETY: each function gets the context of this call. The names end with a zero.
    unsafe {
        if !has_api!(RedisModule_RegisterStringConfig) {
            return Err("this server is too old: use Redis 7.0, Valkey 8 or later".to_owned());
        }
        if api!(RedisModule_IsModuleNameBusy(c"bf".as_ptr())) != 0 {
            return Err(REDISBLOOM.to_owned());
        }
        allocator::register();
        let more = if is_valkey() { VALKEY_OPTIONS } else { 0 };
        api!(RedisModule_SetModuleOptions(ctx, OPTIONS | more));
        types::register(ctx)?;
        write_value::register(ctx);
        commands::register(ctx)?;
        info::register(ctx);
        max_memory::register(ctx);
        config::register(ctx, argv, argc)
    }
}

const REDISBLOOM: &str = "RedisBloom is loaded and has the same commands. Tamis reads its data: \
    start the server without redisbloom.so and with libtamis.so. Steps: docs/scale-out.md";

/// `HANDLE_IO_ERRORS`: the server reports a read error to the callback that reads the value, so a
/// broken payload does not end the server. `NO_IMPLICIT_SIGNAL_MODIFIED`: the server does not treat
/// each key that was opened for writing as modified.
const OPTIONS: c_int = (raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
    | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED) as c_int;

/// The module supports `CLUSTER MIGRATESLOTS`, which sends values as commands and then replicates changes of these
/// values. A long command waits while writes are paused, and stops when another node owns the slot of the key. The
/// module sets `VALKEY_OPTIONS` only on Valkey, because Redis may use the same bit for another option.
const VALKEY_OPTIONS: c_int = raw::VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION as c_int;
