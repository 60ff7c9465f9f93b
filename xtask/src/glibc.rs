//! Finds the newest version of glibc that a program or a library needs.

/// A version of glibc, such as `(2, 17)`.
pub type Version = (u32, u32);

/// Returns the newest version of glibc that the bytes of an ELF file name, or `None` if the file names no version.
///
/// The table of needed versions of an ELF file stores each version as a string such as `GLIBC_2.17`, which ends with a
/// zero byte. This function finds the strings without parsing the tables.
pub fn newest(elf: &[u8]) -> Option<Version> {
    const MARK: &[u8] = b"\0GLIBC_";
    let starts = elf.windows(MARK.len()).enumerate().filter(|(_, bytes)| *bytes == MARK);
    starts.filter_map(|(at, _)| version(&elf[at + MARK.len()..])).max()
}

/// Parses a version that ends with a zero byte. The third number of a version, as in `2.2.5`, is discarded.
fn version(bytes: &[u8]) -> Option<Version> {
    let end = bytes.iter().take(12).position(|&byte| byte == 0)?;
    let mut numbers = std::str::from_utf8(&bytes[..end]).ok()?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts() {
        let elf = b"\x7fELF\0libc.so.6\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.4\0memcpy\0";
        assert_eq!(newest(elf), Some((2, 17)));
    }

    #[test]
    fn other_strings_are_no_versions() {
        assert_eq!(newest(b"\0GLIBC_PRIVATE\0MYGLIBC_2.99\0GLIBC_2.99 text\0GLIBC_2.9"), None);
    }
}
