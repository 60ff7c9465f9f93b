//! Registers the commands: one for each row of the table that belongs to a module.

use std::ffi::{CStr, CString, c_int};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use tamis_commands::{Access, COMMANDS, Category, Command, Flag, KeyOption, Keys};
use valkey_module::raw::{
    self, RedisModuleCmdFunc, RedisModuleCommandHistoryEntry, RedisModuleCommandInfo,
    RedisModuleCommandInfoVersion, RedisModuleCommandKeySpec,
};

use crate::api::{Ctx, ERR, OK, ServerString, api, bytes, c_text, has_api, strings};
use crate::run::run;

/// The categories that the module adds to those of the server.
const CATEGORIES: [Category; 3] = [Category::Bloom, Category::Cuckoo, Category::Tamis];

/// The name of each row as it is registered: in lower case.
static NAMES: OnceLock<Vec<CString>> = OnceLock::new();

/// Returns the name of a command as it is registered. It is also the name of its keyspace events.
pub fn registered_name(command: &'static Command) -> &'static CStr {
    let lower = |command: &Command| c_text(&command.name.to_ascii_lowercase());
    &NAMES.get_or_init(|| COMMANDS.iter().map(lower).collect())[command.index()]
}

/// Registers the commands.
///
/// # Safety
///
/// `ctx` is the context of the start.
pub unsafe fn register(ctx: *mut Ctx) -> Result<(), String> {
    // SAFETY: the reading of a function pointer; nothing writes them after the start.
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
            // SAFETY: `ctx` is the context of the start.
            unsafe { register_one(ctx, command, CALLBACKS[row], has_categories)? };
        }
    }
    Ok(())
}

/// # Safety
///
/// `ctx` is the context of the start.
unsafe fn register_one(
    ctx: *mut Ctx,
    command: &'static Command,
    callback: RedisModuleCmdFunc,
    has_categories: bool,
) -> Result<(), String> {
    let refused = || format!("the server refuses the command {}", command.name);
    let name = registered_name(command);
    let mut flags: Vec<&str> = command.flags.iter().filter_map(|flag| flag_name(*flag)).collect();
    if has_optional_key(command) {
        flags.push("getkeys-api");
    }
    let flags = c_text(&flags.join(" "));
    let Keys { first, last, step, .. } = command.keys;
    // SAFETY: the texts end with a zero. The server copies them.
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
            args: null_mut(),
        };
        if api!(RedisModule_SetCommandInfo(registered, &raw const info)) == ERR {
            return Err(refused());
        }
    }
    Ok(())
}

/// Returns the name of a flag for the registration of a command.
fn flag_name(flag: Flag) -> Option<&'static str> {
    match flag {
        Flag::DenyOom => Some("deny-oom"),
        Flag::Module => None,
        flag => flag.name(),
    }
}

/// Tests whether a word of the command decides whether another word is a key. A server of a cluster
/// ignores the specification of such a key, and asks the module instead.
fn has_optional_key(command: &Command) -> bool {
    matches!(command.keys.option, KeyOption::SourceAfter(_))
}

/// Reports which words are keys, if the server only asks for them. Returns whether it does.
///
/// # Safety
///
/// The arguments are those of a callback of this command.
unsafe fn reports_keys(command: &Command, ctx: *mut Ctx, argv: &[*mut ServerString]) -> bool {
    // SAFETY: the context and the strings are valid during the callback.
    unsafe {
        if !has_optional_key(command) || api!(RedisModule_IsKeysPositionRequest(ctx)) == 0 {
            return false;
        }
        let report = |position: usize, access: Access| {
            let flags = flags(access) as c_int;
            api!(RedisModule_KeyAtPosWithFlags(ctx, position as c_int, flags));
        };
        let words: Vec<&[u8]> = argv.iter().map(|word| bytes(*word)).collect();
        report(command.keys.first, command.keys.first_access);
        if command.like_key(&words).is_some() {
            report(3, Access::READ);
        }
    }
    true
}

/// The key specifications of a command, which end with an empty one.
struct KeySpecs {
    specs: Vec<RedisModuleCommandKeySpec>,
    /// The keyword of a specification. The server copies it.
    _keyword: Option<CString>,
}

impl KeySpecs {
    fn of(command: &Command) -> Self {
        let keys = command.keys;
        let (mut specs, mut keyword) = (Vec::new(), None);
        if keys.first > 0 {
            let is_one_access = keys.first_access == keys.other_access;
            let last = if is_one_access { keys.last - keys.first as i64 } else { 0 };
            // A last key counted from the end stays so.
            let last = if is_one_access && keys.last < 0 { keys.last } else { last };
            specs.push(index_spec(keys.first, last, keys.step, keys.first_access));
            if !is_one_access {
                specs.push(index_spec(keys.first + 1, keys.last, keys.step, keys.other_access));
            }
        }
        if let KeyOption::SourceAfter(name) = keys.option {
            let name = c_text(name);
            // SAFETY: a specification of zeros is empty.
            let mut spec: RedisModuleCommandKeySpec = unsafe { std::mem::zeroed() };
            spec.flags = flags(Access::READ);
            spec.begin_search_type =
                raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_KEYWORD;
            spec.bs.keyword.keyword = name.as_ptr();
            spec.bs.keyword.startfrom = 2;
            spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
            spec.fk.range.keystep = 1;
            specs.push(spec);
            keyword = Some(name);
        }
        // SAFETY: as above.
        specs.push(unsafe { std::mem::zeroed() });
        Self { specs, _keyword: keyword }
    }
}

/// Returns the specification of keys from a position on. `last` is relative to the first key, or
/// negative: counted from the end.
fn index_spec(first: usize, last: i64, step: usize, access: Access) -> RedisModuleCommandKeySpec {
    // SAFETY: a specification of zeros is empty.
    let mut spec: RedisModuleCommandKeySpec = unsafe { std::mem::zeroed() };
    spec.flags = flags(access);
    spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    spec.bs.index.pos = first as c_int;
    spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
    spec.fk.range.lastkey = last as c_int;
    spec.fk.range.keystep = step as c_int;
    spec
}

/// Returns the flags of a key specification. An insert has only the permission to write, as in the
/// table.
fn flags(access: Access) -> u64 {
    let flags = match (access.reads, access.writes) {
        (false, false) => raw::REDISMODULE_CMD_KEY_RO,
        (true, false) => raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
        (false, true) => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_INSERT,
        (true, true) => {
            raw::REDISMODULE_CMD_KEY_RW
                | raw::REDISMODULE_CMD_KEY_ACCESS
                | raw::REDISMODULE_CMD_KEY_UPDATE
        }
    };
    u64::from(flags)
}

/// The callback of the command with this index in the table. So the module need not find the row by
/// the name, which a user may have changed.
unsafe extern "C" fn call<const ROW: usize>(
    ctx: *mut Ctx,
    argv: *mut *mut ServerString,
    argc: c_int,
) -> c_int {
    let command = &COMMANDS[ROW];
    // SAFETY: the arguments of this callback.
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

/// A callback for each row of the table, and for some rows that do not exist.
static CALLBACKS: [RedisModuleCmdFunc; 150] = callbacks!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
