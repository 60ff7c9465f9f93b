//! Parses the tables `[[learn]]`.

use std::collections::BTreeMap;
use std::sync::Arc;

use tamis_sources::IdSet;

use crate::config::file;
use crate::config::route::{find_set, methods};
use crate::config::setting::{InvalidValue, bytes, invalid, set_to};
use crate::request::learn::{LearnPlace, LearnRule};
use crate::request::path::TemplateError;

/// Returns the rules for learning ids from responses.
pub(super) fn learn_rules(
    tables: &[file::Learn],
    sets: &BTreeMap<String, Arc<IdSet>>,
) -> Result<Vec<LearnRule>, InvalidValue> {
    let rule = |(i, table): (usize, &file::Learn)| {
        let result = learn_rule(table, sets);
        result.map_err(|it| it.with_prefix(format_args!("learn {}: ", i + 1)))
    };
    tables.iter().enumerate().map(rule).collect()
}

fn learn_rule(
    table: &file::Learn,
    sets: &BTreeMap<String, Arc<IdSet>>,
) -> Result<LearnRule, InvalidValue> {
    let path = table.path.parse().map_err(|error: TemplateError| invalid("path", error))?;
    let mut places = Vec::new();
    for place in table.places.clone().into_vec() {
        let place: LearnPlace = place.parse().map_err(|error| invalid("places", error))?;
        places.push(place);
    }
    if places.is_empty() {
        return Err(invalid("places", "write where the id is, such as \"answer json:/data/id\""));
    }
    let mut rule = LearnRule::new(path, places, find_set(sets, &table.ids)?);
    rule.name = table.name.clone().unwrap_or_else(|| table.path.clone());
    if let Some(names) = &table.methods {
        rule.methods = methods(names)?;
    }
    set_to(&mut rule.max_body_bytes, table.max_body.map(bytes));
    Ok(rule)
}
