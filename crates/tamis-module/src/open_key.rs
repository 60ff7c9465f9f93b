//! A key that the current command reads or changes.

use std::ffi::c_int;
use std::sync::LazyLock;

use tamis_commands::{Outcome, SparseBytes, Value};
use valkey_module::raw;

use crate::api::{Ctx, Key, ServerString, api, bytes};
use crate::value_type::{self, Slot, ValueType};

/// An open key. Dropping an `OpenKey` closes the key.
///
/// Invariant: `key` is open or null. `key` is null if the command opens the key for reading and the
/// key does not exist.
pub struct OpenKey {
    key: *mut Key,
    name: *mut ServerString,
}

impl OpenKey {
    /// Opens a key for reading.
    pub fn read(ctx: *mut Ctx, name: *mut ServerString) -> Self {
        Self::open(ctx, name, raw::REDISMODULE_READ)
    }

    /// Opens a key for reading and writing.
    pub fn write(ctx: *mut Ctx, name: *mut ServerString) -> Self {
        Self::open(ctx, name, raw::REDISMODULE_READ | raw::REDISMODULE_WRITE)
    }

    fn open(ctx: *mut Ctx, name: *mut ServerString, mode: u32) -> Self {
        // SAFETY: the context and the name belong to the current command.
        let key = unsafe { api!(RedisModule_OpenKey(ctx, name, mode as c_int)) };
        Self { key: key.cast(), name }
    }

    /// Returns the name of the key.
    pub fn name(&self) -> &[u8] {
        // SAFETY: the name is valid during the command.
        unsafe { bytes(self.name) }
    }

    /// Tests whether the key holds a value of the server or of another module.
    fn is_of_another_type(&self) -> bool {
        // SAFETY: the key is open, or null by the invariant. The server reports a null key as
        // empty.
        unsafe {
            let key_type = api!(RedisModule_KeyType(self.key));
            key_type != raw::REDISMODULE_KEYTYPE_EMPTY as c_int
                && value_type::slot(self.key).is_none()
        }
    }

    /// Returns the content of the key if the key holds a value of this module.
    pub fn slot(&mut self) -> Option<&mut Slot> {
        // SAFETY: the key is open or null by the invariant, and the caller borrows `self`
        // exclusively.
        unsafe { value_type::slot(self.key) }
    }

    /// Returns the value; `None` if the key does not exist.
    pub fn value(&self) -> Option<&Value> {
        if self.key.is_null() {
            return None;
        }
        // SAFETY: the key is open by the invariant. `change` needs `&mut self`, so no exclusive
        // reference exists.
        match unsafe { value_type::slot(self.key) } {
            Some(slot) => slot.as_ref(),
            None => self.is_of_another_type().then_some(&OTHER_TYPE),
        }
    }

    /// Calls a handler with the value of the key, and stores the value that the handler leaves.
    pub fn change(&mut self, handle: impl FnOnce(&mut Slot) -> Outcome) -> Outcome {
        let is_other = self.is_of_another_type();
        let Some(slot) = self.slot() else {
            let mut slot = is_other.then(other_type);
            let outcome = handle(&mut slot);
            if let Some(value) = slot
                && !matches!(value, Value::Bytes(_))
            {
                self.set(value);
            }
            return outcome;
        };
        let before = slot.as_ref().map(ValueType::of);
        let outcome = handle(slot);
        if slot.as_ref().map(ValueType::of) != before {
            match slot.take() {
                Some(value) => self.set(value),
                // SAFETY: the key is open for writing.
                None => _ = unsafe { api!(RedisModule_DeleteKey(self.key)) },
            }
        }
        outcome
    }

    /// Replaces the value of a key that is open for writing.
    fn set(&mut self, value: Value) {
        let name = ValueType::of(&value).pointer();
        let pointer = value_type::into_pointer(value);
        // SAFETY: the key is open for writing. The server now owns the value.
        unsafe {
            // The server removes the expiry time together with the old value, so this code sets the
            // expiry time again.
            let left_millis = api!(RedisModule_GetExpire(self.key));
            api!(RedisModule_ModuleTypeSetValue(self.key, name, pointer));
            if left_millis >= 0 {
                api!(RedisModule_SetExpire(self.key, left_millis));
            }
        }
    }
}

impl Drop for OpenKey {
    fn drop(&mut self) {
        // SAFETY: the key is open or null by the invariant. The server ignores a null key.
        unsafe { api!(RedisModule_CloseKey(self.key)) };
    }
}

/// The value that handlers get for a key of another type: a string, which is not a filter.
static OTHER_TYPE: LazyLock<Value> = LazyLock::new(other_type);

fn other_type() -> Value {
    Value::Bytes(SparseBytes::default())
}
