//! Registers one command of the server for each row of the command table with the flag `Module`.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use tamis_commands::{COMMANDS, Category, Command, Flag, Keys};
use valkey_module::raw::{
    self, RedisModuleCmdFunc, RedisModuleCommandHistoryEntry, RedisModuleCommandInfo,
    RedisModuleCommandInfoVersion, RedisModuleCommandKeySpec,
};

use crate::api::{Ctx, ERR, api, c_text, has_api};
use crate::arguments::Arguments;
use crate::callback::CALLBACKS;
use crate::key_specs::{KeySpecs, has_optional_key};
use crate::registered_name::registered_name;

/// The ACL categories that the module adds to the server.
const CATEGORIES: [Category; 3] = [Category::Bloom, Category::Cuckoo, Category::Tamis];

/// Registers the commands.
///
/// # Safety
///
/// `ctx` is the context that the server passed to `RedisModule_OnLoad`.
pub unsafe fn register(ctx: *mut Ctx) -> Result<(), String> {
    // SAFETY: the code reads a function pointer. Nothing writes the function pointers after the
    // start.
    let has_categories = unsafe { has_api!(RedisModule_AddACLCategory) };
    if has_categories {
        for category in CATEGORIES {
            let name = c_text(category.name());
            // SAFETY: the name ends with a zero.
            if unsafe { api!(RedisModule_AddACLCategory(ctx, name.as_ptr())) } == ERR {
                return Err(format!("the server refuses the category @{}", category.name()));
            }
        }
    }
    for (row, command) in COMMANDS.iter().enumerate() {
        if command.has(Flag::Module) {
            // SAFETY: `ctx` is the context that the server passed to `RedisModule_OnLoad`.
            unsafe { register_one(ctx, command, CALLBACKS[row], has_categories)? };
        }
    }
    Ok(())
}

/// # Safety
///
/// `ctx` is the context that the server passed to `RedisModule_OnLoad`.
unsafe fn register_one(
    ctx: *mut Ctx,
    command: &'static Command,
    callback: RedisModuleCmdFunc,
    has_categories: bool,
) -> Result<(), String> {
    let refused = || format!("the server refuses the command {}", command.name);
    let name = registered_name(command);
    let flags = command.flags.iter().filter_map(|flag| flag_name(command, *flag));
    let mut flags: Vec<&str> = flags.collect();
    if has_optional_key(command) {
        flags.push("getkeys-api");
    }
    let flags = c_text(&flags.join(" "));
    let Keys { first, last, step, .. } = command.keys;
    // SAFETY: the texts end with a zero. The server copies the texts.
    unsafe {
        let keys = (first as c_int, last as c_int, step as c_int);
        let created = api!(RedisModule_CreateCommand(
            ctx,
            name.as_ptr(),
            callback,
            flags.as_ptr(),
            keys.0,
            keys.1,
            keys.2,
        ));
        if created == ERR {
            return Err(refused());
        }
        let registered = api!(RedisModule_GetCommand(ctx, name.as_ptr()));
        if has_categories {
            let names: Vec<&str> = command.categories.iter().map(|it| it.name()).collect();
            let names = c_text(&names.join(" "));
            if api!(RedisModule_SetCommandACLCategories(registered, names.as_ptr())) == ERR {
                return Err(refused());
            }
        }
        let (summary, complexity) = (c_text(command.summary), c_text(command.complexity));
        let since = c_text(command.since);
        let mut specs = KeySpecs::of(command);
        let mut arguments = Arguments::of(command.syntax);
        let version = RedisModuleCommandInfoVersion {
            version: 1,
            sizeof_historyentry: size_of::<RedisModuleCommandHistoryEntry>(),
            sizeof_keyspec: size_of::<RedisModuleCommandKeySpec>(),
            sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
        };
        let info = RedisModuleCommandInfo {
            version: &raw const version,
            summary: summary.as_ptr(),
            complexity: complexity.as_ptr(),
            since: since.as_ptr(),
            history: null_mut(),
            tips: null(),
            arity: command.arity.number() as c_int,
            key_specs: specs.specs.as_mut_ptr(),
            args: arguments.as_mut_ptr(),
        };
        if api!(RedisModule_SetCommandInfo(registered, &raw const info)) == ERR {
            return Err(refused());
        }
    }
    Ok(())
}

/// Returns the name of a flag for the registration of a command.
///
/// RedisBloom flags `CF.COMPACT` as read-only, although `CF.COMPACT` may change a key. With the read-only flag, the
/// server would run `CF.COMPACT` for users without permission to write, on replicas, and while writes are paused. A
/// change while writes are paused ends the server.
fn flag_name(command: &Command, flag: Flag) -> Option<&'static str> {
    match flag {
        Flag::ReadOnly if command.may_change() => Some("write"),
        Flag::DenyOom => Some("deny-oom"),
        Flag::Module => None,
        flag => flag.name(),
    }
}
