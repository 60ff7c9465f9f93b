//! Reads the golden data: JSON files, and bytes that these files contain as text.
#![allow(dead_code, reason = "no test needs all of it")]

pub mod files;
mod json;

use serde_json::Value as Json;
use tamis_formats::DecodeOptions;

pub use json::*;

/// A whole file and its decode options.
pub struct Golden {
    pub format: &'static str,
    pub name: String,
    pub bytes: Vec<u8>,
    pub options: DecodeOptions,
}

impl Golden {
    /// Creates a file that is decoded without options.
    fn new(format: &'static str, name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { format, name: name.into(), bytes, options: DecodeOptions::default() }
    }
}

/// Returns the chunks of a recorded RedisBloom filter as the commands that load them.
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

/// A Redis snapshot with strings: the database, key and value of each.
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

/// Text as UTF-16 code units. The units may be invalid UTF-16, so JSON cannot store them as a
/// string.
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
