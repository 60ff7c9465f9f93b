//! Parses the table `[authorize]`, and rejects settings that need the responses of the program.

use crate::config::file;
use crate::config::proxy::addresses;
use crate::config::setting::{InvalidValue, bytes, invalid, set_to};
use crate::config::sources::SourceTables;
use crate::http::authorize::AuthorizeOptions;
use crate::request::route::Route;

/// Returns the settings of the server for another proxy.
pub(super) fn authorize(table: &file::Authorize) -> Result<AuthorizeOptions, InvalidValue> {
    let listen = addresses("authorize.listen", table.listen.as_ref(), 8081)?;
    if table.bodies && !table.proxy.passes_bodies() {
        let message = format!("{} passes no bodies on: remove the field", table.proxy.name());
        return Err(invalid("authorize.bodies", message));
    }
    let mut options = AuthorizeOptions {
        listen,
        proxy: table.proxy,
        max_connections: 10_000,
        max_head_bytes: 64 << 10,
    };
    set_to(&mut options.max_connections, table.max_connections);
    set_to(&mut options.max_head_bytes, table.max_head.map(bytes));
    if options.max_connections == 0 || options.max_head_bytes < 8192 {
        let message = "max_connections must be above 0, and max_head at least 8K";
        return Err(invalid("authorize", message));
    }
    Ok(options)
}

/// Rejects a route with ids in a body that the other proxy does not pass on, and a refusal that the other proxy would
/// take as a permission.
pub(super) fn check_routes(table: &file::Authorize, routes: &[Route]) -> Result<(), InvalidValue> {
    let proxy = table.proxy.name();
    for (index, route) in routes.iter().enumerate() {
        let field = |name: &str| format!("route {}: {name}", index + 1);
        if route.needs_body() && !table.bodies {
            let message = match table.proxy.passes_bodies() {
                true => format!(
                    "the ids are in the body: set authorize.bodies = true, and let {proxy} pass bodies on"
                ),
                false => format!(
                    "the ids are in the body, and {proxy} passes no bodies on: use [proxy] for this route"
                ),
            };
            return Err(invalid(field("ids"), message));
        }
        if table.proxy.sends_refusals() && route.refusal.status.is_success() {
            let message = format!(
                "{proxy} takes a status from 200 to 299 as a permission: write a status of 300 or above"
            );
            return Err(invalid(field("refusal.status"), message));
        }
    }
    Ok(())
}

/// Rejects settings that need the responses of the program, in a configuration without `[proxy]`. The other proxy does
/// not show the responses to the guard.
pub(super) fn check_without_responses(file: &file::File) -> Result<(), InvalidValue> {
    let needs = "needs the responses of the program, which the guard does not see without [proxy]";
    let instruction = "remove the setting, or write [proxy]";
    if !file.learn.is_empty() {
        return Err(invalid("learn 1", format!("{needs}: let the program push new ids (push)")));
    }
    for (name, ids) in &file.ids {
        if ids.negative != file::Negative::default() {
            return Err(invalid(format!("ids.{name}.negative"), format!("{needs}: {instruction}")));
        }
        let needs_proof = ids.source.as_ref().is_some_and(SourceTables::needs_proof);
        if needs_proof && !ids.trust && ids.policy.unproven.is_none() {
            let message = format!(
                "the proof of a filter {needs}: run `tamis guard audit` with ids that exist, and set trust = true"
            );
            return Err(invalid(format!("ids.{name}"), message));
        }
    }
    let single = file.route.iter().position(|route| route.single_flight);
    if let Some(index) = single {
        let field = format!("route {}: single_flight", index + 1);
        return Err(invalid(field, format!("{needs}: {instruction}")));
    }
    Ok(())
}
