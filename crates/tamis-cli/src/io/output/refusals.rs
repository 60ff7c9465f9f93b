//! Rejects unusable outputs before the work starts.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use tamis_formats::Format;

use crate::exit::Failure;
use crate::filters::redis_url::{self, is_url};
use crate::io::input::{self, is_named_packed};
use crate::io::output::place::{is_same_file, is_stdout, name, regular_file, stdin_file};
use crate::io::output::position::OutputPosition;
use crate::io::standard;

/// Rejects an input file if standard output appends to the same file. Without the check, the
/// command would read its own output in an endless loop.
///
/// `output` is the output that the user gave. `None` means standard output.
///
/// # Errors
///
/// A message if standard output appends to one of `paths`.
pub fn refuse_endless(paths: &[PathBuf], output: Option<&Path>) -> Result<(), Failure> {
    if output.is_some_and(|output| !is_stdout(output)) {
        return Ok(());
    }
    let Some(written) = OutputPosition::of_output(None) else { return Ok(()) };
    let is_written = |path: &Path| {
        let read = if input::is_stdin(path) { stdin_file() } else { regular_file(path) };
        let read = read.and_then(|file| OutputPosition::of(&file).ok().flatten());
        read.is_some_and(|read| read.is_same_file(&written))
    };
    match paths.iter().find(|path| is_written(path)) {
        Some(path) => Err(Failure::new(format!(
            "{}: is standard output too: write to another file",
            input::name(path)
        ))),
        None => Ok(()),
    }
}

/// Rejects an output that cannot store a filter: closed standard output, a terminal, or a file name
/// of compressed data. Filters are written uncompressed.
///
/// # Errors
///
/// A message if `output` cannot store a filter.
pub fn check_filter_output(output: &Path) -> Result<(), Failure> {
    if is_url(output) {
        return redis_url::parse(output).map(drop);
    }
    if is_stdout(output) {
        standard::check_output()?;
    }
    refuse_terminal(Some(output), "a filter is")?;
    if is_named_packed(output) {
        return Err(Failure::new(format!(
            "{}: filters are written uncompressed, and this is the name of a compressed file: \
             choose another name, and compress the file afterwards",
            output.display()
        )));
    }
    Ok(())
}

/// Rejects a file name that belongs to a format other than `format`.
///
/// # Errors
///
/// A message if the name of `output` belongs to another format.
pub fn refuse_name_of_other_format(output: &Path, format: &Format) -> Result<(), Failure> {
    let of_path = Format::of_path(output);
    match of_path.first() {
        Some(other) if of_path.iter().all(|it| it.name != format.name) => {
            Err(Failure::new(format!(
                "{}: the filter is written in the format {}, and this is a file name of {}: choose \
                 another name, and convert the file with 'tamis convert'",
                output.display(),
                format.name,
                other.name
            )))
        }
        _ => Ok(()),
    }
}

/// Rejects a terminal as the output of binary data. `what` names the data. If `output` is `None`,
/// the output is standard output.
///
/// # Errors
///
/// A message if the output is a terminal.
pub fn refuse_terminal(output: Option<&Path>, what: &str) -> Result<(), Failure> {
    let (name, is_terminal) = match output.filter(|path| !is_stdout(path)) {
        None => ("standard output".to_owned(), io::stdout().is_terminal()),
        Some(path) => (name(path), is_terminal(path)),
    };
    if !is_terminal {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{name}: is a terminal, and {what} binary: write to a file with -o, or to a pipe"
    )))
}

/// Tests whether `path` is a terminal, such as `/dev/tty`.
#[cfg(unix)]
fn is_terminal(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    // Opening a pipe would block until a reader opens the pipe.
    let is_device = path.metadata().is_ok_and(|metadata| metadata.file_type().is_char_device());
    is_device
        && OpenOptions::new().write(true).open(path).is_ok_and(|terminal| terminal.is_terminal())
}

#[cfg(not(unix))]
fn is_terminal(_: &Path) -> bool {
    false
}

/// Rejects an output that is also an input of the filter.
///
/// # Errors
///
/// A message if `output` is one of `paths`.
pub fn refuse_input_as_output(paths: &[PathBuf], output: &Path) -> Result<(), Failure> {
    match paths.iter().find(|path| is_same_file(path, output)) {
        Some(path) => Err(Failure::new(format!(
            "{}: is an input too, and the filter would take its place; name another output",
            path.display()
        ))),
        None => Ok(()),
    }
}
