//! Tests that the decoder returns a leader's list of changes or an error for any bytes. Also tests that a decoded list
//! is encoded to the same bytes.

use tamis_guard::{Delta, FeedPosition};

use crate::with_checksum;

pub(crate) fn run(data: &[u8]) {
    read(data);
    if let Some(bytes) = with_checksum(data) {
        read(&bytes);
    }
    // The request of a follower contains a position as text.
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(position) = text.parse::<FeedPosition>()
    {
        assert_eq!(position.to_string(), text, "a position has one text");
    }
}

fn read(bytes: &[u8]) {
    let delta = match Delta::decode(bytes) {
        Ok(delta) => delta,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "an error is one line");
            return;
        }
    };
    assert_eq!(delta.encode(), bytes, "one encoding");
    let count = delta.changes().inspect(|it| assert!(it.id.len() <= 64 << 10)).count() as u64;
    assert_eq!(delta.position().number - delta.since.number, count);
}
