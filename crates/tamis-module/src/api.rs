//! Wrappers for the functions of the server that this module calls.

use std::ffi::{CString, c_int, c_void};
use std::ptr::null_mut;

use valkey_module::raw;
pub use valkey_module::raw::{
    RedisModuleCtx as Ctx, RedisModuleKey as Key, RedisModuleString as ServerString,
};

/// Calls a function of the module interface. The module uses this macro only for functions that
/// exist since Redis 7.0.
///
/// The expression is `unsafe`: the arguments must match the documentation of the interface.
macro_rules! api {
    ($name:ident($($argument:expr),* $(,)?)) => {
        (valkey_module::raw::$name.expect(stringify!($name)))($($argument),*)
    };
}
pub(crate) use api;

/// Tests whether the server has a function. Some functions exist only in later versions of the
/// server.
///
/// The expression is `unsafe`: no thread may write the function pointers at the same time.
macro_rules! has_api {
    ($name:ident) => {{
        let function = valkey_module::raw::$name;
        function.is_some()
    }};
}
pub(crate) use has_api;

pub const OK: c_int = raw::REDISMODULE_OK as c_int;
pub const ERR: c_int = raw::REDISMODULE_ERR as c_int;

/// Tests whether the server is Valkey.
pub fn is_valkey() -> bool {
    let mut function: *mut c_void = null_mut();
    // SAFETY: the name ends with a zero. The server writes at most one function pointer.
    let status = unsafe {
        api!(RedisModule_GetApi(c"ValkeyModule_Alloc".as_ptr(), (&raw mut function).cast()))
    };
    status == OK
}

/// Returns the bytes of a string of the server.
///
/// # Safety
///
/// `string` is valid. No code changes or frees `string` during `'a`.
pub unsafe fn bytes<'a>(string: *const ServerString) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the caller keeps the string. The server returns the bytes and the number of bytes.
    unsafe {
        let first = api!(RedisModule_StringPtrLen(string, &raw mut len));
        std::slice::from_raw_parts(first.cast(), len)
    }
}

/// Returns the arguments of a command as a slice.
///
/// # Safety
///
/// `argv` points to `argc` strings. `argv` may be null if the command has no strings.
pub unsafe fn strings<'a>(argv: *mut *mut ServerString, argc: c_int) -> &'a [*mut ServerString] {
    if argv.is_null() {
        return &[];
    }
    // SAFETY: the caller passes `argc` valid strings.
    unsafe { std::slice::from_raw_parts(argv, argc as usize) }
}

/// Creates a string of the server. The caller must free the string.
///
/// # Safety
///
/// `ctx` is null or the context of the current call.
pub unsafe fn new_string(ctx: *mut Ctx, bytes: &[u8]) -> *mut ServerString {
    // SAFETY: the server copies the bytes.
    unsafe { api!(RedisModule_CreateString(ctx, bytes.as_ptr().cast(), bytes.len())) }
}

/// Returns the text of a reply to `RedisModule_Call`.
///
/// # Safety
///
/// `reply` is a string reply or an error reply.
pub unsafe fn reply_text(reply: *mut raw::RedisModuleCallReply) -> String {
    let mut len = 0;
    // SAFETY: the caller passes a valid reply. The server returns the bytes and the number of
    // bytes.
    let text = unsafe {
        let first = api!(RedisModule_CallReplyStringPtr(reply, &raw mut len));
        std::slice::from_raw_parts(first.cast(), len)
    };
    String::from_utf8_lossy(text).into_owned()
}

/// Copies a text for C. A zero byte would end the text, so each zero byte becomes a space.
pub fn c_text(text: &str) -> CString {
    let bytes = text.bytes().map(|byte| if byte == 0 { b' ' } else { byte });
    CString::new(bytes.collect::<Vec<u8>>()).expect("no byte is zero")
}

/// A level of the server's log.
#[derive(Clone, Copy)]
pub enum Level {
    Notice,
    Warning,
}

/// Writes a line to the server's log.
///
/// # Safety
///
/// `ctx` is null or a context of this module.
pub unsafe fn log(ctx: *mut Ctx, level: Level, text: &str) {
    let level = match level {
        Level::Notice => c"notice",
        Level::Warning => c"warning",
    };
    let text = c_text(text);
    // SAFETY: both texts end with a zero, and the format has one text.
    unsafe { api!(RedisModule_Log(ctx, level.as_ptr(), c"%s".as_ptr(), text.as_ptr())) };
}
