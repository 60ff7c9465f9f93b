//! Opens and writes the files of filters, in every format.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tamis::{AnyFilter, CompressedSet, Span};
use tamis_formats::{
    Contents, CreateError, DecodeErrorKind, EncodeError, FORMATS, Format, Items, Parameter,
    Readers, TamisFile, replace_file, roaring,
};

use crate::decode_args::DecodeArgs;
use crate::errors;
use crate::handle::Handle;
use crate::raw::map::{MappedFile, MappedWords};
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
#[pyo3(signature = (path, *, format, writable, verify, clock, options))]
pub fn open_file(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    format: Option<&str>,
    writable: bool,
    verify: bool,
    clock: bool,
    options: &Bound<'_, PyDict>,
) -> PyResult<Handle> {
    let args = DecodeArgs::new(options)?;
    let format = format.map(format_named).transpose()?;
    let path: PathBuf = path.extract()?;
    py.detach(|| {
        let file = regular_file(&path)?;
        let mut start = Vec::new();
        (&file).take(4096).read_to_end(&mut start).map_err(|error| unread(&path, &error))?;
        let own = &FORMATS[0];
        let is_own = format.map_or_else(
            || own.sniff(&start) == tamis_formats::Sniff::Yes,
            |format| format.name == own.name,
        );
        if is_own && !writable {
            return Ok(map(&path, &file, verify)?.with_clock(clock));
        }
        let bytes = std::fs::read(&path).map_err(|error| unread(&path, &error))?;
        let named = |error: PyErr| named(&error, &path);
        Ok(decode(&bytes, format, Some(&path), &args).map_err(named)?.with_clock(clock))
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
    py.detach(|| Ok(decode(data, format, None, &args)?.with_clock(clock)))
}

/// Creates an empty filter of another system.
#[pyfunction]
#[pyo3(signature = (format, options))]
pub fn create_foreign(format: &str, options: &Bound<'_, PyDict>) -> PyResult<Handle> {
    let args = DecodeArgs::new(options)?;
    let format = format_named(format)?;
    let contents = (format.create)(&args.options).map_err(|error| match error {
        CreateError::Missing(parameter) => PyValueError::new_err(format!(
            "a filter of the format {} needs the {parameter}: give {}",
            format.name,
            option(parameter)
        )),
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
    use pyo3::exceptions::{PyFileNotFoundError, PyPermissionError};
    let message = format!("{}: {error}", path.display());
    match error.kind() {
        std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
        std::io::ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
        _ => errors::new("FileError", message),
    }
}

/// Adds the path to the message of an exception.
fn named(error: &PyErr, path: &Path) -> PyErr {
    Python::attach(|py| {
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
            let ages = has_seconds(&view.filter);
            Ok(Handle::new(State::Mapped(Box::new(view)), ages))
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
    let ages = has_seconds(&file.filter);
    Handle::new(State::Owned(Box::new(file)), ages)
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
) -> PyResult<Handle> {
    let format = format.map_or_else(|| find(bytes, path), Ok)?;
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
        _ => errors::new("FormatError", format!("as {}: {error}", format.name)),
    })?;
    handle(contents, format, &args)
}

fn handle(contents: Contents, format: &'static Format, args: &DecodeArgs) -> PyResult<Handle> {
    let contents = match contents.downcast_ref::<TamisFile>() {
        Some(file) => return Ok(own_handle(file.clone())),
        None => contents,
    };
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
    let of_path = path.map(Format::of_path).unwrap_or_default();
    let found = Format::of(bytes);
    let names = |formats: &[&'static Format]| {
        formats.iter().map(|format| format!("{:?}", format.name)).collect::<Vec<_>>().join(" or ")
    };
    match found[..] {
        [format] => Ok(format),
        [] => match of_path[..] {
            [format] if format.is_detectable() => Ok(format),
            _ => Err(errors::new(
                "FormatError",
                "no format of filters is recognised: give format=..., from tamis.formats()",
            )),
        },
        _ => {
            let both: Vec<_> = of_path
                .into_iter()
                .filter(|of_path| found.iter().any(|it| it.name == of_path.name))
                .collect();
            match both[..] {
                [format] => Ok(format),
                _ => Err(errors::new(
                    "FormatError",
                    format!("several formats match the bytes: give format={}", names(&found)),
                )),
            }
        }
    }
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
    written.map_err(|error| errors::new("FileError", error))
}

/// Returns the contents of a file of integers.
pub fn integers(set: &CompressedSet) -> roaring::Roaring {
    roaring::Roaring::new(set.clone())
}
