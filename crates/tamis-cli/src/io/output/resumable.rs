//! Outputs that a later run can resume after a kill.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use crate::exit::Failure;
use crate::io::attributes;
use crate::io::output::place::{folder, is_stdout, resolved, stdout_file};
use crate::io::output::position::OutputPosition;
use crate::io::output::{Output, Sink, check_writable, not_created, note_other_names};
use crate::io::standard;

impl Output {
    /// Opens `path` like [`open`](Self::open), but keeps the file if the program is killed. If
    /// `mark` is the [`mark`](Self::mark) of an earlier run and its file still exists, the file is
    /// truncated to the mark and resumed. Without a mark, the output starts empty.
    ///
    /// The returned boolean is true if the file is resumed.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open), and a message if another run writes to the file.
    pub fn open_resumable(
        path: Option<&Path>,
        mark: Option<&OutputPosition>,
    ) -> Result<(Self, bool), Failure> {
        let (name, file, partial) = match path.filter(|path| !is_stdout(path)) {
            None => {
                standard::check_output()?;
                ("standard output".to_string(), stdout_file(), None)
            }
            Some(path) => {
                let target = resolved(path);
                check_writable(&target)
                    .map_err(|error| Failure::io(path.display().to_string(), &error))?;
                let is_new = matches!(target.metadata(),
                    Err(error) if error.kind() == io::ErrorKind::NotFound);
                if !is_new && !target.is_file() {
                    return Ok((Self::open(Some(path))?, false));
                }
                let mut file_name = std::ffi::OsString::from(".");
                file_name.push(target.file_name().unwrap_or_default());
                file_name.push(".tamis-part");
                let partial = target.with_file_name(file_name);
                let file = OpenOptions::new().read(true).write(true).open(&partial).ok();
                // The lock lasts until the run ends, so that no other run removes the file or
                // writes to it.
                if let Some(file) = &file {
                    lock_part(file, &path.display().to_string())?;
                }
                (path.display().to_string(), file, Some((partial, target)))
            }
        };
        let failure = |error: io::Error| Failure::io(&name, &error);
        let mut resumed = false;
        if let (Some(file), Some(mark)) = (&file, mark) {
            let found = OutputPosition::of(file).map_err(failure)?;
            resumed = found.is_some_and(|found| found.continues(mark));
            if resumed {
                file.set_len(mark.len_bytes).map_err(failure)?;
            }
        }
        let sink = match (file, partial) {
            (Some(file), None) if OutputPosition::of(&file).map_err(failure)?.is_some() => {
                Sink::Appended(file)
            }
            (_, None) => return Ok((Self::open(None)?, false)),
            (Some(file), Some((partial, path))) if resumed => Sink::Partial { file, partial, path },
            (_, Some((partial, path))) => {
                // A new file has another inode, so the marks of an abandoned run do not match it.
                match std::fs::remove_file(&partial) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(failure(error));
                    }
                    _ => {}
                }
                let file = File::create_new(&partial)
                    .map_err(|error| not_created(&name, folder(&path), &error))?;
                lock_part(&file, &name)?;
                if let Ok(existing) = path.metadata() {
                    note_other_names(&name, &existing);
                    attributes::keep(&path, &existing, &file).map_err(failure)?;
                }
                Sink::Partial { file, partial, path }
            }
        };
        let mut output = Self::new(name, sink);
        if resumed && let Sink::Partial { file, .. } | Sink::Appended(file) = &mut output.sink {
            use std::io::{Seek as _, SeekFrom};
            file.seek(SeekFrom::End(0)).map_err(|error| Failure::io(&output.name, &error))?;
        }
        Ok((output, resumed))
    }
}

/// Locks the unfinished output of a run with a state.
fn lock_part(file: &File, name: &str) -> Result<(), Failure> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Failure::new(format!(
            "{name}: another run with a --state is writing to it; wait for its end, or name \
             another output"
        ))),
        // Some network file systems do not support locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}
