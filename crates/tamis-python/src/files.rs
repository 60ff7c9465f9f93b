//! Opens and writes the files of filters, in every format.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tamis::{AnyFilter, PlanError, Span};
use tamis_formats::{
    Contents, CreateError, DecodeError, DecodeErrorKind, DetectError, EncodeError, FORMATS, Format,
    Items, Parameter, Readers, TamisFile, replace_file, roaring,
};

use crate::decode_args::DecodeArgs;
use crate::errors;
use crate::handle::Handle;
use crate::raw::map::{MappedFile, MappedWords};
use crate::set_error::SetError;
use crate::state::{Foreign, State};

/// Finds a format by its name.
///
/// # Errors
///
/// `ValueError` with all names, for an unknown name.
pub fn format_named(name: &str) -> PyResult<&'static Format> {
    Format::named(name).ok_or_else(|| {
        let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
        PyValueError::new_err(format!("{name:?} is not a format: {}", names.join(", ")))
    })
}

/// Returns all formats, each as name, extensions and summary.
#[pyfunction]
pub fn formats(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows = FORMATS.iter().map(|format| {
        let extensions: Vec<_> = format.extensions.to_vec();
        (format.name, extensions, format.summary)
    });
    PyList::new(py, rows.collect::<Vec<_>>())
}

/// Opens a file of any format.
#[pyfunction]
#[pyo3(signature = (path, *, format, in_memory, verify, clock, options, other_options))]
#[expect(clippy::too_many_arguments, reason = "Python code names the arguments")]
pub fn open_file(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    format: Option<&str>,
    in_memory: bool,
    verify: bool,
    clock: bool,
    options: &Bound<'_, PyDict>,
    other_options: bool,
) -> PyResult<Handle> {
    let args = DecodeArgs::new(options)?;
    let format = format.map(format_named).transpose()?;
    let path: PathBuf = path.extract()?;
    let check = if other_options { Check::None } else { Check::All };
    py.detach(|| {
        let file = regular_file(&path)?;
        let mut start = Vec::new();
        (&file).take(4096).read_to_end(&mut start).map_err(|error| unread(&path, &error))?;
        let is_own = format.map_or_else(
            || matches!(Format::of(&start)[..], [found] if found.is_own()),
            Format::is_own,
        );
        if is_own && !in_memory {
            check.run(&args, &FORMATS[0])?;
            return Ok(map(&path, &file, verify)?.with_clock(clock));
        }
        let bytes = std::fs::read(&path).map_err(|error| unread(&path, &error))?;
        let named = |error: PyErr| named(error, &path);
        Ok(decode(&bytes, format, Some(&path), &args, check).map_err(named)?.with_clock(clock))
    })
}

/// Decodes the bytes of a file of any format.
#[pyfunction]
#[pyo3(signature = (data, *, format, clock, options))]
pub fn open_bytes(
    py: Python<'_>,
    data: &[u8],
    format: Option<&str>,
    clock: bool,
    options: &Bound<'_, PyDict>,
) -> PyResult<Handle> {
    let args = DecodeArgs::new(options)?;
    let format = format.map(format_named).transpose()?;
    py.detach(|| Ok(decode(data, format, None, &args, Check::All)?.with_clock(clock)))
}

/// Creates an empty filter of another system.
#[pyfunction]
#[pyo3(signature = (format, options))]
pub fn create_foreign(format: &str, options: &Bound<'_, PyDict>) -> PyResult<Handle> {
    let args = DecodeArgs::new(options)?;
    let format = format_named(format)?;
    if format.is_own() {
        return Err(PyValueError::new_err(
            "tamis.create makes filters of other systems: for a filter of Tamis, call its class, \
             for example tamis.Bloom(items, rate)",
        ));
    }
    args.check_used_by_new(format)?;
    let contents = (format.create)(&args.options).map_err(|error| match error {
        CreateError::Missing(parameter) => PyValueError::new_err(format!(
            "a filter of the format {} needs the {parameter}: give {}",
            format.name,
            option(parameter)
        )),
        CreateError::Memory(_) => SetError::Memory.into(),
        error => errors::new("PlanError", error),
    })?;
    handle(contents, format, &args)
}

fn regular_file(path: &Path) -> PyResult<File> {
    let metadata = std::fs::metadata(path).map_err(|error| unread(path, &error))?;
    // Opening a named pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(errors::new("FileError", format!("{}: not a regular file", path.display())));
    }
    File::open(path).map_err(|error| unread(path, &error))
}

fn unread(path: &Path, error: &std::io::Error) -> PyErr {
    match error.kind() {
        std::io::ErrorKind::OutOfMemory => PyErr::from(SetError::Memory),
        _ => errors::file(path, error, &error.to_string()),
    }
}

/// Adds the path to the message of an exception.
fn named(error: PyErr, path: &Path) -> PyErr {
    Python::attach(|py| {
        if error.is_instance_of::<PyMemoryError>(py) {
            return error;
        }
        let message = format!("{}: {}", path.display(), error.value(py));
        PyErr::from_type(error.get_type(py), message)
    })
}

/// Uses the words of a Tamis file in place.
fn map(path: &Path, file: &File, verify: bool) -> PyResult<Handle> {
    let failed = |error: tamis_formats::DecodeError| {
        errors::new("FormatError", format!("{}: {error}", path.display()))
    };
    let mapped = MappedFile::new(file).map_err(|error| unread(path, &error))?;
    if verify {
        TamisFile::verify(mapped.bytes()).map_err(failed)?;
    }
    let words = |range| MappedWords::new(mapped.clone(), range);
    match TamisFile::view_in(mapped.bytes(), words) {
        Ok(view) => {
            let uses_clock = has_seconds(&view.filter);
            Ok(Handle::new(State::Mapped(Box::new(view)), uses_clock))
        }
        Err(error) if error.kind == DecodeErrorKind::NotInPlace => {
            let file = TamisFile::decode(mapped.bytes()).map_err(failed)?;
            Ok(own_handle(file))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Tests whether a filter is a window of time.
fn has_seconds<B: tamis::Bits<Word = u64>>(filter: &AnyFilter<B>) -> bool {
    matches!(filter, AnyFilter::Window(window) if matches!(window.span(), Span::Millis(_)))
}

fn own_handle(file: TamisFile) -> Handle {
    let uses_clock = has_seconds(&file.filter);
    Handle::new(State::Owned(Box::new(file)), uses_clock)
}

/// Whether an option that has no effect on a file is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Each option must have an effect.
    All,
    /// Options may have no effect: they are for another file, too.
    None,
}

impl Check {
    fn run(self, args: &DecodeArgs, format: &Format) -> PyResult<()> {
        if self == Check::All { args.check_used_by_file(format) } else { Ok(()) }
    }
}

/// Decodes the bytes of a file of any format.
///
/// # Errors
///
/// `FormatError` for damaged bytes, `ValueError` if an option is missing.
pub fn decode(
    bytes: &[u8],
    format: Option<&'static Format>,
    path: Option<&Path>,
    args: &DecodeArgs,
    check: Check,
) -> PyResult<Handle> {
    let format = format.map_or_else(|| find(bytes, path), Ok)?;
    check.run(args, format)?;
    if format.is_own() {
        return TamisFile::decode(bytes).map(own_handle).map_err(|error| undecoded(&error, format));
    }
    let args = path.map_or_else(|| args.clone(), |path| args.clone().with_version_of(format, path));
    let options = &args.options;
    let contents = (format.decode)(bytes, options).map_err(|error| match error.kind {
        DecodeErrorKind::Missing(parameter) => {
            let mut names: Vec<_> = std::iter::once(parameter)
                .chain(format.parameters.required.iter().copied())
                .filter(|parameter| !options.has(*parameter))
                .map(option)
                .collect();
            names.dedup();
            PyValueError::new_err(format!(
                "a file of the format {} does not store the {parameter}: give {}",
                format.name,
                names.join(" and ")
            ))
        }
        _ => undecoded(&error, format),
    })?;
    handle(contents, format, &args)
}

/// Returns the exception for bytes that cannot be decoded.
pub fn undecoded(error: &DecodeError, format: &Format) -> PyErr {
    match error.kind {
        DecodeErrorKind::Memory(_) | DecodeErrorKind::Plan(PlanError::Memory(_)) => {
            PyErr::from(SetError::Memory)
        }
        _ => errors::new("FormatError", format!("as {}: {error}", format.name)),
    }
}

fn handle(contents: Contents, format: &'static Format, args: &DecodeArgs) -> PyResult<Handle> {
    if let Some(bitmap) = contents.downcast_ref::<roaring::Roaring>() {
        return Ok(Handle::new(State::Integers(bitmap.set.clone()), false));
    }
    let default = match format.items {
        Items::Default(funnel) => Some(funnel),
        Items::Unspecified => None,
    };
    let funnel = args.funnel.or(default);
    if let Some(funnel) = funnel
        && !format.item_domain.accepts(funnel)
    {
        return Err(PyValueError::new_err(format!(
            "the format {} cannot hold items of this funnel",
            format.name
        )));
    }
    Ok(Handle::new(
        State::Foreign(Box::new(Foreign { contents, format, funnel, args: args.clone() })),
        false,
    ))
}

/// Detects the format of a file by its bytes, then by its name.
fn find(bytes: &[u8], path: Option<&Path>) -> PyResult<&'static Format> {
    if let Some(what) = other_file(bytes)
        && Format::of(bytes).is_empty()
    {
        return Err(errors::new("FormatError", what));
    }
    Format::detect(bytes, path).map_err(|error| {
        let way = match error {
            DetectError::Several(_) => "give one of these as format=...",
            _ => "if the file is a filter, give format=..., a name of tamis.formats()",
        };
        errors::new("FormatError", format!("{error}; {way}"))
    })
}

/// Describes a file that is no filter, by its first bytes.
fn other_file(bytes: &[u8]) -> Option<&'static str> {
    let files: [(&[u8], &str); 9] = [
        (b"TAMISEEN", "the file is a set of hashes: open it with tamis.DigestFile(path)"),
        (b"\x1f\x8b", "the file is compressed: decompress it with gunzip first"),
        (b"\x28\xb5\x2f\xfd", "the file is compressed: decompress it with zstd -d first"),
        (b"BZh", "the file is compressed: decompress it with bunzip2 first"),
        (b"\xfd7zXZ\0", "the file is compressed: decompress it with xz -d first"),
        (b"PAR1", "the file is a Parquet table: the program reads its filters, as tamis check"),
        (b"\x80\x04\x95", "the file is a pickle: read it with pickle.load"),
        (b"\x80\x05\x95", "the file is a pickle: read it with pickle.load"),
        (b"\x93NUMPY", "the file is an array of numpy: insert numpy.load(path) into a filter"),
    ];
    if bytes.is_empty() {
        return Some("the file is empty");
    }
    files.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, what)| *what)
}

/// Returns the option that sets a parameter.
fn option(parameter: Parameter) -> &'static str {
    match parameter {
        Parameter::Items => "items_planned=...",
        Parameter::Rate => "rate_planned=...",
        Parameter::Version => "format_version=...",
        Parameter::BlockHash => "block_hash=...",
        Parameter::Key => "key=...",
        _ => "md5=True",
    }
}

/// Encodes the contents of a file.
///
/// # Errors
///
/// `FormatError` if the format cannot store the contents, `ValueError` if an option is missing.
pub fn encode(
    contents: &Contents,
    format: &Format,
    args: &DecodeArgs,
    out: &mut Vec<u8>,
) -> PyResult<()> {
    (format.encode)(contents, &args.options, out).map_err(|error| match error {
        EncodeError::Missing(parameter) => PyValueError::new_err(format!(
            "a file of the format {} needs the {parameter}: give {}",
            format.name,
            option(parameter)
        )),
        error => errors::new("FormatError", error),
    })
}

/// Writes a file, and replaces a previous file atomically.
///
/// # Errors
///
/// `FileError` with the path. A previous file is unchanged.
pub fn replace(path: &Path, bytes: &[u8]) -> PyResult<()> {
    let write = |mut file: &File| file.write_all(bytes);
    let written = replace_file(path, Readers::ByUmask, write);
    written.map_err(|error| errors::unsaved(&error))
}
