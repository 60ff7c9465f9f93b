//! Decodes each golden file after truncation at every byte and with every byte flipped. Each result
//! is an answer or an error, and the memory stays small. This test has its own process, because it
//! measures the memory of the process.

mod golden_data;
mod memory;

use golden_data::Golden;
use golden_data::files::golden;
use memory::{SLACK_BYTES, peak_bytes};
use tamis_formats::Format;

#[test]
fn each_truncation_and_each_flipped_byte_is_an_answer_or_an_error() {
    for Golden { format: name, name: file, mut bytes, options } in golden() {
        let format = Format::named(name).expect("a row");
        // Decode each file once before the measurement. Memory that the allocator keeps from this
        // run then does not count.
        let _ = (format.decode)(&bytes, &options).map(|it| it.info());
        let before = peak_bytes();
        for len in 0..bytes.len() {
            let bytes = &bytes[..len];
            let _ = (Format::of(bytes), (format.decode)(bytes, &options).map(|it| it.info()));
        }
        for at in 0..bytes.len() {
            // Flip all bits of each header byte. Flip one bit of each byte after the header, where
            // all bytes have the same meaning.
            let flips: &[u8] = if at < 128 { &[1, 2, 4, 8, 16, 32, 64, 128, 255] } else { &[128] };
            for flip in flips {
                bytes[at] ^= flip;
                let _ = (Format::of(&bytes), (format.decode)(&bytes, &options).map(|it| it.info()));
                bytes[at] ^= flip;
            }
        }
        let grown = peak_bytes() - before;
        let allowed = 4 * bytes.len() as u64 + SLACK_BYTES;
        assert!(grown <= allowed, "{name} {file}: {grown} bytes for {}", bytes.len());
    }
}
