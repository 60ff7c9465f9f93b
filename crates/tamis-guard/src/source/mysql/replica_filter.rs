//! The filters of a replica, which leave out changes of its primary.

use crate::source::error::SourceError;

/// The columns of the status with a filter. Each has a list of names or patterns with commas between them.
pub(super) const FILTERS: [&str; 7] = [
    "Replicate_Do_DB",
    "Replicate_Ignore_DB",
    "Replicate_Do_Table",
    "Replicate_Ignore_Table",
    "Replicate_Wild_Do_Table",
    "Replicate_Wild_Ignore_Table",
    "Replicate_Rewrite_DB",
];

/// Refuses a replica whose filters may leave out changes of a table.
///
/// A list of what is applied must have the table, and a list of what is ignored must not. The server has rules for
/// both lists together; they accept some filters that are refused here.
///
/// # Errors
///
/// [`SourceError::Preflight`] with the name of the filter.
pub(super) fn check_filters(
    filters: &[(&str, String)],
    database: &str,
    table: &str,
) -> Result<(), SourceError> {
    let whole = format!("{database}.{table}");
    let applies = |(name, list): &&(&str, String)| {
        let mut entries = list.split(',').map(str::trim);
        match *name {
            _ if list.is_empty() => true,
            "Replicate_Do_DB" => entries.any(|it| it == database),
            "Replicate_Ignore_DB" => !entries.any(|it| it.eq_ignore_ascii_case(database)),
            "Replicate_Do_Table" => entries.any(|it| it == whole),
            "Replicate_Ignore_Table" => !entries.any(|it| it.eq_ignore_ascii_case(&whole)),
            "Replicate_Wild_Do_Table" => entries.any(|it| is_like(&whole, it)),
            "Replicate_Wild_Ignore_Table" => {
                let whole = whole.to_lowercase();
                !entries.any(|it| is_like(&whole, &it.to_lowercase()))
            }
            // The table may have another name on the primary.
            _ => false,
        }
    };
    let Some((name, list)) = filters.iter().find(|filter| !applies(filter)) else { return Ok(()) };
    Err(SourceError::Preflight(format!(
        "the server is a replica that leaves out changes of {whole} or may do so ({name} = {list}); remove the filter, \
         or connect to the primary"
    )))
}

/// Tests whether a text matches a pattern of SQL: `%` stands for any text, `_` for any character, and `\` before a
/// character for this character.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('%') => {
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            ends.into_iter().any(|at| is_like(&text[at..], rest.as_str()))
        }
        Some(first) => {
            let is_any = first == '_';
            let first = if first == '\\' { rest.next().unwrap_or('\\') } else { first };
            let mut chars = text.chars();
            let is_first = chars.next().is_some_and(|it| is_any || it == first);
            is_first && is_like(chars.as_str(), rest.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_that_concern_other_tables_are_accepted() {
        for (name, list, is_accepted) in [
            ("Replicate_Do_DB", "", true),
            ("Replicate_Do_DB", "a, shop", true),
            ("Replicate_Do_DB", "a", false),
            ("Replicate_Ignore_DB", "mysql,test", true),
            ("Replicate_Ignore_DB", "Shop", false),
            ("Replicate_Do_Table", "shop.products", true),
            ("Replicate_Do_Table", "shop.orders", false),
            ("Replicate_Ignore_Table", "mysql.rds_history,shop.orders", true),
            ("Replicate_Ignore_Table", "shop.products", false),
            ("Replicate_Wild_Do_Table", "shop.%", true),
            ("Replicate_Wild_Do_Table", "sho_.pro%s", true),
            ("Replicate_Wild_Do_Table", "shop.p\\_%", false),
            ("Replicate_Wild_Ignore_Table", "mysql.%", true),
            ("Replicate_Wild_Ignore_Table", "mysql.%,SHOP.P%", false),
            ("Replicate_Wild_Ignore_Table", "%.%", false),
            ("Replicate_Rewrite_DB", "a->b", false),
        ] {
            let checked = check_filters(&[(name, list.to_owned())], "shop", "products");
            assert_eq!(checked.is_ok(), is_accepted, "{name} {list}");
        }
    }
}
