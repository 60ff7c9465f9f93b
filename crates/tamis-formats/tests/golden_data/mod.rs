//! Reads the golden data: JSON, and bytes written as text in it.
#![allow(dead_code, reason = "no test needs all of it")]

pub mod files;
mod python;

use std::path::PathBuf;

use serde_json::Value as Json;
use tamis_formats::DecodeOptions;

/// A whole file and its decode options.
pub struct Golden {
    pub format: &'static str,
    pub name: String,
    pub bytes: Vec<u8>,
    pub options: DecodeOptions,
}

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

/// A number, also where it stands as text because it is too large for JSON.
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

/// The chunks of a recorded filter of RedisBloom as the commands that load them.
pub fn chunks_as_commands(filter: &Json) -> Vec<u8> {
    let name = if filter["family"] == "BF" { "BF.LOADCHUNK" } else { "CF.LOADCHUNK" };
    let mut commands = Vec::new();
    for chunk in list(&filter["chunks"]) {
        let position = chunk["iter"].to_string();
        let words = [
            name.as_bytes(),
            text(&filter["name"]).as_bytes(),
            position.as_bytes(),
            &base64(&chunk["data"]),
        ];
        commands.extend(b"*4\r\n");
        for word in words {
            commands.extend(format!("${}\r\n", word.len()).as_bytes());
            commands.extend(word);
            commands.extend(b"\r\n");
        }
    }
    commands
}

/// A snapshot of Redis with strings: database, key and value of each.
pub fn snapshot(strings: &[(u8, &[u8], &[u8])]) -> Vec<u8> {
    let mut bytes = b"REDIS0010\xfa\x01a\x01b".to_vec();
    for (database, key, value) in strings {
        bytes.extend([0xfe, *database, 0, key.len() as u8]);
        bytes.extend(*key);
        bytes.push(0x80);
        bytes.extend((value.len() as u32).to_be_bytes());
        bytes.extend(*value);
    }
    bytes.push(0xff);
    bytes.extend([0; 8]);
    bytes
}

/// Text as UTF-16 code units, also where it is none that can be written down.
pub fn units(json: &Json) -> Vec<u16> {
    if let Some(units) = json.get("utf16") {
        return hex(units).chunks(2).map(|it| u16::from_be_bytes([it[0], it[1]])).collect();
    }
    let text = match json.get("repeat") {
        Some(repeat) => text(repeat).repeat(number(&json["count"]) as usize),
        None => text(json).to_owned(),
    };
    text.encode_utf16().collect()
}
