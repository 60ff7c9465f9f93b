//! Reads JSON files of `tests/golden`, and bytes that these files contain as text.
#![allow(dead_code, reason = "no test needs all of it")]

use std::path::PathBuf;

use serde_json::Value as Json;

/// Reads a file of `tests/golden`.
pub fn json(name: &str) -> Json {
    serde_json::from_slice(&std::fs::read(path(name)).unwrap()).unwrap()
}

pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

pub fn list(json: &Json) -> &[Json] {
    json.as_array().unwrap_or_else(|| panic!("no list: {json}"))
}

pub fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_else(|| panic!("no text: {json}"))
}

/// Returns a number. A number too large for JSON is stored as text.
pub fn number(json: &Json) -> i128 {
    json.to_string().trim_matches('"').parse().unwrap_or_else(|_| panic!("no number: {json}"))
}

pub fn real(json: &Json) -> f64 {
    json.to_string().trim_matches('"').parse().unwrap_or_else(|_| panic!("no number: {json}"))
}

pub fn hex(json: &Json) -> Vec<u8> {
    let digits = text(json).as_bytes();
    assert!(digits.len().is_multiple_of(2), "{json}");
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

pub fn hexes(json: &Json) -> Vec<Vec<u8>> {
    list(json).iter().map(hex).collect()
}

/// Returns the key of SipHash in a case of the test vectors of Bitcoin.
pub fn sip_key(case: &Json) -> [u64; 2] {
    ["k0", "k1"].map(|half| u64::from_str_radix(text(&case[half]), 16).unwrap())
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn base64(json: &Json) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut len) = (Vec::new(), 0_u32, 0);
    for c in text(json).trim_end_matches('=').bytes() {
        let digit = DIGITS.iter().position(|&it| it == c).expect("base64") as u32;
        (bits, len) = (bits << 6 | digit, len + 6);
        if len >= 8 {
            len -= 8;
            bytes.push((bits >> len) as u8);
        }
    }
    bytes
}
