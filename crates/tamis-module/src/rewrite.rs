//! Writes a value as commands into an append-only file that has no RDB part.
//!
//! A value of RedisBloom becomes `BF.LOADCHUNK` or `CF.LOADCHUNK` commands, which RedisBloom and
//! Tamis both run. Any other filter becomes `BF.LOADCHUNK` commands that carry a header and the
//! chunks.

use std::ffi::{c_char, c_longlong, c_void};
use std::io::{self, Write};

use tamis_commands::{PartialLoad, Value};
use valkey_module::raw::{RedisModuleIO, RedisModuleString};

use crate::api::api;
use crate::value_type::value_of;
use crate::write_value::write_value;

/// The maximum length of a chunk, in bytes, which is the same as in RedisBloom.
const CHUNK_BYTES: usize = 16 << 20;

pub unsafe extern "C" fn rewrite(
    io: *mut RedisModuleIO,
    key: *mut RedisModuleString,
    pointer: *mut c_void,
) {
    // SAFETY: the server passes a valid argument to this callback.
    let Some(value) = (unsafe { value_of(pointer) }) else { return };
    let write = || match value {
        Value::RedisBloom(filter) => {
            let mut to = Chunks::new(io, key, c"BF.LOADCHUNK".as_ptr());
            to.emit(1, &filter.header());
            to.emit_all(|position| filter.chunk(position));
        }
        Value::RedisCuckoo(filter) => {
            let mut to = Chunks::new(io, key, c"CF.LOADCHUNK".as_ptr());
            to.emit(1, &filter.header());
            to.emit_all(|position| filter.chunk(position));
        }
        Value::PartialLoad(part) => {
            let mut to = Chunks::new(io, key, c"BF.LOADCHUNK".as_ptr());
            to.emit(1, &PartialLoad::header(part.len_bytes()));
            to.write_all(part.bytes()).and_then(|()| to.flush()).expect("the server takes all");
        }
        value => {
            let mut to = Chunks::new(io, key, c"BF.LOADCHUNK".as_ptr());
            to.emit(1, &PartialLoad::header(value.image_bytes()));
            let written = value.write_image(None, &mut to).and_then(|()| to.flush());
            written.expect("the server takes all");
        }
    };
    // SAFETY: the server passes a valid argument to this callback.
    unsafe { write_value(io, write) };
}

/// Splits an image into chunks and writes a command for each chunk.
struct Chunks {
    io: *mut RedisModuleIO,
    key: *mut RedisModuleString,
    command: *const c_char,
    chunk: Vec<u8>,
    /// The position after the last chunk. Positions start at 1.
    position: i64,
}

impl Chunks {
    fn new(io: *mut RedisModuleIO, key: *mut RedisModuleString, command: *const c_char) -> Self {
        Self { io, key, command, chunk: Vec::new(), position: 1 }
    }

    /// Writes one command with a position and the bytes of a chunk.
    fn emit(&mut self, position: i64, bytes: &[u8]) {
        // SAFETY: the format names a string, a number, and bytes with their length.
        unsafe {
            api!(RedisModule_EmitAOF(
                self.io,
                self.command,
                c"slb".as_ptr(),
                self.key,
                position as c_longlong,
                bytes.as_ptr(),
                bytes.len(),
            ));
        }
    }

    fn emit_all(&mut self, chunk: impl Fn(i64) -> Option<(i64, Vec<u8>)>) {
        while let Some((next, bytes)) = chunk(self.position) {
            self.emit(next, &bytes);
            self.position = next;
        }
    }
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..len]);
        if self.chunk.len() == CHUNK_BYTES {
            self.flush()?;
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        let chunk = std::mem::take(&mut self.chunk);
        if !chunk.is_empty() {
            self.position += chunk.len() as i64;
            self.emit(self.position, &chunk);
        }
        Ok(())
    }
}
