//! The files of docs/guard-beside.md.

use std::path::Path;

/// Returns the block of the page that follows the comment `<!-- file: NAME -->`.
pub fn file(name: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guard-beside.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mark = format!("<!-- file: {name} -->\n```");
    let (_, block) = page.split_once(&mark).unwrap_or_else(|| panic!("the page has no {name}"));
    let (_, block) = block.split_once('\n').unwrap();
    let (block, _) = block.split_once("\n```\n").expect("the block has an end");
    format!("{block}\n")
}

/// Replaces a text that the file must contain.
#[track_caller]
pub fn replaced(file: &str, from: &str, to: &str) -> String {
    assert!(file.contains(from), "no {from:?} in:\n{file}");
    file.replace(from, to)
}
