//! Encodes and decodes hexadecimal digits of keys, digests and random numbers.

/// Decodes `N` bytes from two lowercase hexadecimal digits for each byte.
pub(crate) fn decode<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |c: u8| char::from(c).to_digit(16).filter(|_| !c.is_ascii_uppercase());
    let (pairs, rest) = digits.as_chunks::<2>();
    let pairs: &[[u8; 2]; N] = pairs.try_into().ok().filter(|_| rest.is_empty())?;
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(bytes)
}

/// Encodes each byte as two lowercase hexadecimal digits.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
