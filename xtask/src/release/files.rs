//! Checks that the folders of the packages have exactly the files of a release, with the listed checksums.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::release::destinations::{CRATES, Destination, PACKAGES, WHEELS};
use crate::steps::Steps;
use crate::tools::{entries, root};

/// Returns the problems: missing files, other files, and wrong checksums.
///
/// # Errors
///
/// Returns why a command could not be started.
pub fn check(steps: &Steps, destinations: &[Destination]) -> Result<Vec<String>, String> {
    let expected: BTreeSet<String> =
        destinations.iter().flat_map(|it| it.files.iter().cloned()).collect();
    let found: BTreeSet<String> =
        [PACKAGES, CRATES, WHEELS].into_iter().flat_map(|folder| files(root(), folder)).collect();
    let mut problems = differences(&expected, &found);
    problems.extend(sums(steps, &root().join(PACKAGES), &expected));
    Ok(problems)
}

/// Returns the paths of the files in a folder, in the root of the project. A folder that does not exist has no files.
fn files(root: &Path, folder: &str) -> Vec<String> {
    let paths = entries(&root.join(folder)).unwrap_or_default();
    let files = paths.iter().filter(|path| path.is_file());
    let name = |path: &Path| path.file_name().map(|it| it.to_string_lossy().into_owned());
    files.filter_map(|path| Some(format!("{folder}/{}", name(path)?))).collect()
}

/// Returns the missing files, and the files that do not belong to the release.
fn differences(expected: &BTreeSet<String>, found: &BTreeSet<String>) -> Vec<String> {
    let task = |path: &str| if path.starts_with(WHEELS) { "wheel" } else { "package" };
    let missing = expected
        .difference(found)
        .map(|path| format!("{path} is missing: run `cargo xtask {} --check`", task(path)));
    let other =
        found.difference(expected).map(|path| format!("{path} does not belong to the release"));
    missing.chain(other).collect()
}

/// Returns the problems of `SHA256SUMS`: the list must name each package and have the right checksums.
fn sums(steps: &Steps, packages: &Path, expected: &BTreeSet<String>) -> Vec<String> {
    const NAME: &str = "SHA256SUMS";
    let Ok(text) = std::fs::read_to_string(packages.join(NAME)) else {
        // The missing list is already a problem.
        return Vec::new();
    };
    let listed: BTreeSet<_> = text.lines().filter_map(|line| line.split("  ").nth(1)).collect();
    let names = expected.iter().filter_map(|path| Path::new(path).strip_prefix(PACKAGES).ok());
    let names = names.filter_map(Path::to_str).filter(|name| *name != NAME && !name.contains('/'));
    let mut problems: Vec<_> = names
        .filter(|name| !listed.contains(name))
        .map(|name| format!("{NAME} does not list {name}"))
        .collect();
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--quiet", NAME]).current_dir(packages);
    if let Err(why) = steps.finish_quietly(&mut check) {
        problems.push(format!("{NAME}: {}", why.trim_end()));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{empty_folder, write_file};

    fn set(paths: &[&str]) -> BTreeSet<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn missing_and_other_files_are_problems() {
        let expected = set(&["target/packages/a", "target/wheels/b"]);
        assert!(differences(&expected, &expected).is_empty());
        let found = differences(&expected, &set(&["target/packages/old"]));
        assert!(found[0].starts_with("target/packages/a is missing: run `cargo xtask package"));
        assert!(found[1].starts_with("target/wheels/b is missing: run `cargo xtask wheel"));
        assert_eq!(found[2], "target/packages/old does not belong to the release");
    }

    #[test]
    fn the_checksums_must_be_right_and_complete() {
        let steps = Steps::new(std::time::Duration::from_secs(60));
        let folder = root().join("target/tests/release-sums");
        empty_folder(&folder).unwrap();
        write_file(&folder.join("a"), "").unwrap();
        let expected = set(&["target/packages/a", "target/packages/SHA256SUMS"]);
        let check = |text: &str| {
            write_file(&folder.join("SHA256SUMS"), text).unwrap();
            sums(&steps, &folder, &expected)
        };
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert!(check(&format!("{empty}  a\n")).is_empty());
        assert!(check(&format!("{}  a\n", empty.replace('e', "f")))[0].contains("a: FAILED"));
        assert!(check("")[0].contains("does not list a"));
    }
}
