//! Checks that relative links in the project's pages lead to existing files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tools::{Outcome, root};

/// The folders that contain pages, without `docs`. [`pages`] also reads all folders below `docs`.
const FOLDERS: [&str; 2] = ["", "examples"];

/// Returns the paths of all pages.
pub fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for folder in FOLDERS {
        pages.extend(markdown(&root().join(folder)));
    }
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        pages.extend(markdown(&folder));
        folders.extend(entries(&folder).filter(|path| path.is_dir()));
    }
    pages.sort();
    pages
}

/// Checks every relative link of every page. Returns an error that lists all broken links.
pub fn check() -> Outcome {
    let mut dead = Vec::new();
    for page in &pages() {
        let text =
            fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
        let folder = page.parent().unwrap_or(root());
        for target in links(&text).filter(|target| !folder.join(target).exists()) {
            dead.push(format!("{} leads to {target}, which is not there", page.display()));
        }
    }
    if dead.is_empty() { Ok(()) } else { Err(dead.join("\n")) }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    folder.read_dir().into_iter().flatten().filter_map(|entry| entry.ok().map(|it| it.path()))
}

fn markdown(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    entries(folder).filter(is_page)
}

/// Returns the target of each Markdown link to a file, without the part after `#`.
pub fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    targets
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .map(|target| target.split('#').next().unwrap_or(target))
        .filter(|target| !target.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_files_are_followed() {
        let text = "[a](b.md#c) ![d](e.svg) [f](https://g) [h](#i) [j](k/)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["b.md", "e.svg", "k/"]);
    }
}
