//! Parses scripts: returns the pushed data, and recognizes two forms of scripts.

/// Returns an iterator over the data that a script pushes, without empty pushes. The iterator stops
/// at the end of the script or at a truncated opcode.
///
/// # Examples
///
/// ```
/// use tamis_bitcoin::pushes;
///
/// // OP_DUP, a push of two bytes, OP_0, a truncated push.
/// let script = [0x76, 2, 0xaa, 0xbb, 0x00, 3, 0xcc];
/// assert_eq!(pushes(&script).collect::<Vec<_>>(), [[0xaa, 0xbb]]);
/// ```
pub fn pushes(script: &[u8]) -> impl Iterator<Item = &[u8]> {
    Ops { rest: script }.map(|op| op.data).filter(|data| !data.is_empty())
}

/// An opcode and the data that the opcode pushes.
struct Op<'a> {
    code: u8,
    data: &'a [u8],
}

/// An iterator over the opcodes of a script. The iterator stops at the end of the script or at a
/// truncated opcode.
struct Ops<'a> {
    rest: &'a [u8],
}

const PUSH_DATA_1: u8 = 0x4c;
const PUSH_DATA_2: u8 = 0x4d;
const PUSH_DATA_4: u8 = 0x4e;
const OP_1: u8 = 0x51;
const OP_16: u8 = 0x60;
pub(crate) const OP_RETURN: u8 = 0x6a;
const CHECK_SIG: u8 = 0xac;
const CHECK_MULTISIG: u8 = 0xae;

impl<'a> Iterator for Ops<'a> {
    type Item = Op<'a>;

    fn next(&mut self) -> Option<Op<'a>> {
        let (&code, rest) = self.rest.split_first()?;
        // After a truncated opcode, `rest` stays empty, so the iteration stops.
        self.rest = &[];
        let (len, rest) = match code {
            PUSH_DATA_1 => rest.split_first().map(|(&len, rest)| (usize::from(len), rest))?,
            PUSH_DATA_2 => {
                let (&len, rest) = rest.split_first_chunk()?;
                (u16::from_le_bytes(len).into(), rest)
            }
            PUSH_DATA_4 => {
                let (&len, rest) = rest.split_first_chunk()?;
                (usize::try_from(u32::from_le_bytes(len)).ok()?, rest)
            }
            0..PUSH_DATA_1 => (code.into(), rest),
            _ => (0, rest),
        };
        let (data, rest) = rest.split_at_checked(len)?;
        self.rest = rest;
        Some(Op { code, data })
    }
}

/// Tests whether a script consists of one public key and `OP_CHECKSIG`.
pub(crate) fn is_pay_to_public_key(script: &[u8]) -> bool {
    let is_key = |key: &[u8]| {
        is_public_key(key) && script.len() == 2 + key.len() && usize::from(script[0]) == key.len()
    };
    matches!(script, [_, key @ .., CHECK_SIG] if is_key(key))
}

/// Tests whether a script is a bare multisig script with 1 to 20 keys.
pub(crate) fn is_bare_multisig(script: &[u8]) -> bool {
    let mut ops = Ops { rest: script };
    let Some(required) = ops.next().and_then(|op| small_number(&op)) else { return false };
    let mut keys = 0;
    let stated = loop {
        match ops.next() {
            Some(op) if is_public_key(op.data) => keys += 1,
            Some(op) => break small_number(&op),
            None => return false,
        }
    };
    stated == Some(keys) && required <= keys && ops.rest == [CHECK_MULTISIG]
}

fn small_number(op: &Op<'_>) -> Option<u32> {
    match (op.code, op.data) {
        (OP_1..=OP_16, []) => Some(u32::from(op.code - OP_1) + 1),
        (1, &[n @ 17..=20]) => Some(n.into()),
        _ => None,
    }
}

/// Tests whether bytes have the prefix and the length of a public key.
fn is_public_key(key: &[u8]) -> bool {
    match key.first() {
        Some(2 | 3) => key.len() == 33,
        Some(4 | 6 | 7) => key.len() == 65,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_end_at_a_truncated_opcode() {
        let data = |script: &[u8]| pushes(script).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(data(&[1, 9, PUSH_DATA_1, 1, 8, PUSH_DATA_2, 1, 0, 7]), [[9], [8], [7]]);
        assert_eq!(data(&[PUSH_DATA_4, 2, 0, 0, 0, 6, 5]), [[6, 5]]);
        assert_eq!(data(&[OP_1, 0x4f, 0, PUSH_DATA_1, 0, 0xff, 1, 3]), [[3]]);
        for cut in [&[1, 9, 2, 1][..], &[1, 9, PUSH_DATA_1], &[1, 9, PUSH_DATA_2, 0]] {
            assert_eq!(data(cut), [[9]]);
        }
        assert_eq!(data(&[1, 9, PUSH_DATA_4, 255, 255, 255, 255, 1, 1]), [[9]]);
        assert!(data(&[]).is_empty());
    }

    #[test]
    fn two_forms_of_scripts_are_distinguished_from_others() {
        let (short, long) = ([&[2][..], &[7; 32]].concat(), [&[4][..], &[7; 64]].concat());
        let to_key = |key: &[u8]| [&[key.len() as u8], key, &[CHECK_SIG]].concat();
        assert!(is_pay_to_public_key(&to_key(&short)) && is_pay_to_public_key(&to_key(&long)));
        let wrong = [to_key(&[7; 33]), to_key(&[2; 65]), to_key(&[]), vec![], vec![CHECK_SIG]];
        assert!(!wrong.iter().any(|script| is_pay_to_public_key(script)));
        let pushed_longer = [&[PUSH_DATA_1, 33][..], &short, &[CHECK_SIG]].concat();
        assert!(!is_pay_to_public_key(&pushed_longer));

        let multisig = |required: u8, keys: usize, stated: &[u8]| {
            let keys = [&[33][..], &short].concat().repeat(keys);
            [&[OP_1 - 1 + required][..], &keys, stated, &[CHECK_MULTISIG]].concat()
        };
        assert!(is_bare_multisig(&multisig(1, 1, &[OP_1])));
        assert!(is_bare_multisig(&multisig(2, 3, &[OP_1 + 2])));
        assert!(is_bare_multisig(&multisig(16, 20, &[1, 20])));
        for wrong in [
            multisig(1, 0, &[OP_1 - 1]),
            multisig(2, 1, &[OP_1]),
            multisig(1, 2, &[OP_1]),
            multisig(1, 21, &[1, 21]),
            multisig(1, 1, &[]),
            [multisig(1, 1, &[OP_1]), vec![CHECK_MULTISIG]].concat(),
            vec![CHECK_MULTISIG],
            vec![],
        ] {
            assert!(!is_bare_multisig(&wrong), "{wrong:?}");
        }
    }
}
