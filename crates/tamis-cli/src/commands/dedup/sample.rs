//! Estimates the number of records before a run reads the inputs.

use std::path::PathBuf;

use crate::io::input::{Input, total_len_bytes};
use crate::io::unpack::PACKED_BLOCK_BYTES;
use crate::records::key::RecordForm;
use crate::records::split::{BlockBuffer, BlockReader, records as split};

/// An estimate for all inputs, computed from the first blocks of the first input.
#[derive(Clone, Copy, Debug)]
pub struct InputSample {
    /// Estimated number of records.
    pub records: f64,
    /// True if the inputs are not compressed. For inputs that are not compressed, only the record
    /// length is estimated.
    pub is_bound: bool,
}

/// Bytes that a sample decompresses from a compressed input to estimate the compression ratio.
const PACKED_SAMPLE_BYTES: u64 = 4 << 20;

impl InputSample {
    /// Reads the first blocks. Returns `None` if the size of the inputs is unknown.
    pub fn of(paths: &[PathBuf], form: RecordForm) -> Option<Self> {
        let total_bytes = total_len_bytes(paths)? as f64;
        let mut blocks = BlockReader::new(Input::open(paths.first()?, form.input).ok()?, form.end);
        let is_bound = !blocks.reader().is_packed();
        let (mut block, mut records, mut len_bytes) = (BlockBuffer::default(), 0, 0);
        while blocks.read_block(&mut block).ok()? {
            records += split(&block, form.end).count();
            len_bytes += block.len() as u64;
            if is_bound || len_bytes >= PACKED_SAMPLE_BYTES {
                break;
            }
        }
        let mut used_bytes = len_bytes;
        if !is_bound {
            // Some of the consumed bytes are not decompressed yet. The code therefore takes the
            // larger of two lower bounds for the used bytes.
            let consumed_bytes = blocks.reader().consumed_bytes();
            used_bytes = consumed_bytes.saturating_sub(PACKED_BLOCK_BYTES as u64);
            used_bytes = used_bytes.max(consumed_bytes / 4);
        }
        let records = records.max(1) as f64;
        Some(Self { records: total_bytes * records / used_bytes.max(1) as f64, is_bound })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::io::input::tests::gzip;
    use crate::records::key::RecordArgs;

    #[test]
    fn a_sample_guesses_the_number_of_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut text = Vec::new();
        (0..500_000_u64).for_each(|i| writeln!(text, "line {}", i * 7919).unwrap());
        std::fs::write(&path, &text).unwrap();
        let sample =
            InputSample::of(std::slice::from_ref(&path), RecordArgs::default().lines()).unwrap();
        assert!(sample.is_bound && (4e5..6e5).contains(&sample.records), "{sample:?}");
        for packed in [gzip(&text), zstd::encode_all(&text[..], 1).unwrap()] {
            std::fs::write(&path, packed).unwrap();
            let sample =
                InputSample::of(std::slice::from_ref(&path), RecordArgs::default().lines())
                    .unwrap();
            assert!(!sample.is_bound && (4.5e5..1.2e6).contains(&sample.records), "{sample:?}");
        }
        assert!(InputSample::of(&[PathBuf::from("-")], RecordArgs::default().lines()).is_none());
    }
}
