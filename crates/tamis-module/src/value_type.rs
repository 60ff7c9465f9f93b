//! The data types that the module registers, and the pointers to the values of these types.

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
    /// Every type. The position of a type is its number.
    pub const ALL: [ValueType; 3] = [ValueType::Tamis, ValueType::Bloom, ValueType::Cuckoo];

    /// Returns the type that stores a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::RedisBloom(_) => ValueType::Bloom,
            Value::RedisCuckoo(_) => ValueType::Cuckoo,
            _ => ValueType::Tamis,
        }
    }

    /// Returns the name of the type as the command `TYPE` reports the name.
    pub const fn name(self) -> &'static str {
        match self {
            ValueType::Bloom => BLOOM_TYPE,
            ValueType::Cuckoo => CUCKOO_TYPE,
            ValueType::Tamis => TAMIS_TYPE,
        }
    }

    /// Returns the format version that this module writes.
    pub const fn version(self) -> u64 {
        match self {
            ValueType::Bloom | ValueType::Cuckoo => VERSION,
            ValueType::Tamis => TAMIS_VERSION,
        }
    }

    /// Returns the server's pointer to the type.
    pub fn pointer(self) -> *mut RedisModuleType {
        POINTERS[self as usize].load(Ordering::Relaxed)
    }

    /// Sets the server's pointer to the type.
    pub fn set_pointer(self, pointer: *mut RedisModuleType) {
        POINTERS[self as usize].store(pointer, Ordering::Relaxed);
    }

    /// Decrements the number of values of this type.
    pub fn count_freed(self) {
        COUNTS[self as usize].fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of values of this type.
    pub fn count(self) -> u64 {
        COUNTS[self as usize].load(Ordering::Relaxed)
    }
}

/// The server's pointers to the types. The start of the module sets each pointer once, before any
/// command runs.
static POINTERS: [AtomicPtr<RedisModuleType>; 3] = [const { AtomicPtr::new(null_mut()) }; 3];

/// The number of existing values of each type. The ordering is relaxed, because no other memory depends on these
/// counters.
static COUNTS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// The content of a key. Between two commands, the content is `Some`.
pub type Slot = Option<Value>;

/// Moves a value to the heap and returns the pointer that the server stores.
pub fn into_pointer(value: Value) -> *mut c_void {
    COUNTS[ValueType::of(&value) as usize].fetch_add(1, Ordering::Relaxed);
    Box::into_raw(Box::new(Some(value))).cast()
}

/// Returns the content of an open key. Returns `None` if the key is empty, or holds a value of the
/// server or of another module.
///
/// # Safety
///
/// `key` is open or null. No other reference to the value of the key exists during `'k`.
pub unsafe fn slot<'k>(key: *mut Key) -> Option<&'k mut Slot> {
    // SAFETY: the caller opened the key. Each value of a type of this module is a pointer that
    // `into_pointer` returned.
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
/// `pointer` is the value of a key and has a type of this module. The callback may read the value.
pub unsafe fn value_of<'v>(pointer: *mut c_void) -> Option<&'v Value> {
    // SAFETY: the caller passes a pointer to a readable `Slot`.
    unsafe { pointer.cast::<Slot>().as_ref()?.as_ref() }
}
