//! The open group: the records of a transaction, and the disk space for the images (serialized
//! values) of the transaction.
//!
//! All serialized values of a transaction are in one frame of the log. The log appends the frame
//! when the group ends, so the group keeps the disk space of every serialized value until the end
//! of the group.

use crate::system::held_memory::Hold;

/// The records of a transaction that has not ended.
#[derive(Debug)]
pub(crate) struct Group {
    pub records: Vec<u8>,
    /// The disk space for the serialized values of the transaction.
    pub space: Hold,
    /// The number of bytes of `space` that were admitted before the first command ran and that no
    /// serialized value uses yet.
    pub unused_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::log::state::{FsyncPolicy, LogState, Refusal};

    /// Reserves space for a serialized value in the same way as the log (`LogCore`) does.
    fn admit_image(state: &mut LogState, bytes: u64) -> Result<Option<Hold>, Refusal> {
        let missing = state.admit(state.missing_image_bytes(bytes))?;
        Ok(state.image_admitted(bytes, missing))
    }

    #[test]
    fn a_group_keeps_the_space_of_its_images_until_it_is_appended() {
        let mut state = LogState::new(0, FsyncPolicy::EverySecond);
        state.reserved(100, 0);
        state.begin_group(None);
        assert!(admit_image(&mut state, 60).unwrap().is_none(), "the group has the space");
        state.append(|out| out.extend([0; 60]));
        assert_eq!(admit_image(&mut state, 41).unwrap_err(), Refusal::Space(101));
        assert!(admit_image(&mut state, 40).unwrap().is_none());
        assert_eq!(state.admit(1).unwrap_err(), Refusal::Space(101));
        state.end_group();
        assert_eq!((state.end, state.admit(20).is_ok()), (80, true));
        let alone = admit_image(&mut state, 20).unwrap();
        assert_eq!(alone.map(|space| space.bytes()), Some(20), "no group is open");
    }

    #[test]
    fn an_image_uses_the_space_that_was_admitted_before_the_group() {
        let mut state = LogState::new(0, FsyncPolicy::EverySecond);
        state.reserved(100, 0);
        let images = state.admit(90).unwrap();
        state.begin_group(Some(images));
        for bytes in [60, 30] {
            assert_eq!(state.missing_image_bytes(bytes), 0);
            assert!(admit_image(&mut state, bytes).unwrap().is_none());
        }
        assert_eq!(admit_image(&mut state, 11).unwrap_err(), Refusal::Space(101));
        assert!(admit_image(&mut state, 10).unwrap().is_none());
        state.end_group();
        assert!(state.end == 0 && state.admit(100).is_ok(), "an empty group");
    }
}
