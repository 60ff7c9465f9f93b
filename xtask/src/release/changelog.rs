//! Checks that the changelog has a section with a date for a version.

use crate::tools::{read_text, root};

/// Returns the problem of the changelog, if there is one.
///
/// # Errors
///
/// Returns why the changelog cannot be read.
pub fn check(version: &str) -> Result<Option<String>, String> {
    Ok(problem(&read_text(&root().join("CHANGELOG.md"))?, version))
}

/// Returns the problem of a changelog. The heading of a section is `## VERSION, YEAR-MONTH-DAY`.
fn problem(text: &str, version: &str) -> Option<String> {
    let mut headings = text.lines().filter_map(|line| line.strip_prefix("## "));
    let Some(newest) = headings.next() else {
        return Some("CHANGELOG.md has no section".to_owned());
    };
    match newest.split_once(", ") {
        Some((name, date)) if name == version && is_date(date) => None,
        Some((name, date)) if name == version => {
            Some(format!("CHANGELOG.md: the section {version} has \"{date}\" in place of a date"))
        }
        _ => Some(format!("CHANGELOG.md: the first section is \"{newest}\", not {version}")),
    }
}

/// Tests whether a text is a date such as `2026-11-30`.
fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let is_number = |part: &str, digits, range: std::ops::RangeInclusive<u32>| {
        part.len() == digits && part.parse().is_ok_and(|number| range.contains(&number))
    };
    match parts[..] {
        [year, month, day] => {
            is_number(year, 4, 2026..=9999)
                && is_number(month, 2, 1..=12)
                && is_number(day, 2, 1..=31)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_section_must_have_the_version_and_a_date() {
        let text = |heading: &str| {
            format!("# Changelog\n\n## {heading}\n\nText\n\n## 0.0.9, 2026-01-01\n")
        };
        assert_eq!(problem(&text("0.1.0, 2026-11-30"), "0.1.0"), None);
        for wrong in ["0.1.0, unreleased", "0.1.0", "0.1.0, 2026-13-01", "0.2.0, 2026-11-30"] {
            assert!(problem(&text(wrong), "0.1.0").is_some(), "{wrong}");
        }
        assert!(problem(&text("0.1.0, 2026-11-30"), "0.0.9").is_some(), "an older version");
        assert!(problem("# Changelog\n", "0.1.0").unwrap().contains("no section"));
    }
}
