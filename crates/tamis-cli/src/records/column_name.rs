//! Formats and finds the name of a column in a table. A column may be a member of another column.

use std::fmt;

/// The name of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    /// The names from the root of the schema to the column, separated by points. As in SQL, a name
    /// is in quotes if the name is empty or contains a point or a quote. For example, `"a.b"` is
    /// one column, and `a.b` is the member `b` of the column `a`.
    pub quoted: String,
    /// The names from the root of the schema to the column, separated by points, without quotes.
    pub plain: String,
}

impl ColumnName {
    /// Returns the name of the column with this path.
    pub fn of(path: &[String]) -> Self {
        let part = |part: &String| {
            if part.is_empty() || part.contains(['.', '"']) {
                format!("\"{}\"", part.replace('"', "\"\""))
            } else {
                part.clone()
            }
        };
        Self { quoted: path.iter().map(part).collect::<Vec<_>>().join("."), plain: path.join(".") }
    }
}

impl fmt::Display for ColumnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.quoted)
    }
}

/// Returns the full name of the column that the user means. A name with a point needs no quotes if
/// only one column has this name.
pub fn full_name(columns: &[ColumnName], asked: &str) -> String {
    let is_full = columns.iter().any(|column| column.quoted == asked);
    let mut found = columns.iter().filter(|column| column.plain == asked);
    match (is_full, found.next(), found.next()) {
        (false, Some(column), None) => column.quoted.clone(),
        _ => asked.to_owned(),
    }
}

/// Rejects a column if a second column has the same name. The filter of one column gives no
/// information about the values of another column.
///
/// # Errors
///
/// A message with the name if several columns have this name.
pub fn check_unique(columns: &[ColumnName], wanted: &ColumnName) -> Result<(), String> {
    match columns.iter().filter(|column| *column == wanted).nth(1) {
        None => Ok(()),
        Some(_) => Err(format!(
            "has several columns {wanted}: give each column another name, because tamis selects a \
             column by its name"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_several_columns_is_rejected() {
        let names = ["id", "a.b", "id"].map(|name| ColumnName::of(&[name.to_owned()]));
        let error = check_unique(&names, &names[0]).unwrap_err();
        assert!(error.starts_with("has several columns id: "), "{error}");
        assert_eq!(check_unique(&names, &names[1]), Ok(()));
        // The member `b` of `a` and the column `a.b` have different names.
        let names = [names[1].clone(), ColumnName::of(&["a".to_owned(), "b".to_owned()])];
        assert_eq!(check_unique(&names, &names[1]), Ok(()));
    }

    #[test]
    fn a_part_of_a_name_with_a_point_a_quote_or_nothing_is_in_quotes() {
        let name = |parts: &[&str]| {
            let parts: Vec<String> = parts.iter().map(|&part| part.into()).collect();
            ColumnName::of(&parts).to_string()
        };
        assert_eq!(name(&["a", "b"]), "a.b");
        assert_eq!(name(&["a.b", "c\"d", ""]), r#""a.b"."c""d"."""#);
    }
}
