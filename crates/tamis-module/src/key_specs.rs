//! Tells the server which words of a command are keys.

use std::ffi::{CString, c_int};

use tamis_commands::{Access, Command, KeyOption};
use valkey_module::raw::{self, RedisModuleCommandKeySpec};

use crate::api::{Ctx, ServerString, api, bytes, c_text};

/// Tests whether a word of the command decides whether another word is a key. A server of a cluster
/// ignores the specification of such a key, and asks the module instead.
pub fn has_optional_key(command: &Command) -> bool {
    matches!(command.keys.option, KeyOption::SourceAfter(_))
}

/// Reports which words are keys, if the server only asks for them. Returns whether it does.
///
/// # Safety
///
/// The arguments are those of a callback of this command.
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

/// The key specifications of a command, which end with an empty one.
pub struct KeySpecs {
    pub specs: Vec<RedisModuleCommandKeySpec>,
    /// The keyword of a specification. The server copies it.
    _keyword: Option<CString>,
}

impl KeySpecs {
    /// Creates the specifications of a row.
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
            // A last key counted from the end stays so.
            let last = if is_one_access && keys.last < 0 { keys.last } else { last };
            specs.push(index_spec(keys.first, last, keys.step, first_access));
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
