//! Expands the field `tables` of a database source to a list of tables.

use std::collections::HashSet;

use serde::Deserialize;

use crate::config::max_tables::{MAX_TABLES, too_many};
use crate::config::setting::{InvalidValue, invalid};
use crate::config::units::OneOrMany;

/// The field `tables = "orders_{00..15}"`, or a list of names. Each name may contain one range.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct Tables(OneOrMany<String>);

/// Returns the tables of a source. The source has either the field `table` or the field `tables`.
pub(super) fn tables(
    table: Option<&str>,
    tables: Option<&Tables>,
) -> Result<Vec<String>, InvalidValue> {
    let names = match (table, tables) {
        (Some(table), None) => return Ok(vec![table.to_owned()]),
        (None, Some(Tables(names))) => names.clone().into_vec(),
        (Some(_), Some(_)) => return Err(invalid("tables", "write `table` or `tables`, not both")),
        (None, None) => return Err(invalid("table", "write the name of the table")),
    };
    let mut expanded = Vec::new();
    for name in &names {
        expand(name, &mut expanded).map_err(|message| invalid("tables", message))?;
        if expanded.len() > MAX_TABLES {
            return Err(invalid("tables", too_many()));
        }
    }
    if expanded.is_empty() {
        return Err(invalid("tables", "the list is empty"));
    }
    let mut known = HashSet::new();
    if let Some(name) = expanded.iter().find(|name| !known.insert(name.as_str())) {
        return Err(invalid("tables", format!("the table {name:?} occurs twice")));
    }
    Ok(expanded)
}

/// Appends the tables that a name with at most one range stands for.
fn expand(name: &str, tables: &mut Vec<String>) -> Result<(), String> {
    let Some((before, rest)) = name.split_once('{') else {
        tables.push(name.to_owned());
        return Ok(());
    };
    let expected = || format!("{name:?} has no range such as {{00..15}}");
    let (range, after) = rest.split_once('}').ok_or_else(expected)?;
    let (first, last) = range.split_once("..").ok_or_else(expected)?;
    let number = |text: &str| {
        // A name of a table has at most 64 characters.
        let is_number =
            (1..=64).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| is_number).ok_or_else(expected)
    };
    if after.contains(['{', '}']) {
        return Err(format!("{name:?} has more than one range"));
    }
    let width = first.len();
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err(format!("the range of {name:?} ends before its start"));
    }
    if (last - first) as usize >= MAX_TABLES {
        return Err(too_many());
    }
    // `width` adds leading zeros. The numbers of a range without leading zeros have at least the width of the first
    // number.
    tables.extend((first..=last).map(|number| format!("{before}{number:0width$}{after}")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(names: &[&str]) -> Result<Vec<String>, String> {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        tables(None, Some(&Tables(OneOrMany::Many(names)))).map_err(|error| error.message)
    }

    #[test]
    fn a_range_keeps_its_leading_zeros() {
        for (name, expected) in [
            ("orders_{08..11}", &["orders_08", "orders_09", "orders_10", "orders_11"][..]),
            ("orders_{8..11}", &["orders_8", "orders_9", "orders_10", "orders_11"]),
            ("{098..100}_orders", &["098_orders", "099_orders", "100_orders"]),
            ("shop.orders_{7..7}", &["shop.orders_7"]),
            ("orders", &["orders"]),
        ] {
            assert_eq!(expanded(&[name]).unwrap(), expected, "{name}");
        }
        let both = expanded(&["old", "orders_{0..1}"]).unwrap();
        assert_eq!(both, ["old", "orders_0", "orders_1"]);
        assert_eq!(expanded(&["a_{0..1023}"]).unwrap().len(), MAX_TABLES);
    }

    #[test]
    fn wrong_lists_of_tables_are_refused() {
        for (names, expected) in [
            (&[][..], "the list is empty"),
            (&["a", "b", "a"], "the table \"a\" occurs twice"),
            (&["a_{0..2}", "a_1"], "the table \"a_1\" occurs twice"),
            (&["a_{0..1024}"], "a set has at most 1024 tables"),
            (&["a_{0..4294967295}"], "a set has at most 1024 tables"),
            (&["a_{0..999}", "b_{0..999}"], "a set has at most 1024 tables"),
            (&["a_{0..99999999999999999999}"], "has no range such as {00..15}"),
            (&["a_{5..4}"], "ends before its start"),
            (&["a_{0..1}_{0..1}"], "has more than one range"),
            (&["a_{0-1}"], "\"a_{0-1}\" has no range such as {00..15}"),
            (&["a_{0..}"], "has no range"),
            (&["a_{-1..1}"], "has no range"),
            (&["a_{+1..2}"], "has no range"),
            (&["a_{"], "has no range"),
            (&["a_{}"], "has no range"),
            (&[&format!("a_{{{}..1}}", "0".repeat(70_000))], "has no range"),
        ] {
            let message = expanded(names).unwrap_err();
            assert!(message.contains(expected), "{names:?}: {message}");
        }
    }
}
