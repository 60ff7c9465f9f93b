//! Compares the files of two folders byte for byte.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::tools::{Outcome, entries};

/// Returns the paths of all files in a folder and its subfolders, relative to the folder.
pub fn files(folder: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let (inner, files): (Vec<_>, Vec<_>) =
            entries(&next)?.into_iter().partition(|path| path.is_dir());
        folders.extend(inner);
        found.extend(files.iter().filter_map(|path| Some(path.strip_prefix(folder).ok()?.into())));
    }
    Ok(found)
}

/// Checks that two folders have the same files with the same content.
///
/// # Errors
///
/// Returns the first file that differs.
pub fn check(one: &Path, other: &Path) -> Outcome {
    let (names, others) = (files(one)?, files(other)?);
    if let Some(name) = names.symmetric_difference(&others).next() {
        return Err(format!("only one build has {}", name.display()));
    }
    let read = |path: PathBuf| {
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    for name in names {
        if read(one.join(&name))? != read(other.join(&name))? {
            return Err(format!("{} differs between two builds", name.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_one_byte_is_found() {
        let folder = std::env::temp_dir().join(format!("xtask-same-{}", std::process::id()));
        let (one, other) = (folder.join("one"), folder.join("other"));
        for (build, text) in [(&one, "a"), (&other, "b")] {
            std::fs::create_dir_all(build.join("docs")).unwrap();
            std::fs::write(build.join("docs/page.html"), text).unwrap();
        }
        assert_eq!(check(&one, &one), Ok(()));
        assert_eq!(check(&one, &other), Err("docs/page.html differs between two builds".into()));
        std::fs::write(other.join("more.html"), "").unwrap();
        assert_eq!(check(&one, &other), Err("only one build has more.html".into()));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
