//! The section of the module in the reply of `INFO`.

use std::ffi::c_int;

use valkey_module::raw::RedisModuleInfoCtx;

use crate::api::{Ctx, api, c_text};
use crate::value_type::ValueType;

/// Registers the callback that writes the section.
///
/// # Safety
///
/// `ctx` is the context that the server passed to `RedisModule_OnLoad`.
pub unsafe fn register(ctx: *mut Ctx) {
    // SAFETY: the caller passes a valid context.
    unsafe { api!(RedisModule_RegisterInfoFunc(ctx, Some(info))) };
}

unsafe extern "C" fn info(ctx: *mut RedisModuleInfoCtx, _: c_int) {
    let version = c_text(env!("CARGO_PKG_VERSION"));
    // SAFETY: the texts end with a zero. The server copies the texts.
    unsafe {
        api!(RedisModule_InfoAddSection(ctx, c"filters".as_ptr()));
        api!(RedisModule_InfoAddFieldCString(ctx, c"version".as_ptr(), version.as_ptr()));
        for (name, value_type) in [
            (c"filters", ValueType::Tamis),
            (c"redisbloom_bloom_filters", ValueType::Bloom),
            (c"redisbloom_cuckoo_filters", ValueType::Cuckoo),
        ] {
            api!(RedisModule_InfoAddFieldULongLong(ctx, name.as_ptr(), value_type.count()));
        }
    }
}
