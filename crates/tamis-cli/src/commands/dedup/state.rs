//! The state that a run stores for the next run: the file of the crate `tamis-state`, with the
//! checkpoints and the messages of `tamis dedup`.

mod checkpoint;

use std::path::Path;

use tamis_state::{Requirements, StateError};

pub use crate::commands::dedup::state::checkpoint::{Checkpoint, InputId};
use crate::exit::Failure;
use crate::io::output::create_private;

/// An open and locked state file.
pub type StateFile = tamis_state::StateFile<Checkpoint>;

/// Opens the state file at `path`, or creates the file.
///
/// # Errors
///
/// Returns an error if another process uses the file, or if the file is damaged or not a state
/// file. Returns an error if a run with other options created the file.
pub fn open_state(path: &Path, wanted: &Requirements<'_>) -> Result<StateFile, Failure> {
    // The library would create the file too, but a signal would leave its temporary file.
    if !path.try_exists().map_err(|error| Failure::io(path.display(), &error))? {
        create_private(path, &wanted.new_file(path).map_err(failure)?)?;
    }
    StateFile::open(path, wanted).map_err(failure)
}

/// Returns the failure for an error of a state. The message names the options of `tamis dedup`.
pub fn failure(error: StateError) -> Failure {
    let name = error.path().display().to_string();
    match error {
        StateError::Io { error, .. } => match Failure::io(&name, &error) {
            // A state is a regular file, so the error is not the end of a pipe's reader.
            Failure::BrokenPipe => Failure::new(format!("{name}: {error}")),
            failure => failure,
        },
        StateError::NotAState { .. } => {
            Failure::new(format!("{name}: is not a state file of 'tamis dedup'"))
        }
        StateError::Description { found, expected, .. } => Failure::new(format!(
            "{name}: remembers '{found}', but this run asks for '{expected}'; use the same \
             options or another state"
        )),
        StateError::Hasher { found, expected, .. } => Failure::new(format!(
            "{name}: hashes by {found}, not by {expected}; leave out --seed or use another \
             state"
        )),
        StateError::Width { found_bits, expected_bits, .. } => Failure::new(format!(
            "{name}: holds {found_bits}-bit hashes, not {expected_bits}-bit ones; leave out \
             --hash-bits or use another state"
        )),
        other => Failure::new(other),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use tamis::Hasher;

    use super::*;

    #[test]
    fn the_messages_name_the_options_of_the_program() {
        let (path, mix) = (|| PathBuf::from("seen"), Hasher::mix);
        let advice = "restore it from a copy, or remove it to start over";
        for (error, line) in [
            (
                StateError::Io { path: path(), error: io::Error::from_raw_os_error(28) },
                "seen: no space left on device".to_owned(),
            ),
            (
                StateError::Io { path: path(), error: io::ErrorKind::BrokenPipe.into() },
                "seen: broken pipe".to_owned(),
            ),
            (
                StateError::NotRegular { path: path() },
                "seen: a state must be a regular file".to_owned(),
            ),
            (
                StateError::Locked { path: path() },
                "seen: the state file is already open in this or another process; close it there \
                 first"
                    .to_owned(),
            ),
            (
                StateError::NotAState { path: path() },
                "seen: is not a state file of 'tamis dedup'".to_owned(),
            ),
            (
                StateError::Version { path: path(), found: 2, expected: 1 },
                "seen: is a state of version 2, and this program reads version 1; use another \
                 tamis, or another state"
                    .to_owned(),
            ),
            (
                StateError::Damaged { path: path(), at: 7 },
                format!("seen: the state is damaged at byte 7; {advice}"),
            ),
            (
                StateError::Truncated { path: path(), len_bytes: 9 },
                format!("seen: the state is damaged: it was truncated to 9 bytes; {advice}"),
            ),
            (
                StateError::Description {
                    path: path(),
                    found: "field 1".into(),
                    expected: "field 2".into(),
                },
                "seen: remembers 'field 1', but this run asks for 'field 2'; use the same options \
                 or another state"
                    .to_owned(),
            ),
            (
                StateError::Hasher { path: path(), found: mix(1), expected: mix(2) },
                format!(
                    "seen: hashes by {}, not by {}; leave out --seed or use another state",
                    mix(1),
                    mix(2)
                ),
            ),
            (
                StateError::Width { path: path(), found_bits: 64, expected_bits: 128 },
                "seen: holds 64-bit hashes, not 128-bit ones; leave out --hash-bits or use \
                 another state"
                    .to_owned(),
            ),
        ] {
            let Failure::Message(found) = failure(error) else { panic!("no line: {line}") };
            assert_eq!(found, line);
        }
    }
}
