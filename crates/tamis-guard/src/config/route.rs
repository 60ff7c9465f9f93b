//! Parses the tables `[[route]]`.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use tamis_sources::IdSet;

use crate::config::file;
use crate::config::refusal::refusal;
use crate::config::setting::{InvalidValue, bytes, invalid, set_to};
use crate::request::route::{Required, Route};
use crate::request::route_error::RouteError;
use crate::request::single_flight::SingleFlight;

/// Creates the routes. `sets` contains the sets of ids by name.
pub(super) fn routes(
    tables: &[file::Route],
    sets: &BTreeMap<String, Arc<IdSet>>,
) -> Result<Vec<Route>, InvalidValue> {
    let route = |(i, table): (usize, &file::Route)| {
        let name = table.name.clone().unwrap_or_else(|| table.path.clone());
        let result = route(table, name, sets);
        result.map_err(|it| it.with_prefix(format_args!("route {}: ", i + 1)))
    };
    let routes = tables.iter().enumerate().map(route).collect::<Result<Vec<_>, _>>()?;
    check_order(&routes)?;
    Ok(routes)
}

/// Rejects a route that an earlier route hides, because the hidden route would check nothing.
fn check_order(routes: &[Route]) -> Result<(), InvalidValue> {
    for (i, route) in routes.iter().enumerate() {
        let Some(earlier) = routes[..i].iter().position(|earlier| earlier.hides(route)) else {
            continue;
        };
        let message = format!(
            "no request reaches the route {:?}, because the earlier route {} ({:?}) matches all \
             requests of the later route: write the route with the narrower path first, or write all \
             ids into one route",
            route.name,
            earlier + 1,
            routes[earlier].name
        );
        return Err(invalid(format_args!("route {}: path", i + 1), message));
    }
    Ok(())
}

fn route(
    table: &file::Route,
    name: String,
    sets: &BTreeMap<String, Arc<IdSet>>,
) -> Result<Route, InvalidValue> {
    if table.exempt {
        return exempt_route(table, name);
    }
    let wrong = |error| {
        let field = if matches!(error, RouteError::Template(_)) { "path" } else { "ids" };
        invalid(field, error)
    };
    let mut ids = table.ids.iter();
    let Some((place, set)) = ids.next() else {
        let message = "write where the id is, such as { \"path:id\" = \"products\" }, or write \
                       exempt = true if the guard must not check these requests";
        return Err(invalid("ids", message));
    };
    let first = find_set(sets, set)?;
    let mut route = Route::new(table.path.as_str(), place.as_str(), first).map_err(wrong)?;
    for (place, set) in ids {
        route = route.with_id(place.as_str(), find_set(sets, set)?).map_err(wrong)?;
    }
    route.name = name;
    route.methods = methods(&table.methods)?;
    if table.required == Some(file::Required::Any) {
        route.required = Required::Any;
    }
    route.list_separator = table.list.map(list_separator).transpose()?;
    route.refuses_missing = table.missing == Some(file::Missing::Refuse);
    route.is_shadow = table.shadow;
    route.single_flight = table.single_flight.then(SingleFlight::default);
    set_to(&mut route.max_body_bytes, table.max_body.map(bytes));
    if route.needs_body() && route.max_body_bytes == 0 {
        return Err(invalid("max_body", "must be above 0, because the ids are in the body"));
    }
    route.refusal = refusal(&table.refusal).map_err(|it| it.with_prefix("refusal."))?;
    Ok(route)
}

/// Creates a route whose requests pass without a check.
fn exempt_route(table: &file::Route, name: String) -> Result<Route, InvalidValue> {
    let expected = file::Route {
        name: table.name.clone(),
        path: table.path.clone(),
        methods: table.methods.clone(),
        exempt: true,
        ..file::Route::default()
    };
    if *table != expected {
        let message = "an exempt route checks nothing: leave out all fields except path, methods \
                       and name";
        return Err(invalid("exempt", message));
    }
    let mut route = Route::exempt(table.path.as_str()).map_err(|error| invalid("path", error))?;
    route.name = name;
    route.methods = methods(&table.methods)?;
    Ok(route)
}

/// Returns the separator of a list. A semicolon is no separator, because a value in a path ends at a semicolon.
fn list_separator(separator: char) -> Result<u8, InvalidValue> {
    let byte = u8::try_from(separator).ok();
    let byte = byte.filter(|byte| byte.is_ascii_punctuation() || *byte == b' ');
    let message =
        "write the character between two ids, such as \",\": no letter, no digit and no ;";
    byte.filter(|byte| *byte != b';').ok_or_else(|| invalid("list", message))
}

/// Returns the set with a name.
pub(super) fn find_set(
    sets: &BTreeMap<String, Arc<IdSet>>,
    name: &str,
) -> Result<Arc<IdSet>, InvalidValue> {
    let known = || sets.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let missing = || format!("there is no table [ids.{name}]; there are: {}", known());
    sets.get(name).cloned().ok_or_else(|| invalid("ids", missing()))
}

/// Parses the names of HTTP methods.
pub(super) fn methods(names: &[String]) -> Result<Vec<Method>, InvalidValue> {
    let method = |name: &String| name.to_ascii_uppercase().parse();
    names.iter().map(method).collect::<Result<_, _>>().map_err(|error| invalid("methods", error))
}
