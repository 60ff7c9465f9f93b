//! Computes the ETag of a filter file: the checksum of the file. A client can compute the tag of
//! its local copy, and can verify a download by its tag.

use std::fs::File;
use std::io::{self, Read as _};

use tamis_guard::EntityTag;
use xxhash_rust::xxh3::Xxh3;

/// The prefix of a tag that is a checksum.
const PREFIX: &str = "xxh3-";

/// Computes the tag of the bytes of a file.
#[derive(Default)]
pub struct ContentTag(Xxh3);

impl ContentTag {
    /// Adds the next bytes of the file.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the tag: `xxh3-` and the XXH3-128 of the bytes in 32 hexadecimal digits.
    pub fn tag(&self) -> EntityTag {
        EntityTag::new(format!("{PREFIX}{:032x}", self.0.digest128())).expect("visible characters")
    }

    /// Reads a file to its end. Returns the tag of the file.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn of_file(mut file: &File) -> io::Result<EntityTag> {
        let mut tag = Self::default();
        let mut bytes = vec![0; 256 << 10];
        loop {
            match file.read(&mut bytes) {
                Ok(0) => return Ok(tag.tag()),
                Ok(read) => tag.update(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Tests whether a tag is a checksum of the content.
pub fn is_checksum(tag: &EntityTag) -> bool {
    tag.to_string().starts_with(PREFIX)
}
