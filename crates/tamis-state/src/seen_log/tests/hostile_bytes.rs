//! Any bytes give a log or an error, never a panic, and never a digest that was not appended.

use std::fs;

use crate::power_loss::Random;
use crate::seen_log::tests::{digests, folder, kill, open};

#[test]
fn any_byte_at_any_offset_gives_the_digests_or_an_error() {
    let (path, folder) = folder();
    let mut log = open(&path).unwrap();
    log.append([1, 2]).unwrap();
    log.sync().unwrap();
    let synced_bytes = fs::metadata(&path).unwrap().len() as usize;
    log.append([3]).unwrap();
    log.flush().unwrap();
    kill(log);
    let whole = fs::read(&path).unwrap();
    let image = folder.path().join("image");
    for at in 0..whole.len() {
        for byte in [0, 1, 0x0f, 0x7f, 0x80, 0xff, whole[at] ^ 1, whole[at] ^ 0x80] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            fs::write(&image, &bytes).unwrap();
            let opened = open(&image);
            let is_same = byte == whole[at];
            // The zeros in the header and the synced length have checksums too.
            match opened {
                Ok(mut log) if is_same => assert_eq!(digests(&mut log), [1, 2, 3]),
                Ok(mut log) => {
                    assert!(at >= synced_bytes, "byte {at} = {byte}");
                    assert_eq!(digests(&mut log), [1, 2], "byte {at} = {byte}");
                }
                Err(error) => {
                    assert!(!is_same && at < synced_bytes, "byte {at} = {byte}: {error}");
                    assert_eq!(fs::read(&image).unwrap(), bytes, "a refused file is untouched");
                }
            }
        }
    }
    for len in 0..whole.len() {
        fs::write(&image, &whole[..len]).unwrap();
        match open(&image) {
            Ok(mut log) => assert!(len >= synced_bytes && digests(&mut log) == [1, 2]),
            Err(error) => assert!(len < synced_bytes, "cut at {len}: {error}"),
        }
    }
}

#[test]
fn random_bytes_behind_a_valid_header_are_a_tail_or_an_error() {
    let (path, folder) = folder();
    open(&path).unwrap().close().unwrap();
    let whole = fs::read(&path).unwrap();
    let image = folder.path().join("image");
    let mut random = Random(7);
    for _ in 0..300 {
        let mut byte = || (0..8).fold(0_u8, |bits, _| bits << 1 | u8::from(random.is_kept()));
        let tag = [b"DATA", b"MARK", b"DONE", b"none"][usize::from(byte()) % 4];
        let (len, count) = ([byte(), byte(), byte(), byte() % 2], usize::from(byte()));
        let rest: Vec<u8> = (0..count).map(|_| byte()).collect();
        let bytes = [&whole[..], tag, &len, &rest].concat();
        fs::write(&image, &bytes).unwrap();
        assert_eq!(digests(&mut open(&image).unwrap()), [0; 0]);
        assert_eq!(fs::read(&image).unwrap(), whole, "the tail is cut");
    }
}
