//! Decode options: parameters that the file of a filter does not store.

use std::path::Path;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tamis_formats::{Charset, DecodeOptions, Format, Funnel, Parameter};

/// Decode options, with the names of the command line.
#[derive(Clone, Debug, Default)]
pub struct DecodeArgs {
    /// The options of the decoder.
    pub options: DecodeOptions,
    /// The conversion of items.
    pub funnel: Option<Funnel>,
    /// The names of the funnel and of the charset.
    names: [Option<String>; 2],
}

impl DecodeArgs {
    /// Reads the options of a call.
    ///
    /// # Errors
    ///
    /// `TypeError` for an unknown option, `ValueError` for a wrong value.
    pub fn new(given: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut args = Self::default();
        let (mut funnel, mut charset) = (None::<String>, None::<String>);
        for (name, value) in given {
            if value.is_none() {
                continue;
            }
            let options = &mut args.options;
            match name.extract::<String>()?.as_str() {
                "items_planned" => options.items = Some(value.extract()?),
                "rate_planned" => options.rate = Some(rate(value.extract()?)?),
                "format_version" => {
                    options.version = Some(value.str()?.to_str()?.into());
                }
                "block_hash" => {
                    let hash: String = value.extract()?;
                    let hash =
                        hash.parse().map_err(|error: tamis_formats::bitcoin::HashError| {
                            PyValueError::new_err(error.to_string())
                        })?;
                    options.block_hash = Some(hash);
                }
                "key" => {
                    options.key = Some(match value.extract::<String>() {
                        Ok(text) => text.into_bytes(),
                        Err(_) => value.extract()?,
                    });
                }
                "union" => options.union = value.extract()?,
                "md5" => options.md5 = value.extract()?,
                "funnel" => funnel = Some(value.extract()?),
                "charset" => charset = Some(value.extract()?),
                other => {
                    return Err(PyTypeError::new_err(format!(
                        "{other:?} is not a decode option: items_planned, rate_planned, \
                         format_version, block_hash, key, union, md5, funnel, charset"
                    )));
                }
            }
        }
        args.funnel =
            funnel.as_ref().map(|name| funnel_named(name, charset.as_deref())).transpose()?;
        args.names = [funnel, charset];
        Ok(args)
    }

    /// Checks that the options have an effect on a file of `format` that is read. The plan is not
    /// checked: many formats store the plan.
    ///
    /// # Errors
    ///
    /// `ValueError` with the name of an option without an effect.
    pub fn check_used_by_file(&self, format: &Format) -> PyResult<()> {
        self.check_used(format, |parameter| format.reads(parameter))
    }

    /// Checks that the options have an effect on a new filter of `format`. The plan is not checked.
    ///
    /// # Errors
    ///
    /// `ValueError` with the name of an option without an effect.
    pub fn check_used_by_new(&self, format: &Format) -> PyResult<()> {
        self.check_used(format, |parameter| match parameter {
            Parameter::Version => format.versions.is_some(),
            parameter => format.plans_by(parameter) || format.writes(parameter),
        })
    }

    fn check_used(&self, format: &Format, has: impl Fn(Parameter) -> bool) -> PyResult<()> {
        let [funnel, charset] = &self.names;
        let (options, is_foreign) = (&self.options, !format.is_own());
        for (name, is_given, is_used) in [
            ("format_version", options.version.is_some(), has(Parameter::Version)),
            ("block_hash", options.block_hash.is_some(), has(Parameter::BlockHash)),
            ("key", options.key.is_some(), has(Parameter::Key)),
            ("union", options.union, is_foreign),
            ("md5", options.md5, has(Parameter::Md5)),
            ("funnel", funnel.is_some(), is_foreign),
            ("charset", charset.is_some(), is_foreign),
        ] {
            if is_given && !is_used {
                return Err(PyValueError::new_err(format!(
                    "{name} has no effect on a filter of the format {}: leave it out",
                    format.name
                )));
            }
        }
        Ok(())
    }

    /// Adds the version that the extension of a path shows, if the caller gave no version.
    pub fn with_version_of(mut self, format: &Format, path: &Path) -> Self {
        let version = self.options.version.take();
        self.options.version = version.or_else(|| format.version_of_path(path).map(Into::into));
        self
    }

    /// Returns these options. A parameter that these options do not have is taken from `other`.
    pub fn or(&self, other: &Self) -> Self {
        let (mut merged, from) = (self.clone(), other.options.clone());
        let options = &mut merged.options;
        options.items = options.items.or(from.items);
        options.rate = options.rate.or(from.rate);
        options.version = options.version.take().or(from.version);
        options.block_hash = options.block_hash.or(from.block_hash);
        options.key = options.key.take().or(from.key);
        options.union |= from.union;
        options.md5 |= from.md5;
        merged
    }

    /// Returns the options, from which [`new`](Self::new) creates equal ones.
    ///
    /// # Errors
    ///
    /// The exception of Python, if there is no memory.
    pub fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Self { options, names: [funnel, charset], .. } = self;
        let dict = PyDict::new(py);
        dict.set_item("items_planned", options.items)?;
        dict.set_item("rate_planned", options.rate)?;
        dict.set_item("format_version", options.version.as_deref())?;
        dict.set_item("block_hash", options.block_hash.map(|hash| hash.to_string()))?;
        dict.set_item("key", options.key.as_ref().map(|key| PyBytes::new(py, key)))?;
        dict.set_item("union", options.union)?;
        dict.set_item("md5", options.md5)?;
        dict.set_item("funnel", funnel)?;
        dict.set_item("charset", charset)?;
        Ok(dict)
    }
}

fn rate(rate: f64) -> PyResult<f64> {
    if rate > 0.0 && rate < 1.0 {
        return Ok(rate);
    }
    Err(PyValueError::new_err(format!("rate_planned must be between 0 and 1, and not {rate}")))
}

fn funnel_named(name: &str, charset: Option<&str>) -> PyResult<Funnel> {
    let charset = charset.map(|name| {
        Charset::named(name).ok_or_else(|| {
            let names = Charset::ALL.map(Charset::name).join(", ");
            PyValueError::new_err(format!("{name:?} is not a charset: {names}"))
        })
    });
    let charset = charset.transpose()?;
    Funnel::named(name, charset).ok_or_else(|| {
        if Funnel::NAMES.iter().any(|(known, _)| *known == name) {
            return PyValueError::new_err(format!(
                "the funnel {name:?} needs a charset, for example charset='utf-8'"
            ));
        }
        let names: Vec<_> = Funnel::NAMES.iter().map(|(name, _)| *name).collect();
        PyValueError::new_err(format!("{name:?} is not a funnel: {}", names.join(", ")))
    })
}
