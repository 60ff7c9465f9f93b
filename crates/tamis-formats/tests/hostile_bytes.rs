//! Each golden file cut at every byte and flipped at every byte is an answer or an error, in little
//! memory. One test alone, since it measures what its process takes.

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
        // Once whole, so that what the allocator keeps for later is there.
        let _ = (format.decode)(&bytes, &options).map(|it| it.info());
        let before = peak_bytes();
        for len in 0..bytes.len() {
            let bytes = &bytes[..len];
            let _ = (Format::of(bytes), (format.decode)(bytes, &options).map(|it| it.info()));
        }
        for at in 0..bytes.len() {
            // All bits of the head; one of each byte behind it, where all bytes mean the same.
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
