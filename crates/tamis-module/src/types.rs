//! The data types of the module, with the callbacks that load, save, rewrite, copy, count and free
//! their values.
//!
//! | type | values | version |
//! | --- | --- | --- |
//! | `MBbloom--` | RedisBloom's Bloom filters, in RedisBloom's format | 4 |
//! | `MBbloomCF` | RedisBloom's cuckoo filters, in RedisBloom's format | 4 |
//! | `tamis-flt` | all other filters, as images (`tamis_commands::Value::write_image`) | 2 |
//!
//! For the first two types, RedisBloom reads values of this module, and this module reads values of
//! RedisBloom.

use std::ffi::{CString, c_int, c_void};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use tamis_commands::text::tm;
use tamis_commands::{ImageError, Value};
use tamis_formats::module_value::{
    ImageReader, read_bloom, read_cuckoo, write_bloom, write_cuckoo, write_image,
};
use valkey_module::raw::{
    self, REDISMODULE_TYPE_METHOD_VERSION, RedisModuleDefragCtx, RedisModuleDigest, RedisModuleIO,
    RedisModuleString, RedisModuleTypeMethods,
};

use crate::api::{Ctx, Level, OK, api, log};
use crate::call::now_millis;
use crate::module_io::ModuleIo;
use crate::rewrite::rewrite;
use crate::value_type::{Slot, ValueType, into_pointer, value_of};
use crate::write_value::write_value;

/// Registers the data types with their callbacks.
///
/// # Safety
///
/// `ctx` is the context that the server passed to `RedisModule_OnLoad`.
pub unsafe fn register(ctx: *mut Ctx) -> Result<(), String> {
    for value_type in ValueType::ALL {
        let (load, free): (LoadFn, FreeFn) = match value_type {
            ValueType::Tamis => (load::<0>, free::<0>),
            ValueType::Bloom => (load::<1>, free::<1>),
            ValueType::Cuckoo => (load::<2>, free::<2>),
        };
        let mut methods = RedisModuleTypeMethods {
            version: u64::from(REDISMODULE_TYPE_METHOD_VERSION),
            rdb_load: Some(load),
            rdb_save: Some(save),
            aof_rewrite: Some(rewrite),
            mem_usage: Some(memory_usage),
            digest: Some(digest),
            free: Some(free),
            aux_load: None,
            aux_save: None,
            aux_save_triggers: 0,
            free_effort: Some(free_effort),
            unlink: None,
            copy: Some(copy),
            defrag: Some(defrag),
            mem_usage2: None,
            free_effort2: None,
            unlink2: None,
            copy2: None,
            aux_save2: None,
        };
        let name = CString::new(value_type.name()).expect("a name has no zero");
        // SAFETY: the server copies the methods and the name.
        let pointer = unsafe {
            api!(RedisModule_CreateDataType(
                ctx,
                name.as_ptr(),
                value_type.version() as c_int,
                &raw mut methods,
            ))
        };
        if pointer.is_null() {
            return Err(format!("another module has the type {}", value_type.name()));
        }
        value_type.set_pointer(pointer);
    }
    Ok(())
}

type LoadFn = unsafe extern "C" fn(*mut RedisModuleIO, c_int) -> *mut c_void;
type FreeFn = unsafe extern "C" fn(*mut c_void);

unsafe extern "C" fn load<const TYPE: usize>(
    io: *mut RedisModuleIO,
    version: c_int,
) -> *mut c_void {
    // SAFETY: the server passes a valid argument to this callback.
    let mut from = unsafe { ModuleIo::new(io) };
    let version = version as u64;
    let value = catch_unwind(AssertUnwindSafe(|| match ValueType::ALL[TYPE] {
        ValueType::Bloom => Ok(Value::RedisBloom(Box::new(read_bloom(&mut from, version)?))),
        ValueType::Cuckoo => Ok(Value::RedisCuckoo(Box::new(read_cuckoo(&mut from, version)?))),
        ValueType::Tamis => {
            let image = ImageReader::new(&mut from, version);
            let (mut image, len) = image.ok_or(ImageError::Value)?;
            // The length limits the memory, because an image without bits could request any amount
            // of memory.
            Value::read_dump(&mut image, len, None)
        }
    }));
    // SAFETY: the server passes a valid argument to this callback.
    let ctx = unsafe { api!(RedisModule_GetContextFromIO(io)) };
    let reason = match value {
        // SAFETY: the context belongs to this callback.
        Ok(Ok(value)) if value.is_ahead(unsafe { restored_millis(ctx) }) => {
            tm::CLOCK_AHEAD.trim_start_matches("ERR ").to_owned()
        }
        Ok(Ok(value)) => return into_pointer(value),
        Ok(Err(error @ ImageError::Memory)) => error.to_string(),
        _ => "it is damaged or unknown".to_owned(),
    };
    let name = ValueType::ALL[TYPE].name();
    let text = format!("tamis: refuses a value of type {name} (version {version}): {reason}");
    // SAFETY: the server passes a valid argument to this callback.
    unsafe { log(ctx, Level::Warning, &text) };
    null_mut()
}

/// Returns the time in milliseconds since 1970 if a client restores a value. Returns 0 if the value
/// comes from a file or a primary, because a server has already accepted the value.
///
/// # Safety
///
/// `ctx` is the context of the current callback.
unsafe fn restored_millis(ctx: *mut Ctx) -> u64 {
    // The context has no client, so this code tests flags of the server. A replica restores only
    // values from the primary.
    let accepted = raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_SLAVE;
    // SAFETY: the caller passes a valid context.
    let flags = unsafe { api!(RedisModule_GetContextFlags(ctx)) } as u32;
    if flags & accepted > 0 { 0 } else { now_millis() }
}

unsafe extern "C" fn save(io: *mut RedisModuleIO, pointer: *mut c_void) {
    // SAFETY: the server passes valid arguments to this callback.
    let (mut to, value) = unsafe { (ModuleIo::new(io), value_of(pointer)) };
    let write = || match value {
        Some(Value::RedisBloom(filter)) => write_bloom(&mut to, filter),
        Some(Value::RedisCuckoo(filter)) => write_cuckoo(&mut to, filter),
        Some(value) => {
            let written =
                write_image(&mut to, value.image_bytes(), |out| value.write_image(None, out));
            written.expect("the server takes all bytes, and the value does not change");
        }
        None => {}
    };
    // SAFETY: the server passes a valid argument to this callback.
    unsafe { write_value(io, write) };
}

unsafe extern "C" fn memory_usage(pointer: *const c_void) -> usize {
    // SAFETY: the server passes a valid argument to this callback.
    let value = unsafe { value_of(pointer.cast_mut()) };
    let slot = tamis::allocation_bytes(size_of::<Slot>());
    (slot + value.map_or(0, Value::heap_bytes)) as usize
}

unsafe extern "C" fn digest(digest: *mut RedisModuleDigest, pointer: *mut c_void) {
    struct Digest(*mut RedisModuleDigest);
    impl Write for Digest {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // SAFETY: the server passes a valid argument to this callback. The server reads the
            // bytes during the call.
            unsafe {
                api!(RedisModule_DigestAddStringBuffer(self.0, bytes.as_ptr().cast(), bytes.len()));
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // SAFETY: the server passes valid arguments to this callback.
    let Some(value) = (unsafe { value_of(pointer) }) else { return };
    _ = catch_unwind(AssertUnwindSafe(|| value.write_image(None, &mut Digest(digest))));
    // SAFETY: the server passes a valid argument to this callback.
    unsafe { api!(RedisModule_DigestEndSequence(digest)) };
}

unsafe extern "C" fn free<const TYPE: usize>(pointer: *mut c_void) {
    ValueType::ALL[TYPE].count_freed();
    // SAFETY: `into_pointer` created the value, and the server does not use the pointer after this
    // callback.
    let slot = unsafe { Box::from_raw(pointer.cast::<Slot>()) };
    _ = catch_unwind(AssertUnwindSafe(|| drop(slot)));
}

/// Returns the effort to free a value. The server frees a value on another thread if the effort is
/// above 64.
unsafe extern "C" fn free_effort(_: *mut RedisModuleString, pointer: *const c_void) -> usize {
    // SAFETY: the server passes a valid argument to this callback.
    let value = unsafe { value_of(pointer.cast_mut()) };
    1 + (value.map_or(0, Value::heap_bytes) >> 16) as usize
}

unsafe extern "C" fn copy(
    _: *mut RedisModuleString,
    _: *mut RedisModuleString,
    pointer: *const c_void,
) -> *mut c_void {
    // SAFETY: the server passes a valid argument to this callback.
    let Some(value) = (unsafe { value_of(pointer.cast_mut()) }) else { return null_mut() };
    let copied = catch_unwind(AssertUnwindSafe(|| {
        let mut image = Vec::new();
        image.try_reserve_exact(usize::try_from(value.image_bytes()).ok()?).ok()?;
        value.write_image(None, &mut image).ok()?;
        Value::from_image(&image).ok()
    }));
    copied.ok().flatten().map_or(null_mut(), into_pointer)
}

/// Moves the structures of a value, but not the bits. The bits of a large filter are on separate
/// memory pages and need no move.
unsafe extern "C" fn defrag(
    ctx: *mut RedisModuleDefragCtx,
    _: *mut RedisModuleString,
    pointer: *mut *mut c_void,
) -> c_int {
    // SAFETY: the server copies an allocation to a better place and frees the old allocation, or
    // returns null. A bytewise copy is a valid move of a Rust value.
    unsafe {
        let moved = api!(RedisModule_DefragAlloc(ctx, *pointer));
        if !moved.is_null() {
            *pointer = moved;
        }
        match (*pointer).cast::<Slot>().as_mut() {
            Some(Some(Value::Bloom(filter))) => move_box(ctx, filter),
            Some(Some(Value::RedisBloom(filter))) => move_box(ctx, filter),
            Some(Some(Value::RedisCuckoo(filter))) => move_box(ctx, filter),
            Some(Some(Value::Filter(file))) => move_box(ctx, file),
            _ => {}
        }
    }
    OK
}

/// # Safety
///
/// `ctx` is the argument of the callback `defrag`. The alignment of `T` is at most 16, so the box
/// is an allocation of the server without an offset.
unsafe fn move_box<T>(ctx: *mut RedisModuleDefragCtx, moved: &mut Box<T>) {
    const { assert!(align_of::<T>() <= 16) };
    let old: *mut T = &raw mut **moved;
    // SAFETY: the box owns the allocation. If the server moved the allocation, the old box must not free the memory, so
    // this code overwrites the old box without a drop.
    unsafe {
        let new = api!(RedisModule_DefragAlloc(ctx, old.cast()));
        if !new.is_null() {
            std::ptr::write(moved, Box::from_raw(new.cast()));
        }
    }
}
