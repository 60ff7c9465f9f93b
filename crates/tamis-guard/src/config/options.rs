//! Turns the tables of a file into options, and says which value cannot be used.

use std::collections::{BTreeMap, HashSet};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Method;

use crate::bearer_token::BearerToken;
use crate::config::file;
use crate::config::read::read_text;
use crate::config::refusal::refusal;
use crate::config::set::{AdminConfig, SetConfig, SnapshotsConfig};
use crate::config::setting::{Wrong, set_to, set_to_text, wrong};
use crate::config::source::source;
use crate::config::units::{OneOrMany, Size, Text};
use crate::fleet::PublicationOptions;
use crate::id::{IdType, IntegerForm};
use crate::id_set::IdSet;
use crate::id_set_options::IdSetOptions;
use crate::learn::{LearnPlace, LearnRule};
use crate::path::{PathTemplate, TemplateError};
use crate::place::IdPlace;
use crate::plain_io::PlainIo;
use crate::proxy::{ProxyOptions, TlsFiles};
use crate::route::{Required, Route, RouteId};
use crate::single_flight::SingleFlight;
use crate::snapshot::{SnapshotOptions, file_name};
use crate::source::SourceOptions;
use crate::state::Policies;

/// Returns the settings of the proxy.
pub(super) fn proxy(table: &file::Proxy, folder: &Path) -> Result<ProxyOptions, Wrong> {
    let upstream = table.upstream.parse();
    let upstream = upstream.map_err(|error| wrong("proxy.upstream", error))?;
    let mut options = ProxyOptions::new(upstream);
    let listen = table.listen.clone().map(OneOrMany::into_vec);
    options.listen = match listen {
        None => vec![SocketAddr::from(([127, 0, 0, 1], 8080))],
        Some(addresses) => {
            addresses.iter().map(|it| address("proxy.listen", it)).collect::<Result<_, _>>()?
        }
    };
    if options.listen.is_empty() {
        return Err(wrong("proxy.listen", "write at least one address"));
    }
    let path = |path: &PathBuf| folder.join(path);
    options.tls = table
        .tls
        .as_ref()
        .map(|tls| TlsFiles { certificate: path(&tls.certificate), key: path(&tls.key) });
    options.upstream_ca = table.upstream_ca.as_ref().map(path);
    set_to_text(&mut options.connect_timeout, table.connect_timeout);
    set_to_text(&mut options.response_timeout, table.response_timeout);
    set_to_text(&mut options.header_timeout, table.header_timeout);
    set_to_text(&mut options.body_timeout, table.body_timeout);
    set_to_text(&mut options.idle_timeout, table.idle_timeout);
    set_to_text(&mut options.upstream_idle_timeout, table.upstream_idle_timeout);
    set_to_text(&mut options.shutdown_timeout, table.shutdown_timeout);
    set_to(&mut options.max_connections, table.max_connections);
    set_to(&mut options.max_head_bytes, table.max_head.map(bytes));
    options.trust_forwarded = table.trust_forwarded;
    options.logs_requests = table.log_requests;
    options.gives_request_ids = table.request_ids;
    options.check().map_err(|error| wrong("proxy", error))?;
    Ok(options)
}

fn bytes(Text(Size(bytes)): Text<Size>) -> usize {
    // At most a TiB.
    bytes as usize
}

/// Parses an address such as `0.0.0.0:8080` or `localhost:8080`.
fn address(field: &str, text: &str) -> Result<SocketAddr, Wrong> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    let message = || format!("{text:?} is not an address; write HOST:PORT such as 0.0.0.0:8080");
    found.ok_or_else(|| wrong(field, message()))
}

/// Returns the settings of snapshots.
pub(super) fn snapshots(
    table: &file::Snapshots,
    sets: &BTreeMap<String, file::Ids>,
    folder: &Path,
) -> Result<SnapshotsConfig, Wrong> {
    if let Some(set) = sets.keys().find(|set| file_name(set).is_none()) {
        return Err(wrong(
            format!("ids.{set}"),
            "the name is too long for the name of its snapshot file",
        ));
    }
    let every = table.every.map_or(SnapshotOptions::new("").every, |Text(time)| time);
    if every < Duration::from_secs(1) {
        return Err(wrong("snapshots.every", "must be at least 1s"));
    }
    Ok(SnapshotsConfig { folder: folder.join(&table.folder), every })
}

/// Returns the settings of a set of ids.
pub(super) fn set(name: &str, table: &file::Ids, folder: &Path) -> Result<SetConfig, Wrong> {
    let in_set = |(field, message): Wrong| wrong(format!("ids.{name}.{field}"), message);
    let id = id_type(table).map_err(in_set)?;
    let mut options = IdSetOptions::new(id.clone());
    set_to(&mut options.items, table.items);
    set_to(&mut options.rate, table.rate);
    if !(options.rate > 0.0 && options.rate < 1.0) {
        return Err(in_set(wrong("rate", "write a probability between 0 and 1, such as 0.001")));
    }
    options.policies = policies(table.policy);
    set_to(&mut options.negative_ids, table.negative.ids);
    set_to_text(&mut options.negative_for, table.negative.ttl);
    set_to_text(&mut options.recent_for, table.recent);
    set_to(&mut options.next_ids, table.next.ids);
    set_to(&mut options.next_per_second, table.next.per_second);
    if options.next_ids > 0 && !matches!(id, IdType::Integer { .. }) {
        return Err(in_set(wrong("next", "only for ids of the type integer")));
    }
    if table.publish.is_some() && matches!(table.source, Some(file::Source::Redis(_))) {
        let message =
            "a set with a Redis source cannot be published: let each guard read the Redis server";
        return Err(in_set(wrong("publish", message)));
    }
    let list = |field, ids: &[String], file: &Option<PathBuf>| {
        list(field, ids, file.as_deref(), &id, folder).map_err(in_set)
    };
    Ok(SetConfig {
        source: table.source.as_ref().map(|it| source(it, folder)).transpose().map_err(in_set)?,
        source_options: source_options(table).map_err(in_set)?,
        token: table.push.as_ref().map(|push| push.token.clone()),
        publish: table
            .publish
            .as_ref()
            .map(|it| publication(name, it))
            .transpose()
            .map_err(in_set)?,
        allowed: list("allow", &table.allow, &table.allow_file)?,
        denied: list("deny", &table.deny, &table.deny_file)?,
        options,
    })
}

fn id_type(table: &file::Ids) -> Result<IdType, Wrong> {
    let kind = table.id_type.unwrap_or(file::IdKind::Integer);
    let is_integer = kind == file::IdKind::Integer;
    let of_integers = [
        ("min", table.min.is_some()),
        ("max", table.max.is_some()),
        ("padded", table.padded.is_some()),
        ("spaced", table.spaced.is_some()),
    ];
    if let Some((field, _)) = of_integers.iter().find(|(_, is_given)| *is_given && !is_integer) {
        return Err(wrong(field, "only for ids of the type integer"));
    }
    if table.max_length.is_some() && kind != file::IdKind::Text {
        return Err(wrong("max_length", "only for ids of the type text"));
    }
    Ok(match kind {
        file::IdKind::Integer => {
            let mut form = IntegerForm::default();
            set_to(&mut form.is_padded, table.padded);
            set_to(&mut form.is_spaced, table.spaced);
            // Unsigned ids of a database may be larger than the numbers of TOML.
            let (min, max) =
                (table.min.unwrap_or(1), table.max.map_or(u64::MAX.into(), i128::from));
            if i128::from(min) > max {
                return Err(wrong("max", "must be at least min, which is 1 unless given"));
            }
            IdType::Integer { min: min.into(), max, form }
        }
        file::IdKind::Uuid => IdType::Uuid,
        file::IdKind::Text => IdType::Text { max_bytes: table.max_length.map_or(256, bytes) },
    })
}

fn policies(table: file::Policies) -> Policies {
    let mut policies = Policies::default();
    set_to_text(&mut policies.warming, table.warming);
    set_to_text(&mut policies.synced, table.synced);
    set_to_text(&mut policies.stale, table.stale);
    policies
}

fn source_options(table: &file::Ids) -> Result<SourceOptions, Wrong> {
    let mut options = SourceOptions::default();
    set_to_text(&mut options.interval, table.interval);
    set_to_text(&mut options.stale_after, table.stale_after);
    options.rebuild_after = table.rebuild_after.map(|Text(time)| time);
    set_to(&mut options.max_deleted, table.max_deleted);
    if options.interval.is_zero() {
        return Err(wrong("interval", "must be above 0"));
    }
    if options.stale_after <= options.interval {
        return Err(wrong("stale_after", "must be longer than `interval`"));
    }
    Ok(options)
}

/// Reads a list of ids from the file and from the configuration itself.
fn list(
    field: &str,
    ids: &[String],
    file: Option<&Path>,
    id: &IdType,
    folder: &Path,
) -> Result<HashSet<Box<[u8]>>, Wrong> {
    let mut list = HashSet::new();
    let mut add = |field: &str, text: &str| {
        let canonical = id.canonical(text.as_bytes());
        let canonical = canonical.map_err(|why| wrong(field, format!("{text:?} {why}")))?;
        list.insert(canonical.into());
        Ok::<(), Wrong>(())
    };
    for text in ids {
        add(field, text)?;
    }
    if let Some(path) = file {
        let (path, field) = (folder.join(path), format!("{field}_file"));
        let unreadable = |error| wrong(&field, format!("{}: {}", path.display(), PlainIo(&error)));
        let text = read_text(&path).map_err(unreadable)?;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            add(&field, line)?;
        }
    }
    Ok(list)
}

/// Returns how a set is published.
fn publication(name: &str, table: &file::Publish) -> Result<PublicationOptions, Wrong> {
    let token = &table.token.0;
    let token = BearerToken::new(token).map_err(|error| wrong("publish.token", error))?;
    let mut options = PublicationOptions::new(name, token);
    set_to(&mut options.history_bytes, table.history.map(bytes));
    Ok(options)
}

/// Returns the routes for sets of ids.
pub(super) fn routes(
    tables: &[file::Route],
    sets: &BTreeMap<String, Arc<IdSet>>,
) -> Result<Vec<Route>, Wrong> {
    let route = |(i, table): (usize, &file::Route)| {
        let name = table.name.clone().unwrap_or_else(|| table.path.clone());
        let result = route(table, name, sets);
        result.map_err(|(field, message)| wrong(format!("route {}: {field}", i + 1), message))
    };
    tables.iter().enumerate().map(route).collect()
}

fn find_set(sets: &BTreeMap<String, Arc<IdSet>>, name: &str) -> Result<Arc<IdSet>, Wrong> {
    let known = || sets.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let missing = || format!("there is no table [ids.{name}]; there are: {}", known());
    sets.get(name).cloned().ok_or_else(|| wrong("ids", missing()))
}

fn methods(names: &[String]) -> Result<Vec<Method>, Wrong> {
    let method = |name: &String| name.to_ascii_uppercase().parse();
    names.iter().map(method).collect::<Result<_, _>>().map_err(|error| wrong("methods", error))
}

/// Returns the rules by which answers teach ids.
pub(super) fn learn_rules(
    tables: &[file::Learn],
    sets: &BTreeMap<String, Arc<IdSet>>,
) -> Result<Vec<LearnRule>, Wrong> {
    let rule = |(i, table): (usize, &file::Learn)| {
        let result = learn_rule(table, sets);
        result.map_err(|(field, message)| wrong(format!("learn {}: {field}", i + 1), message))
    };
    tables.iter().enumerate().map(rule).collect()
}

fn learn_rule(
    table: &file::Learn,
    sets: &BTreeMap<String, Arc<IdSet>>,
) -> Result<LearnRule, Wrong> {
    let path = table.path.parse().map_err(|error: TemplateError| wrong("path", error))?;
    let mut places = Vec::new();
    for place in table.places.clone().into_vec() {
        let place: LearnPlace = place.parse().map_err(|error| wrong("places", error))?;
        places.push(place);
    }
    if places.is_empty() {
        return Err(wrong("places", "write where the id is, such as \"answer json:/data/id\""));
    }
    let mut rule = LearnRule::new(path, places, find_set(sets, &table.ids)?);
    rule.name = table.name.clone().unwrap_or_else(|| table.path.clone());
    if let Some(names) = &table.methods {
        rule.methods = methods(names)?;
    }
    set_to(&mut rule.max_body_bytes, table.max_body.map(bytes));
    Ok(rule)
}

/// Returns the address of the admin server and its token.
pub(super) fn admin(table: &file::Admin) -> Result<AdminConfig, Wrong> {
    let listen = address("admin.listen", &table.listen)?;
    if table.token.as_ref().is_some_and(|token| token.0.is_empty()) {
        return Err(wrong("admin.token", "must not be empty"));
    }
    Ok(AdminConfig { listen, token: table.token.clone() })
}

fn route(
    table: &file::Route,
    name: String,
    sets: &BTreeMap<String, Arc<IdSet>>,
) -> Result<Route, Wrong> {
    let path: PathTemplate = table.path.parse().map_err(|error| wrong("path", error))?;
    let mut ids = Vec::new();
    for (place, name) in &table.ids {
        let place: IdPlace = place.parse().map_err(|error| wrong("ids", error))?;
        if let IdPlace::Path(name) = &place
            && !path.names().any(|other| other == name)
        {
            return Err(wrong("ids", format!("the path {:?} has no {{{name}}}", table.path)));
        }
        ids.push(RouteId { place, ids: find_set(sets, name)? });
    }
    if ids.is_empty() {
        return Err(wrong("ids", "write where the id is, such as { \"path:id\" = \"products\" }"));
    }
    let mut route = Route::new(path, ids);
    route.name = name;
    route.methods = methods(&table.methods)?;
    if table.required == Some(file::Required::Any) {
        route.required = Required::Any;
    }
    route.refuses_missing = table.missing == Some(file::Missing::Refuse);
    route.is_shadow = table.shadow;
    route.single_flight = table.single_flight.then(SingleFlight::default);
    set_to(&mut route.max_body_bytes, table.max_body.map(bytes));
    route.refusal = refusal(&table.refusal)
        .map_err(|(field, message)| wrong(format!("refusal.{field}"), message))?;
    Ok(route)
}
