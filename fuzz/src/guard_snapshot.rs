//! Tests that the decoder returns a snapshot of a guard or an error for any bytes. Also tests that a decoded snapshot
//! is encoded to a snapshot with the same contents.

use tamis_guard::{Generation, Snapshot};

use crate::with_checksum;

/// The memory limit of the decoder. The limit is larger than any input needs.
const MAX_BYTES: u64 = 1 << 20;

pub(crate) fn run(data: &[u8]) {
    read(data);
    if let Some(bytes) = with_checksum(data) {
        read(&bytes);
    }
}

fn read(bytes: &[u8]) {
    let Snapshot { head, generation, end } = match Generation::read_snapshot(bytes, MAX_BYTES) {
        Ok(read) => read,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "an error is one line");
            return;
        }
    };
    let mut back = Vec::new();
    generation.write_snapshot(&head, || end.clone(), &mut back).expect("a vector can be written");
    let again = Generation::read_snapshot(&back[..], MAX_BYTES).expect("a snapshot");
    assert_eq!((again.head, again.end), (head, end));
    let copy = again.generation;
    assert_eq!(copy.items(), generation.items());
    // Lookups must return answers and changes must take effect for any bits.
    let _ = (generation.rate(), generation.estimate_rate(), generation.highest());
    for i in 0..40_u64 {
        let id = i.to_string();
        assert_eq!(generation.contains(id.as_bytes()), copy.contains(id.as_bytes()));
        if generation.insert_key(id.as_bytes(), Some(i as i64)).is_ok() {
            assert!(generation.contains(id.as_bytes()), "a false negative");
        }
        let deleted = generation.deleted();
        generation.delete_key(id.as_bytes());
        // A deletion has no effect if another text may represent the same id.
        let is_absent = !generation.contains(id.as_bytes());
        assert!(is_absent || generation.deleted() == deleted + 1, "a deleted id");
    }
}
