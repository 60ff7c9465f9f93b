//! Numbers as the log contains them.

/// The number of bytes for a number of decimal digits below 9.
const DIGIT_BYTES: [usize; 9] = [0, 1, 1, 2, 2, 3, 3, 4, 4];

/// Returns the signed integer of up to 8 bytes, in the little-endian order of the log. Returns `None` for more bytes.
pub(super) fn signed(bytes: &[u8]) -> Option<i64> {
    let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if is_negative { 0xff } else { 0 }; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i64::from_le_bytes(wide))
}

/// Returns the number of bytes for some digits of a DECIMAL: 4 bytes for each 9 digits, and fewer bytes for the
/// remaining digits.
pub(super) fn decimal_bytes(digits: usize) -> usize {
    digits / 9 * 4 + DIGIT_BYTES[digits % 9]
}

/// Returns the text of a DECIMAL with `digits` digits and without a fraction. Returns `None` if the number of bytes is
/// wrong.
///
/// The first group has the digits that do not fill a group of 9. Each group is a big-endian integer. The first bit is 1
/// for a positive number. In a negative number, all bits are inverted.
pub(super) fn decimal_text(stored: &[u8], digits: usize) -> Option<String> {
    if stored.len() != decimal_bytes(digits) {
        return None;
    }
    let mut bytes = stored.to_vec();
    let is_negative = *bytes.first()? & 0x80 == 0;
    if is_negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    bytes[0] ^= 0x80;
    let number = |group: &[u8]| group.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    let (first, groups) = bytes.split_at(DIGIT_BYTES[digits % 9]);
    let mut text = number(first).to_string();
    text.extend(groups.chunks(4).map(|group| format!("{:09}", number(group))));
    let text = text.trim_start_matches('0');
    Some(match text {
        "" => "0".to_owned(),
        text if is_negative => format!("-{text}"),
        text => text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_a_server_are_decoded() {
        // The values are from the documentation of `decimal2bin`: 1234567890 and -1234567890 as DECIMAL(10, 0).
        for (digits, stored, text) in [
            (10, &[0x81, 0x0D, 0xFB, 0x38, 0xD2][..], Some("1234567890")),
            (10, &[0x7E, 0xF2, 0x04, 0xC7, 0x2D], Some("-1234567890")),
            (2, &[0x80], Some("0")),
            (2, &[0x80 + 42], Some("42")),
            (9, &[0x80, 0, 0, 7], Some("7")),
            (9, &[0x80, 0, 0], None),
            (9, &[0x80, 0, 0, 7, 0, 0, 0, 7], None),
            (10, &[0x81, 0x0D, 0xFB, 0x38, 0xD2, 1], None),
            (10, &[], None),
        ] {
            assert_eq!(decimal_text(stored, digits).as_deref(), text, "{stored:?}");
        }
    }
}
