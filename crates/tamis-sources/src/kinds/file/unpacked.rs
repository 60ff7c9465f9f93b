//! Decompresses a list if necessary.

use std::fs::File;
use std::io::{self, Read, Seek as _};

/// Reads a file from its start. If the first bytes are the magic number of gzip or Zstandard, the reader decompresses
/// the file. The reader ignores the file name.
pub(super) fn unpacked(mut file: &File) -> io::Result<Box<dyn Read + '_>> {
    file.rewind()?;
    #[cfg(feature = "databases")]
    {
        let mut head = Vec::new();
        file.take(4).read_to_end(&mut head)?;
        file.rewind()?;
        match head[..] {
            [0x1f, 0x8b, ..] => return Ok(Box::new(flate2::read::MultiGzDecoder::new(file))),
            // The decoder limits the window to 128 MiB.
            [0x28, 0xb5, 0x2f, 0xfd] => return Ok(Box::new(zstd::Decoder::new(file)?)),
            _ => {}
        }
    }
    Ok(Box::new(file))
}

#[cfg(all(test, feature = "databases"))]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn text_of(packed: &[u8]) -> io::Result<String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(packed).unwrap();
        let mut text = String::new();
        unpacked(&file)?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn a_list_may_be_compressed() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(b"1\n2\n").unwrap();
        let gzip = gzip.finish().unwrap();
        let zstd = zstd::encode_all(&b"1\n2\n"[..], 1).unwrap();
        assert_eq!(text_of(b"1\n2\n").unwrap(), "1\n2\n");
        assert_eq!(text_of(b"").unwrap(), "");
        for packed in [&gzip, &zstd] {
            assert_eq!(text_of(packed).unwrap(), "1\n2\n");
            // If a program appends to a compressed file, the file has several gzip members or Zstandard frames.
            assert_eq!(text_of(&[&packed[..], packed].concat()).unwrap(), "1\n2\n1\n2\n");
            for end in 4..packed.len() {
                text_of(&packed[..end]).unwrap_err();
            }
        }
    }
}
