//! Reads and writes values in an RDB file or in a `DUMP` payload.

use std::borrow::Cow;

use tamis_formats::module_value::{ModuleReader, ModuleWriter};
use valkey_module::raw::RedisModuleIO;

use crate::api::api;

/// The reader and writer of a value in an RDB file or a `DUMP` payload.
///
/// Invariant: the server passed the pointer to the current callback.
pub struct ModuleIo(*mut RedisModuleIO);

impl ModuleIo {
    /// # Safety
    ///
    /// `io` is the argument of the current callback.
    pub unsafe fn new(io: *mut RedisModuleIO) -> Self {
        Self(io)
    }

    fn is_sound(&self) -> bool {
        // SAFETY: the pointer is valid by the invariant.
        unsafe { api!(RedisModule_IsIOError(self.0)) == 0 }
    }
}

impl ModuleReader<'static> for ModuleIo {
    fn number(&mut self) -> Option<u64> {
        // SAFETY: the pointer is valid by the invariant.
        let number = unsafe { api!(RedisModule_LoadUnsigned(self.0)) };
        self.is_sound().then_some(number)
    }

    fn double(&mut self) -> Option<f64> {
        // SAFETY: the pointer is valid by the invariant.
        let number = unsafe { api!(RedisModule_LoadDouble(self.0)) };
        self.is_sound().then_some(number)
    }

    fn string(&mut self) -> Option<Cow<'static, [u8]>> {
        let mut len = 0;
        // SAFETY: the pointer is valid by the invariant. The result is null, or an allocation of
        // `len` bytes that now belongs to this module. The global allocator uses the server's
        // functions, so a vector may own the allocation.
        unsafe {
            let first = api!(RedisModule_LoadStringBuffer(self.0, &raw mut len));
            if first.is_null() {
                return None;
            }
            let bytes = if len == 0 {
                api!(RedisModule_Free(first.cast()));
                Vec::new()
            } else {
                Vec::from_raw_parts(first.cast(), len, len)
            };
            self.is_sound().then_some(Cow::Owned(bytes))
        }
    }
}

impl ModuleWriter for ModuleIo {
    fn number(&mut self, number: u64) {
        // SAFETY: the pointer is valid by the invariant.
        unsafe { api!(RedisModule_SaveUnsigned(self.0, number)) };
    }

    fn double(&mut self, number: f64) {
        // SAFETY: the pointer is valid by the invariant.
        unsafe { api!(RedisModule_SaveDouble(self.0, number)) };
    }

    fn string(&mut self, bytes: &[u8]) {
        // SAFETY: the pointer is valid by the invariant. The server reads the bytes only during the
        // call.
        unsafe {
            api!(RedisModule_SaveStringBuffer(self.0, bytes.as_ptr().cast(), bytes.len()));
        }
    }
}
