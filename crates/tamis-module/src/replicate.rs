//! Sends changes to replicas and to the append-only file.
//!
//! A replica runs the same commands on the same values as the primary, and must store the same bytes as the primary.
//! The replica may have other settings, another hash key and another clock than the primary. The primary therefore also
//! sends the values that a command takes from the settings, the hash key and the clock of the primary:
//!
//! | taken from | sent before the command |
//! | --- | --- |
//! | settings and hash key, for a new filter | `BF.LOADCHUNK` or `CF.LOADCHUNK` with its parameters |
//! | clock, for a window | `TM.ADVANCE`, until an insert has stored the time in the window |
//!
//! The primary does not send a command that changes nothing.

use std::ffi::CStr;

use tamis_commands::{Change, load_commands};

use crate::api::{Ctx, ServerString, api, bytes, c_text, new_string};

/// The change that a command made to its key.
#[derive(Clone, Copy)]
pub struct Replicated<'c> {
    /// The image of the filter if the command created a filter.
    pub created: Option<&'c [u8]>,
    /// The new time of a window's clock if the command advanced the clock, in milliseconds since
    /// 1970.
    pub advanced_millis: Option<u64>,
    pub change: &'c Change,
    /// True if the command deleted the key. A deletion may depend on the clock of this server.
    pub is_deleted: bool,
}

impl Replicated<'static> {
    /// The change of a command that replicas run unchanged.
    pub const VERBATIM: Self =
        Self { created: None, advanced_millis: None, change: &Change::Argv, is_deleted: false };
}

/// Sends the change of a command to replicas and to the append-only file. `argv` is the command,
/// and `key` is the key of the command.
///
/// # Safety
///
/// `ctx` is the context of the command.
pub unsafe fn replicate(
    ctx: *mut Ctx,
    key: *mut ServerString,
    argv: Sent<'_>,
    replicated: Replicated<'_>,
) {
    // SAFETY: the caller passes the context of the command. The key is valid during the command.
    unsafe {
        if replicated.is_deleted {
            return send(ctx, &[b"DEL", bytes(key)]);
        }
        if let Some(image) = replicated.created {
            for (name, position, data) in load_commands(image) {
                let position = position.to_string();
                send(ctx, &[name.as_bytes(), bytes(key), position.as_bytes(), &data]);
            }
        }
        if let Some(millis) = replicated.advanced_millis {
            send(ctx, &[b"TM.ADVANCE", bytes(key), millis.to_string().as_bytes()]);
        }
        match (replicated.change, argv) {
            (Change::None, _) => {}
            (Change::Replaced(argv), _) => {
                let argv: Vec<&[u8]> = argv.iter().map(Vec::as_slice).collect();
                send(ctx, &argv);
            }
            (Change::Argv | Change::Inserted(_), Sent::Verbatim) => {
                api!(RedisModule_ReplicateVerbatim(ctx));
            }
            (Change::Argv | Change::Inserted(_), Sent::Argv(argv)) => send(ctx, argv),
        }
    }
}

/// The argv that replicas run.
#[derive(Clone, Copy)]
pub enum Sent<'c> {
    /// The unchanged argv of the client.
    Verbatim,
    /// One part of a long command.
    Argv(&'c [&'c [u8]]),
}

/// Sends a command to replicas and to the append-only file.
///
/// # Safety
///
/// `ctx` is the context of the current command or timer.
unsafe fn send(ctx: *mut Ctx, argv: &[&[u8]]) {
    let name = c_text(&String::from_utf8_lossy(argv[0]));
    let name: &CStr = &name;
    // SAFETY: the server keeps its own references to the strings, so this function frees its
    // references. The format names one vector.
    unsafe {
        let mut words: Vec<*mut ServerString> =
            argv[1..].iter().map(|word| new_string(ctx, word)).collect();
        api!(RedisModule_Replicate(
            ctx,
            name.as_ptr(),
            c"v".as_ptr(),
            words.as_mut_ptr(),
            words.len(),
        ));
        words.into_iter().for_each(|word| api!(RedisModule_FreeString(ctx, word)));
    }
}
