//! Checks the filters of a replica, which can exclude changes of its primary.

use crate::errors::source_error::SourceError;

/// The filter columns of the replication status. Each column contains names or patterns that are separated by commas.
pub(super) const FILTERS: [&str; 10] = [
    "Replicate_Do_DB",
    "Replicate_Ignore_DB",
    "Replicate_Do_Table",
    "Replicate_Ignore_Table",
    "Replicate_Wild_Do_Table",
    "Replicate_Wild_Ignore_Table",
    "Replicate_Rewrite_DB",
    "Replicate_Do_Domain_Ids",
    "Replicate_Ignore_Domain_Ids",
    "Replicate_Ignore_Server_Ids",
];

/// Rejects a replica whose filters may exclude changes of a table.
///
/// Each `Do` list must contain the table, and no `Ignore` list may contain the table. The servers are less strict than
/// this rule if a `Do` list and an `Ignore` list are combined.
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
            // The table may have another name on the primary, or the filter may exclude transactions of any table.
            _ => false,
        }
    };
    let Some((name, list)) = filters.iter().find(|filter| !applies(filter)) else { return Ok(()) };
    Err(SourceError::Preflight(format!(
        "the server is a replica that leaves out changes of {whole} or may do so ({name} = {list}); remove the filter, \
         or connect to the primary"
    )))
}

/// Tests whether a text matches an SQL `LIKE` pattern: `%` matches any text, `_` matches any character, and `\` escapes
/// the next character.
fn is_like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    // `ends[i]` is true if the pattern so far matches the first `i` characters of the text.
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    let mut pattern = pattern.chars();
    while let Some(symbol) = pattern.next() {
        if symbol == '%' {
            let first = ends.iter().position(|&is_end| is_end).unwrap_or(ends.len());
            ends[first..].fill(true);
            continue;
        }
        let expected = if symbol == '\\' { pattern.next().unwrap_or('\\') } else { symbol };
        for at in (0..text.len()).rev() {
            ends[at + 1] = ends[at] && (symbol == '_' || text[at] == expected);
        }
        ends[0] = false;
    }
    ends[text.len()]
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
            ("Replicate_Wild_Ignore_Table", "shop.%o%d%x%,a", true),
            ("Replicate_Rewrite_DB", "a->b", false),
            ("Replicate_Ignore_Domain_Ids", "2", false),
            ("Replicate_Ignore_Server_Ids", "", true),
            ("Replicate_Ignore_Server_Ids", "7", false),
        ] {
            let checked = check_filters(&[(name, list.to_owned())], "shop", "products");
            assert_eq!(checked.is_ok(), is_accepted, "{name} {list}");
        }
    }
}
