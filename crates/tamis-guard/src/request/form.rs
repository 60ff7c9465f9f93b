//! Pairs of names and values such as `a=1&b=2`, as queries and bodies of forms contain them.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Returns the decoded values of a name. The function ignores the case of ASCII letters, because some programs treat
/// `ID` as `id`.
pub(crate) fn values_of<'t>(pairs: &'t [u8], name: &str) -> impl Iterator<Item = Cow<'t, [u8]>> {
    pairs.split(|&byte| byte == b'&').filter_map(move |pair| {
        let equals = pair.iter().position(|&byte| byte == b'=');
        let (other, value) = equals.map_or((pair, &b""[..]), |at| (&pair[..at], &pair[at + 1..]));
        decoded(other).eq_ignore_ascii_case(name.as_bytes()).then(|| decoded(value))
    })
}

/// Decodes a name or a value. A plus sign stands for a space.
fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'+') {
        return percent_decode(text).into();
    }
    let space = |&byte: &u8| if byte == b'+' { b' ' } else { byte };
    let spaced: Vec<u8> = text.iter().map(space).collect();
    Cow::Owned(percent_decode(&spaced).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_name_are_found_in_any_bytes() {
        let values = |pairs: &'static [u8]| -> Vec<Vec<u8>> {
            values_of(pairs, "id").map(Cow::into_owned).collect()
        };
        assert_eq!(values(b"id=7&ID=%38&i%64=a+b&xid=1&id"), [&b"7"[..], b"8", b"a b", b""]);
        assert_eq!(values(b"id=\xff=&=&&id=%zz"), [&b"\xff="[..], b"%zz"]);
        for none in [&b""[..], b"7", b"\xff", b"ID2=1;id=2"] {
            assert!(values(none).is_empty(), "{none:?}");
        }
    }
}
