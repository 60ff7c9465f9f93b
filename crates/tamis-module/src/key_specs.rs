//! Describes the key positions of a command to the server.

use std::ffi::{CString, c_int};

use tamis_commands::{Access, Command, KeyOption};
use valkey_module::raw::{self, RedisModuleCommandKeySpec};

use crate::api::{Ctx, ServerString, api, bytes, c_text};

/// Tests whether an option of the command decides whether another argument is a key. A server in
/// cluster mode ignores the specification of this optional key, and calls the module to get the key
/// positions.
pub fn has_optional_key(command: &Command) -> bool {
    matches!(command.keys.option, KeyOption::SourceAfter(_))
}

/// Reports the key positions if the server calls the command only to get the key positions. Returns true after the
/// report, and false if the command must run.
///
/// # Safety
///
/// The server passed the arguments to a callback of this command.
pub unsafe fn reports_keys(command: &Command, ctx: *mut Ctx, argv: &[*mut ServerString]) -> bool {
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

/// The key specifications of a command. The last specification is empty, as the end mark.
pub struct KeySpecs {
    pub specs: Vec<RedisModuleCommandKeySpec>,
    /// The keyword to which a specification points. The server copies the keyword.
    _keyword: Option<CString>,
}

impl KeySpecs {
    /// Creates the key specifications of a command.
    pub fn of(command: &Command) -> Self {
        let keys = command.keys;
        let (mut specs, mut keyword) = (Vec::new(), None);
        if keys.first > 0 {
            let is_one_access = keys.first_access == keys.other_access;
            let first_access = if command.may_change() && !keys.first_access.writes {
                Access::BOTH
            } else {
                keys.first_access
            };
            let last = if is_one_access { keys.last - keys.first as i64 } else { 0 };
            // A negative last key counts from the end and remains unchanged.
            let last = if is_one_access && keys.last < 0 { keys.last } else { last };
            specs.push(index_spec(keys.first, last, keys.step, first_access));
            if !is_one_access {
                specs.push(index_spec(keys.first + 1, keys.last, keys.step, keys.other_access));
            }
        }
        if let KeyOption::SourceAfter(name) = keys.option {
            let name = c_text(name);
            // SAFETY: a specification whose bytes are all zero is a valid empty specification.
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
        // SAFETY: a specification whose bytes are all zero is a valid empty specification.
        specs.push(unsafe { std::mem::zeroed() });
        Self { specs, _keyword: keyword }
    }
}

/// Returns the specification of the keys from position `first`. A positive `last` is relative to
/// the first key. A negative `last` counts from the end.
fn index_spec(first: usize, last: i64, step: usize, access: Access) -> RedisModuleCommandKeySpec {
    // SAFETY: a specification whose bytes are all zero is a valid empty specification.
    let mut spec: RedisModuleCommandKeySpec = unsafe { std::mem::zeroed() };
    spec.flags = flags(access);
    spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    spec.bs.index.pos = first as c_int;
    spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
    spec.fk.range.lastkey = last as c_int;
    spec.fk.range.keystep = step as c_int;
    spec
}

/// Returns the flags of a key specification. An insert needs only the permission to write, as in
/// the command table.
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
