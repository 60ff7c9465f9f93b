//! The error for a route that would check nothing.

use std::convert::Infallible;
use std::fmt;

use crate::request::path::{PathTemplate, TemplateError};
use crate::request::place::{IdPlace, PlaceError};

/// The error for a route that would check nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteError {
    /// The path template is not valid.
    Template(TemplateError),
    /// The text is not a valid place of an id.
    Place(PlaceError),
    /// The path template has no value for the place [`IdPlace::Path`].
    NoName {
        /// The path template.
        path: PathTemplate,
        /// The name that the path template lacks.
        name: String,
    },
    /// The set lacks a source ([`IdSet::lacks_source`](crate::IdSet::lacks_source)), and its policy passes unknown ids.
    NoSource {
        /// The place of the ids of the set.
        place: IdPlace,
    },
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template(error) => error.fmt(f),
            Self::Place(error) => error.fmt(f),
            Self::NoName { path, name } => {
                write!(f, "the path \"{path}\" has no {{{name}}}; ")?;
                let names: Vec<String> = path.names().map(|it| format!("path:{it}")).collect();
                match names.is_empty() {
                    true => write!(f, "write {{{name}}} in the path, such as /products/{{{name}}}"),
                    false => write!(f, "the path has: {}", names.join(", ")),
                }
            }
            Self::NoSource { place } => write!(
                f,
                "the set of {place} has no running source, so all unknown ids would pass; create the \
                 set with IdSet::from_ids, or start its source before the route and keep the source"
            ),
        }
    }
}

impl std::error::Error for RouteError {}

impl From<TemplateError> for RouteError {
    fn from(error: TemplateError) -> Self {
        Self::Template(error)
    }
}

impl From<PlaceError> for RouteError {
    fn from(error: PlaceError) -> Self {
        Self::Place(error)
    }
}

/// A [`PathTemplate`] or an [`IdPlace`] needs no conversion.
impl From<Infallible> for RouteError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
