//! Reads numbers of variable length, as in Protocol Buffers and Thrift.

/// Reads a number of up to 64 bits. Each byte contains seven bits, and the lowest bits come first.
pub fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
