//! Decodes each golden file after truncation at every byte and with every byte flipped. Each result
//! is an answer or an error, and the memory stays small. This test has its own process, because it
//! measures the memory of the process.

mod golden_data;
mod memory;

use golden_data::Golden;
use golden_data::files::golden;
use memory::{SLACK_BYTES, peak_bytes};
use tamis_formats::{Contents, Format};

/// Reads the info of a filter at some places only: the rates of some filters are measured, which takes
/// milliseconds.
fn read_info(at: usize, contents: &Contents) {
    if at % 100 == 7 {
        let _ = contents.info();
    }
}

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
            let _ =
                (Format::of(bytes), (format.decode)(bytes, &options).map(|it| read_info(len, &it)));
        }
        for at in 0..bytes.len() {
            // Flip all bits of each header byte. Flip one bit of each byte after the header, where
            // all bytes have the same meaning.
            let flips: &[u8] = if at < 128 { &[1, 2, 4, 8, 16, 32, 64, 128, 255] } else { &[128] };
            for flip in flips {
                bytes[at] ^= flip;
                let decoded = (format.decode)(&bytes, &options);
                let _ =
                    (Format::of(&bytes), decoded.map(|it| read_info(at + usize::from(*flip), &it)));
                bytes[at] ^= flip;
            }
        }
        let grown = peak_bytes() - before;
        let allowed = 4 * bytes.len() as u64 + SLACK_BYTES;
        assert!(grown <= allowed, "{name} {file}: {grown} bytes for {}", bytes.len());
    }
}
