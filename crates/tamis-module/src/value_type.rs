//! The types of the values, and the pointers with which the server keeps them.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use tamis_commands::Value;
use tamis_formats::module_value::{BLOOM_TYPE, CUCKOO_TYPE, TAMIS_TYPE, TAMIS_VERSION, VERSION};
use valkey_module::raw::RedisModuleType;

use crate::api::{Key, api};

/// A type of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// `tamis-flt`
    Tamis,
    /// `MBbloom--`
    Bloom,
    /// `MBbloomCF`
    Cuckoo,
}

impl ValueType {
    /// Every type; the position of each is its number.
    pub const ALL: [ValueType; 3] = [ValueType::Tamis, ValueType::Bloom, ValueType::Cuckoo];

    /// Returns the type that stores a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::RedisBloom(_) => ValueType::Bloom,
            Value::RedisCuckoo(_) => ValueType::Cuckoo,
            _ => ValueType::Tamis,
        }
    }

    /// Returns the name in the reply of `TYPE`.
    pub const fn name(self) -> &'static str {
        match self {
            ValueType::Bloom => BLOOM_TYPE,
            ValueType::Cuckoo => CUCKOO_TYPE,
            ValueType::Tamis => TAMIS_TYPE,
        }
    }

    /// Returns the version in which values are written.
    pub const fn version(self) -> u64 {
        match self {
            ValueType::Bloom | ValueType::Cuckoo => VERSION,
            ValueType::Tamis => TAMIS_VERSION,
        }
    }

    /// Returns the pointer with which the server names the type.
    pub fn pointer(self) -> *mut RedisModuleType {
        POINTERS[self as usize].load(Ordering::Relaxed)
    }

    /// Sets the pointer.
    pub fn set_pointer(self, pointer: *mut RedisModuleType) {
        POINTERS[self as usize].store(pointer, Ordering::Relaxed);
    }

    /// Counts one value less.
    pub fn count_freed(self) {
        COUNTS[self as usize].fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts the values of this type.
    pub fn count(self) -> u64 {
        COUNTS[self as usize].load(Ordering::Relaxed)
    }
}

/// The pointers of the types, which [`register`] sets once, before any command runs.
static POINTERS: [AtomicPtr<RedisModuleType>; 3] = [const { AtomicPtr::new(null_mut()) }; 3];

/// How many values of each type exist. Relaxed, because the counters order no other memory.
static COUNTS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// What a key holds. It is `Some` between two commands.
pub type Slot = Option<Value>;

/// Moves a value to the heap, for the server to keep.
pub fn into_pointer(value: Value) -> *mut c_void {
    COUNTS[ValueType::of(&value) as usize].fetch_add(1, Ordering::Relaxed);
    Box::into_raw(Box::new(Some(value))).cast()
}

/// Returns what an open key holds; `None` if it is empty or holds a value of another module or of
/// the server.
///
/// # Safety
///
/// `key` is open or null. No other reference to its value exists during `'k`.
pub unsafe fn slot<'k>(key: *mut Key) -> Option<&'k mut Slot> {
    // SAFETY: the caller opened the key. A value of one of these types is a pointer from
    // `into_pointer`.
    unsafe {
        let pointer = api!(RedisModule_ModuleTypeGetType(key));
        if pointer.is_null() || !ValueType::ALL.iter().any(|it| it.pointer() == pointer) {
            return None;
        }
        api!(RedisModule_ModuleTypeGetValue(key)).cast::<Slot>().as_mut()
    }
}

/// Returns the value at a pointer that the server passes to a callback.
///
/// # Safety
///
/// `pointer` is the value of a key, of one of these types, and the callback may read it.
pub unsafe fn value_of<'v>(pointer: *mut c_void) -> Option<&'v Value> {
    // SAFETY: the caller.
    unsafe { pointer.cast::<Slot>().as_ref()?.as_ref() }
}
