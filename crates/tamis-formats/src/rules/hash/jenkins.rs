//! lookup3, the hash of Bob Jenkins that Hadoop calls Jenkins.
//!
//! Source: Jenkins, lookup3 (public domain), function `hashlittle`.

/// Returns the 32-bit hash.
pub(crate) fn lookup3(bytes: &[u8], seed: u32) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32).wrapping_add(seed);
    let [mut a, mut b, mut c] = [start; 3];
    // The last block, of up to twelve bytes, has a different mixing step than the blocks before the
    // last block.
    let last = bytes.len().saturating_sub(1) / 12 * 12;
    let (blocks, last) = bytes.split_at(last);
    let mut add = |block: &[u8; 12], is_last: bool| {
        let (words, _) = block.as_chunks::<4>();
        a = a.wrapping_add(u32::from_le_bytes(words[0]));
        b = b.wrapping_add(u32::from_le_bytes(words[1]));
        c = c.wrapping_add(u32::from_le_bytes(words[2]));
        (a, b, c) = if is_last { finish(a, b, c) } else { mix(a, b, c) };
    };
    blocks.as_chunks().0.iter().for_each(|block| add(block, false));
    if !last.is_empty() {
        let mut block = [0; 12];
        block[..last.len()].copy_from_slice(last);
        add(&block, true);
    }
    c
}

fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    for [one, two, three] in [[4, 6, 8], [16, 19, 4]] {
        a = a.wrapping_sub(c) ^ c.rotate_left(one);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(two);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(three);
        b = b.wrapping_add(a);
    }
    (a, b, c)
}

fn finish(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    let step = |to: u32, from: u32, by: u32| (to ^ from).wrapping_sub(from.rotate_left(by));
    c = step(c, b, 14);
    a = step(a, c, 11);
    b = step(b, a, 25);
    c = step(c, b, 16);
    a = step(a, c, 4);
    b = step(b, a, 14);
    c = step(c, b, 24);
    (a, b, c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes() {
        // The expected values come from the comments of lookup3.
        assert_eq!(lookup3(b"", 0), 0xdead_beef);
        assert_eq!(lookup3(b"", 0xdead_beef), 0xbd5b_7dde);
        assert_eq!(lookup3(b"Four score and seven years ago", 0), 0x1777_0551);
        assert_eq!(lookup3(b"Four score and seven years ago", 1), 0xcd62_8161);
    }
}
