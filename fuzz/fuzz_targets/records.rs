//! Reads any bytes as records. They equal the parts of a split at the delimiter, however the bytes
//! arrive.
#![no_main]

use std::io::{self, Read};

use libfuzzer_sys::fuzz_target;
use tamis_cli::records::{BlockBuffer, BlockReader, records};

/// Returns at most `step` bytes per call, like a pipe. The fuzzer chooses `step`.
struct Dribble<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.step.min(buffer.len()).min(self.bytes.len());
        buffer[..len].copy_from_slice(&self.bytes[..len]);
        self.bytes = &self.bytes[len..];
        Ok(len)
    }
}

fuzz_target!(|data: (u8, bool, &[u8])| {
    let (step, null, bytes) = data;
    let delimiter = if null { 0 } else { b'\n' };
    let mut expected: Vec<&[u8]> = bytes.split(|&byte| byte == delimiter).collect();
    // A delimiter ends a record: nothing stands after the last one.
    if expected.last().is_some_and(|last| last.is_empty()) {
        expected.pop();
    }
    let mut expected = expected.into_iter();
    let mut blocks = BlockReader::new(Dribble { bytes, step: usize::from(step) + 1 }, delimiter);
    let mut block = BlockBuffer::default();
    while blocks.read_block(&mut block).expect("a slice can be read") {
        for record in records(&block, delimiter) {
            assert_eq!(Some(record), expected.next());
        }
    }
    assert_eq!(expected.next(), None);
});
