//! A key that the present command reads or changes.

use std::ffi::c_int;
use std::sync::LazyLock;

use tamis_commands::{Outcome, SparseBytes, Value};
use valkey_module::raw;

use crate::api::{Ctx, Key, ServerString, api, bytes};
use crate::value_type::{self, Slot, ValueType};

/// An open key. Dropping it closes the key.
///
/// Invariant: `key` is open, or null for a key that is read and does not exist.
pub struct OpenKey {
    key: *mut Key,
    name: *mut ServerString,
}

impl OpenKey {
    /// Opens a key to read it.
    pub fn read(ctx: *mut Ctx, name: *mut ServerString) -> Self {
        Self::open(ctx, name, raw::REDISMODULE_READ)
    }

    /// Opens a key to change it.
    pub fn write(ctx: *mut Ctx, name: *mut ServerString) -> Self {
        Self::open(ctx, name, raw::REDISMODULE_READ | raw::REDISMODULE_WRITE)
    }

    fn open(ctx: *mut Ctx, name: *mut ServerString, mode: u32) -> Self {
        // SAFETY: context and name are those of the present command.
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
        // SAFETY: the invariant. A null key is empty.
        unsafe {
            let key_type = api!(RedisModule_KeyType(self.key));
            key_type != raw::REDISMODULE_KEYTYPE_EMPTY as c_int
                && value_type::slot(self.key).is_none()
        }
    }

    /// Returns what the key holds, if it is of this module.
    pub fn slot(&mut self) -> Option<&mut Slot> {
        // SAFETY: the invariant, and `self` is borrowed uniquely.
        unsafe { value_type::slot(self.key) }
    }

    /// Returns the value; `None` if the key does not exist.
    pub fn value(&self) -> Option<&Value> {
        if self.key.is_null() {
            return None;
        }
        // SAFETY: the invariant. `change` needs `&mut self`, so no exclusive reference exists.
        match unsafe { value_type::slot(self.key) } {
            Some(slot) => slot.as_ref(),
            None => self.is_of_another_type().then_some(&OTHER_TYPE),
        }
    }

    /// Calls a handler with the value, and stores the result under the key.
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
                // SAFETY: the key is open for a write.
                None => _ = unsafe { api!(RedisModule_DeleteKey(self.key)) },
            }
        }
        outcome
    }

    /// Replaces the value of a key that is open for a write.
    fn set(&mut self, value: Value) {
        let name = ValueType::of(&value).pointer();
        let pointer = value_type::into_pointer(value);
        // SAFETY: the key is open for a write. The server now owns the value.
        unsafe {
            // The server removes the expiry with the old value.
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
        // SAFETY: the invariant. A null key is not open.
        unsafe { api!(RedisModule_CloseKey(self.key)) };
    }
}

/// What handlers see of a value of another type: a string, which is no filter.
static OTHER_TYPE: LazyLock<Value> = LazyLock::new(other_type);

fn other_type() -> Value {
    Value::Bytes(SparseBytes::default())
}
