//! Text becomes the bytes that Java's `String.getBytes` returns, for every character.

use crate::golden_data::{hex, json, list, text, to_hex};
use tamis_formats::{Charset, Funnel};

/// The number of code points that one hash covers.
const BLOCK: u32 = 0x1000;

fn fnv(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

#[test]
fn every_character_is_encoded_as_java_does() {
    for golden in list(&json("charsets/charsets.json")["charsets"]) {
        let charset = Charset::named(text(&golden["name"])).unwrap();
        let (mut scratch, mut character) = (Vec::new(), [0; 4]);
        for (block, expected) in text(&golden["blocks"]).as_bytes().chunks(8).enumerate() {
            let start = block as u32 * BLOCK;
            let mut hash = 0x811c_9dc5;
            for c in (start..start + BLOCK).filter_map(char::from_u32) {
                let item = c.encode_utf8(&mut character).as_bytes();
                let bytes = Funnel::Text(charset).key(item, &mut scratch).unwrap();
                hash = bytes.iter().fold(fnv(hash, bytes.len() as u8), |hash, &it| fnv(hash, it));
            }
            let expected = std::str::from_utf8(expected).unwrap();
            assert_eq!(format!("{hash:08x}"), expected, "{charset}: from U+{start:04X} on");
        }
    }
}

#[test]
fn halves_of_pairs_are_replaced_as_java_does() {
    let golden = json("charsets/charsets.json");
    assert_eq!(list(&golden["charsets"]).len(), Charset::ALL.len());
    for golden in list(&golden["charsets"]) {
        let charset = Charset::named(text(&golden["name"])).unwrap();
        for case in list(&golden["strings"]) {
            let units: Vec<u16> =
                hex(&case[0]).chunks(2).map(|it| u16::from_be_bytes([it[0], it[1]])).collect();
            let mut bytes = Vec::new();
            charset.encode_units(&units, &mut bytes);
            assert_eq!(to_hex(&bytes), text(&case[1]), "{charset} of {}", case[0]);
        }
    }
}
