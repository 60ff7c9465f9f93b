//! Sends a reply to the client.

use std::ffi::c_long;

use tamis_resp::{Protocol, Reply};

use crate::api::{Ctx, api, c_text};

/// Sends a reply. The server encodes the reply for the protocol of the client.
///
/// # Safety
///
/// `ctx` is the context of a command or of a blocked client. The client still waits for the reply.
pub unsafe fn send(ctx: *mut Ctx, reply: &Reply, protocol: Protocol) {
    // SAFETY: each text ends with a zero, and the code passes the length with the bytes. The server
    // copies texts and bytes.
    unsafe {
        match reply {
            Reply::Simple(text) => {
                api!(RedisModule_ReplyWithSimpleString(ctx, line(text).as_ptr()));
            }
            Reply::Error(text) => {
                api!(RedisModule_ReplyWithError(ctx, line(text).as_ptr()));
            }
            Reply::Integer(number) => {
                api!(RedisModule_ReplyWithLongLong(ctx, *number));
            }
            Reply::Bulk(bytes) => send_bytes(ctx, bytes),
            Reply::Null => {
                api!(RedisModule_ReplyWithNull(ctx));
            }
            Reply::NullArray => {
                api!(RedisModule_ReplyWithNullArray(ctx));
            }
            Reply::Bool(answer) => send_bool(ctx, *answer),
            // In RESP2, `RedisModule_ReplyWithDouble` would send 17 digits, so only RESP3 uses this
            // function.
            Reply::Double(number) if protocol == Protocol::Resp3 => {
                api!(RedisModule_ReplyWithDouble(ctx, *number));
            }
            Reply::BigNumber(digits) => {
                api!(RedisModule_ReplyWithBigNumber(ctx, digits.as_ptr().cast(), digits.len()));
            }
            Reply::Verbatim { format, text } => {
                let format = [format[0], format[1], format[2], 0];
                api!(RedisModule_ReplyWithVerbatimStringType(
                    ctx,
                    text.as_ptr().cast(),
                    text.len(),
                    format.as_ptr().cast(),
                ));
            }
            Reply::Array(values) | Reply::Push(values) => {
                send_array(ctx, values.len());
                values.iter().for_each(|value| send(ctx, value, protocol));
            }
            Reply::Set(values) => {
                api!(RedisModule_ReplyWithSet(ctx, values.len() as c_long));
                values.iter().for_each(|value| send(ctx, value, protocol));
            }
            Reply::Map(pairs) => {
                api!(RedisModule_ReplyWithMap(ctx, pairs.len() as c_long));
                for (key, value) in pairs {
                    send(ctx, key, protocol);
                    send(ctx, value, protocol);
                }
            }
            Reply::Bools { mask, len } => {
                send_array(ctx, *len);
                for i in 0..*len {
                    let word = mask.get(i / 64).copied().unwrap_or(0);
                    send_bool(ctx, word >> (i % 64) & 1 == 1);
                }
            }
            Reply::Double(_) => send_bytes(ctx, &digits(reply)),
        }
    }
}

/// # Safety
///
/// The conditions are the same as for [`send`].
pub unsafe fn send_bool(ctx: *mut Ctx, answer: bool) {
    // SAFETY: the caller passes a valid context.
    unsafe { api!(RedisModule_ReplyWithBool(ctx, answer.into())) };
}

/// # Safety
///
/// The conditions are the same as for [`send`]. After this call, the caller sends `len` replies.
pub unsafe fn send_array(ctx: *mut Ctx, len: usize) {
    // SAFETY: the caller passes a valid context.
    unsafe { api!(RedisModule_ReplyWithArray(ctx, len as c_long)) };
}

/// # Safety
///
/// The conditions are the same as for [`send`].
unsafe fn send_bytes(ctx: *mut Ctx, bytes: &[u8]) {
    // SAFETY: the caller passes a valid context. The code passes the length with the bytes.
    unsafe { api!(RedisModule_ReplyWithStringBuffer(ctx, bytes.as_ptr().cast(), bytes.len())) };
}

/// Returns the digits of a double in the RESP2 encoding.
fn digits(reply: &Reply) -> Vec<u8> {
    let mut encoded = Vec::new();
    reply.encode(Protocol::Resp2, &mut encoded);
    let header = encoded.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    encoded.drain(header..encoded.len() - 2).collect()
}

/// Replaces line breaks by spaces and returns a text for C.
fn line(text: &str) -> std::ffi::CString {
    c_text(&text.replace(['\r', '\n'], " "))
}
