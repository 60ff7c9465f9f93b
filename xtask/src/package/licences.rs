//! Writes the licences of all crates in a program as one text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::package::dependencies::Dependency;
use crate::tools::{entries, read_file};

/// The beginnings of the names of licence files, in capitals.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Returns a text with the licences of the dependencies. Each distinct text of a licence appears once, below the crates
/// that have this licence.
///
/// # Errors
///
/// Returns the name of a crate that states no licence, or a file that cannot be read.
pub fn text(dependencies: &[Dependency]) -> Result<String, String> {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut out = String::from(
        "The programs and libraries of Tamis contain the crates below. Tamis itself may be used under MIT or Apache-2.0.\n\
         The standard library of Rust is also part of the programs, under MIT or Apache-2.0.\n\n",
    );
    for it in dependencies.iter().filter(|it| !it.is_own()) {
        if it.licence.is_empty() {
            return Err(format!("the crate {} {} states no licence", it.name, it.version));
        }
        writeln!(out, "{} {}: {}", it.name, it.version, it.licence)
            .expect("a String accepts all text");
        for text in files(&it.folder)? {
            by_text.entry(text).or_default().push(format!("{} {}", it.name, it.version));
        }
    }
    for (text, crates) in by_text {
        write!(out, "\n{}\n{}\n\n{text}\n", "-".repeat(80), crates.join(", "))
            .expect("a String accepts all text");
    }
    Ok(out)
}

/// Returns the texts of the licence files in a folder.
fn files(folder: &Path) -> Result<Vec<String>, String> {
    let is_licence = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        NAMES.iter().any(|start| name.starts_with(start)) && path.is_file()
    };
    let read = |path: &PathBuf| {
        let text = String::from_utf8_lossy(&read_file(path)?).replace('\r', "");
        Ok(text.trim().to_owned())
    };
    entries(folder)?.iter().filter(|path| is_licence(path)).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::root;

    /// Returns a crate whose sources are the root of this project, which has two licence files.
    fn dependency(name: &str, licence: &str) -> Dependency {
        Dependency {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.to_owned(),
            folder: root().to_owned(),
            checksum: Some("abc".to_owned()),
            uses: Vec::new(),
        }
    }

    #[test]
    fn equal_licences_appear_once() {
        let text = text(&[dependency("a", "MIT"), dependency("b", "MIT")]).unwrap();
        assert_eq!(text.matches("a 1.0.0, b 1.0.0").count(), 2, "MIT and Apache-2.0");
        assert_eq!(text.matches("Permission is hereby granted").count(), 1);
    }

    #[test]
    fn a_crate_without_a_licence_is_an_error() {
        assert!(text(&[dependency("a", "")]).unwrap_err().contains("a 1.0.0"));
    }
}
