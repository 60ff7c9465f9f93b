//! Detects the compression of data by their first bytes. Reads from the first bytes how much memory
//! the decompression needs.
//!
//! | format | begins with | may follow |
//! | --- | --- | --- |
//! | gzip | `1f 8b` | any number of members, zeros |
//! | bzip2 | `BZh1` to `BZh9`, then the mark of a block or of the end | any number of streams, zeros |
//! | xz | `fd 7zXZ 00` | any number of streams, zeros |
//! | zstd | `28 b5 2f fd`, or a skippable frame | any number of frames, zeros |

//!
//! If bytes that the table does not list follow the data, the reader returns an error.

use std::ops::RangeInclusive;

/// The compression of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// No compression.
    Plain,
    /// gzip, with Deflate.
    Gzip,
    /// Zstandard.
    Zstd,
    /// xz, not the older lzma.
    Xz,
    /// bzip2.
    Bzip2,
}

/// How the inputs of a command are decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Unpack {
    /// Detect the format by the first bytes of each input
    Auto,
    /// Read the inputs without decompression
    No,
    /// Decompress all inputs as gzip
    Gzip,
    /// Decompress all inputs as zstd
    Zstd,
    /// Decompress all inputs as xz
    Xz,
    /// Decompress all inputs as bzip2
    Bzip2,
}

impl Unpack {
    /// Returns the compression of an input that begins with `head`.
    pub fn packing(self, head: &[u8]) -> Packing {
        match self {
            Unpack::Auto => Packing::of(head),
            Unpack::No => Packing::Plain,
            Unpack::Gzip => Packing::Gzip,
            Unpack::Zstd => Packing::Zstd,
            Unpack::Xz => Packing::Xz,
            Unpack::Bzip2 => Packing::Bzip2,
        }
    }
}

/// Length of the longest magic bytes that identify a format.
pub const MARK_BYTES: usize = 10;

/// Length of the longest header of a zstd frame, which contains the size of the window.
pub const ZSTD_HEAD_BYTES: usize = 18;

/// The magic bytes of each format.
const MARKS: [(&[RangeInclusive<u8>], Packing); 6] = [
    (&[0x1f..=0x1f, 0x8b..=0x8b], Packing::Gzip),
    (&[0x28..=0x28, 0xb5..=0xb5, 0x2f..=0x2f, 0xfd..=0xfd], Packing::Zstd),
    // A zstd stream may begin with a skippable frame.
    (&[0x50..=0x5f, 0x2a..=0x2a, 0x4d..=0x4d, 0x18..=0x18], Packing::Zstd),
    (&[0xfd..=0xfd, b'7'..=b'7', b'z'..=b'z', b'X'..=b'X', b'Z'..=b'Z', 0..=0], Packing::Xz),
    // The first three bytes of bzip2 could also begin a line of text, so the next six bytes are
    // checked too. A block starts with the decimal digits of π. The end of the stream starts with
    // the digits of √π.
    (&bzip2([0x31, 0x41, 0x59, 0x26, 0x53, 0x59]), Packing::Bzip2),
    (&bzip2([0x17, 0x72, 0x45, 0x38, 0x50, 0x90]), Packing::Bzip2),
];

const fn bzip2([a, b, c, d, e, f]: [u8; 6]) -> [RangeInclusive<u8>; MARK_BYTES] {
    [b'B'..=b'B', b'Z'..=b'Z', b'h'..=b'h', b'1'..=b'9', a..=a, b..=b, c..=c, d..=d, e..=e, f..=f]
}

impl Packing {
    /// Returns the compression of data that begin with `head`.
    pub fn of(head: &[u8]) -> Self {
        let is_of = |mark: &[RangeInclusive<u8>]| {
            head.len() >= mark.len() && mark.iter().zip(head).all(|(may, byte)| may.contains(byte))
        };
        MARKS.iter().find(|(mark, _)| is_of(mark)).map_or(Packing::Plain, |(_, packing)| *packing)
    }

    /// Tests whether `head` is a proper prefix of the magic bytes of a compressed format. For a
    /// proper prefix, the decision needs more bytes.
    pub fn may_become_known(head: &[u8]) -> bool {
        MARKS.iter().any(|(mark, _)| {
            head.len() < mark.len() && mark.iter().zip(head).all(|(may, byte)| may.contains(byte))
        })
    }

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Packing::Plain => "plain",
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
            Packing::Xz => "xz",
            Packing::Bzip2 => "bzip2",
        }
    }

    /// Returns the memory that decompression needs, in bytes. `head` is the start of the data.
    pub fn needed_bytes(self, head: &[u8]) -> u64 {
        match self {
            Packing::Plain => 0,
            Packing::Gzip => 128 << 10,
            // A block has up to 900,000 bytes, and the decoder needs five bytes for each byte of
            // the block.
            Packing::Bzip2 => 5 << 20,
            Packing::Xz => xz_bytes(head).unwrap_or(8 << 20).saturating_add(DECODER_BYTES),
            Packing::Zstd => zstd_bytes(head).unwrap_or(8 << 20).saturating_add(DECODER_BYTES),
        }
    }
}

/// Upper bound for the memory of a decoder besides its window or dictionary.
pub const DECODER_BYTES: u64 = 1 << 20;

/// Reads the dictionary size from the header of the first block of an xz stream.
fn xz_bytes(head: &[u8]) -> Option<u64> {
    // The stream header has 12 bytes. After the stream header, the block header contains its size
    // and flags, up to two optional sizes that no single-threaded tool writes, and the filters. A
    // filter has an id, a length and properties. LZMA2 (0x21) has one byte of properties.
    let block = head.get(12..)?;
    let at = block.windows(2).position(|pair| pair == [0x21, 1])?;
    let bits = u32::from(*block.get(at + 2)?);
    let mantissa = 2 | u64::from(bits & 1);
    Some(if bits >= 40 { u64::from(u32::MAX) } else { mantissa << (bits / 2 + 11) })
}

/// Reads the window size from the header of a zstd frame.
pub fn zstd_bytes(head: &[u8]) -> Option<u64> {
    if !head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return None;
    }
    let descriptor = *head.get(4)?;
    let is_single = descriptor & 0x20 != 0;
    if !is_single {
        let window = *head.get(5)?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // In a frame with a single segment, the window is the whole content. The content size follows
    // the dictionary ID.
    let at = 5 + [0, 1, 2, 4][usize::from(descriptor & 3)];
    let len = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let mut size = [0; 8];
    size[..len].copy_from_slice(head.get(at..at + len)?);
    // A size field of two bytes stores the size minus 256.
    Some(u64::from_le_bytes(size).saturating_add(if len == 2 { 256 } else { 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_not_taken_for_packed_data() {
        for text in ["BZh9 is no bzip2", "BZh91AY&S", "P*M", "\u{fd}7zXZ", "", "a", "(\u{b5}/"] {
            assert_eq!(Packing::of(text.as_bytes()), Packing::Plain, "{text}");
        }
        assert!(!Packing::may_become_known(b"BZx") && !Packing::may_become_known(b"a"));
        assert!(Packing::may_become_known(b"") && Packing::may_become_known(b"BZh9"));
    }

    #[test]
    fn the_memory_of_a_decoder_is_read_from_the_header() {
        // The commands `xz -6`, `xz -0` and `zstd -19` (window 8 MiB) wrote these headers. The last
        // header is a single segment of ten bytes, which `zstd` wrote.
        let xz =
            |bits| [&b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\0\x21\x01"[..], &[bits, 0]].concat();
        assert_eq!(xz_bytes(&xz(0x16)), Some(8 << 20));
        assert_eq!(xz_bytes(&xz(0x0c)), Some(256 << 10));
        assert_eq!(zstd_bytes(&[0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68]), Some(8 << 20));
        assert_eq!(zstd_bytes(&[0x28, 0xb5, 0x2f, 0xfd, 0x24, 10]), Some(10));
        assert_eq!(zstd_bytes(&[0x28, 0xb5]), None);
    }
}
