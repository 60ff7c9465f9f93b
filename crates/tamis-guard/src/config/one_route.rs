//! Creates a configuration with one set of ids and one route from command-line flags.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tamis_sources::PlainIo;

use crate::config::checked::Config;
use crate::config::error::ConfigError;
use crate::config::file;
use crate::config::source::{Filter, Lines, SourceTable};
use crate::config::sources::SourceTables;
use crate::config::units::OneOrMany;
use crate::request::path::PathTemplate;

/// The settings of a guard with one route.
#[derive(Clone, Debug, Default)]
pub struct OneRoute {
    /// The addresses on which the guard listens, such as `0.0.0.0:8080`. An empty list means `127.0.0.1:8080`.
    pub listen: Vec<String>,
    /// The URL of the upstream service, such as `http://127.0.0.1:9000`.
    pub upstream: String,
    /// The path template, such as `/pms/productInfo/{id}`.
    pub path: String,
    /// The places of the ids in a request, such as `query:id`. If the list is empty, the names in the path template are
    /// the places.
    pub places: Vec<String>,
    /// A file with one id per line, or a filter that `tamis build` has written.
    pub ids: PathBuf,
    /// The name of the type of the ids: `integer`, `uuid` or `text`.
    pub id_type: Option<String>,
    /// The false positive rate, a probability.
    pub rate: Option<f64>,
    /// True if the guard decides with a filter before responses of the upstream service have proven that the guard
    /// decodes the filter correctly.
    pub is_trusted: bool,
    /// The message in the response to a refused request.
    pub message: Option<String>,
    /// True if the guard refuses no request, but counts the requests that it would refuse.
    pub is_shadow: bool,
}

const SET: &str = "ids";

impl Config {
    /// Returns the configuration of a guard with one route.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`read`](Self::read).
    pub fn one_route(route: OneRoute) -> Result<Self, ConfigError> {
        let source = PathBuf::from("the options");
        let value = |field: &str, message: String| ConfigError::Value {
            path: source.clone(),
            field: field.to_owned(),
            message,
        };
        let id_type = match route.id_type.as_deref() {
            None | Some("integer") => file::IdKind::Integer,
            Some("uuid") => file::IdKind::Uuid,
            Some("text") => file::IdKind::Text,
            Some(other) => {
                let message = format!("{other:?} is no type; write integer, uuid or text");
                return Err(value("type", message));
            }
        };
        let mut places = route.places;
        if places.is_empty() {
            let path: PathTemplate =
                route.path.parse().map_err(|error| value("path", format!("{error}")))?;
            places = path.names().map(|name| format!("path:{name}")).collect();
        }
        let path = route.ids;
        // The code opens the file now, because with a wrong path the guard would wait for the file and pass all
        // requests.
        let is_filter = is_filter(&path)
            .map_err(|error| value("ids", format!("{}: {}", path.display(), PlainIo(&error))))?;
        let source = if is_filter {
            SourceTable::Filter(Filter::new(path))
        } else {
            SourceTable::Lines(Lines::new(path))
        };
        let ids = file::Ids {
            id_type: Some(id_type),
            rate: route.rate,
            trust: route.is_trusted,
            source: Some(SourceTables::One(Box::new(source))),
            ..file::Ids::default()
        };
        let route_table = file::Route {
            path: route.path,
            ids: places.into_iter().map(|place| (place, SET.to_owned())).collect(),
            shadow: route.is_shadow,
            refusal: file::Refusal { message: route.message, ..file::Refusal::default() },
            ..file::Route::default()
        };
        let listen = (!route.listen.is_empty()).then_some(OneOrMany::Many(route.listen));
        let proxy = file::Proxy { listen, upstream: route.upstream, ..file::Proxy::default() };
        let file = file::File {
            proxy: Some(proxy),
            ids: BTreeMap::from([(SET.to_owned(), ids)]),
            route: vec![route_table],
            ..file::File::default()
        };
        // Paths are relative to the working directory.
        Self::checked(file, Path::new("the options"))
    }
}

/// Tests whether a file is a Tamis filter.
fn is_filter(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(6).read_to_end(&mut start)?;
    Ok(start == b"\x89TAMIS")
}
