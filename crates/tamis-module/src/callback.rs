//! The callbacks of the commands.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tamis_commands::{COMMANDS, Command, KeyReply};
use valkey_module::raw::RedisModuleCmdFunc;

use crate::api::{Ctx, Level, OK, ServerString, api, bytes, c_text, log, strings};
use crate::call::Call;
use crate::key_specs::reports_keys;
use crate::replicate::Sent;
use crate::{long, reply};

/// The callback of the command with index `ROW` in the command table. A user may rename a command,
/// so the module does not find the row by name.
unsafe extern "C" fn call<const ROW: usize>(
    ctx: *mut Ctx,
    argv: *mut *mut ServerString,
    argc: c_int,
) -> c_int {
    let command = &COMMANDS[ROW];
    // SAFETY: the server passes valid arguments to this callback.
    unsafe {
        if reports_keys(command, ctx, strings(argv, argc)) {
            return OK;
        }
        run(command, ctx, argv, argc)
    }
}

macro_rules! callbacks {
    ($($tens:literal)*) => {
        [$(
            Some(call::<{ $tens * 10 }>), Some(call::<{ $tens * 10 + 1 }>),
            Some(call::<{ $tens * 10 + 2 }>), Some(call::<{ $tens * 10 + 3 }>),
            Some(call::<{ $tens * 10 + 4 }>), Some(call::<{ $tens * 10 + 5 }>),
            Some(call::<{ $tens * 10 + 6 }>), Some(call::<{ $tens * 10 + 7 }>),
            Some(call::<{ $tens * 10 + 8 }>), Some(call::<{ $tens * 10 + 9 }>),
        )*]
    };
}

/// The callbacks, one for each row of the command table. The array is longer than the table.
pub static CALLBACKS: [RedisModuleCmdFunc; 150] = callbacks!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14);

/// Runs a command that a client sent.
///
/// # Safety
///
/// The server passed the arguments to a callback of this command.
unsafe fn run(
    command: &'static Command,
    ctx: *mut Ctx,
    argv: *mut *mut ServerString,
    argc: c_int,
) -> c_int {
    // SAFETY: the server passes `argc` strings, which are valid during the command.
    let ran = catch_unwind(AssertUnwindSafe(|| unsafe {
        let strings = strings(argv, argc);
        if !command.takes(strings.len()) {
            api!(RedisModule_WrongArity(ctx));
            return;
        }
        if long::begin(command, ctx, strings) {
            return;
        }
        // A command with at most 8 words needs no allocation.
        let (mut few, mut many) = ([&b""[..]; 8], Vec::new());
        let argv = if let Some(few) = few.get_mut(..strings.len()) {
            few
        } else {
            many.resize(strings.len(), &b""[..]);
            &mut many[..]
        };
        argv.iter_mut().zip(strings).for_each(|(word, string)| *word = bytes(*string));
        let call = Call { ctx, command, strings, argv, sent: Sent::Verbatim };
        let KeyReply { reply, .. } = call.run();
        reply::send(ctx, &reply, call.protocol_of(&reply));
    }));
    if ran.is_err() {
        let text = format!("tamis: {} failed unexpectedly; please report this", command.name);
        // SAFETY: the context is valid. A command sends the reply as the last step, so the failed
        // command has sent no reply.
        unsafe {
            log(ctx, Level::Warning, &text);
            api!(RedisModule_ReplyWithError(ctx, c_text(&format!("ERR {text}")).as_ptr()));
        }
    }
    OK
}
