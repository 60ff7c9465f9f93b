//! Checks that all files of the repository name the same version of Tamis.

use std::process::Command;

use crate::package::crates::Crate;
use crate::steps::Steps;
use crate::tools::root;

/// The files that can name a version, as patterns of git.
const FILES: [&str; 6] =
    ["packaging", ".github", "docs/*.md", "README*.md", "crates/*/README.md", "crates/*/*.toml"];

/// Returns the problems: files, crates and dependencies with another version.
///
/// # Errors
///
/// Returns why a file cannot be read.
pub fn check(steps: &Steps, version: &str, crates: &[Crate]) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    for it in crates {
        if it.version != version {
            problems.push(format!("Cargo.toml: {} has the version {}", it.name, it.version));
        }
        problems.extend(it.problems());
    }
    let mut git = Command::new("git");
    git.arg("ls-files").args(FILES).current_dir(root());
    for name in steps.finish_quietly(&mut git)?.lines() {
        let bytes = std::fs::read(root().join(name)).map_err(|error| format!("{name}: {error}"))?;
        let text = String::from_utf8_lossy(&bytes);
        problems.extend(others(&text, version).map(|(line, word)| {
            format!("{name}:{line}: {word} does not have the version {version}")
        }));
        // maturin takes the version of the wheel from Cargo.toml.
        if name.ends_with("pyproject.toml") && !text.contains("\ndynamic = [\"version\"]\n") {
            problems.push(format!("{name}: the version is not dynamic"));
        }
    }
    Ok(problems)
}

/// Returns the words of a text that name another version of Tamis, each with the number of its line. Such a word is
/// `tamis:0.1.0` or `tamis_0.1.0_amd64.deb`.
fn others<'a>(text: &'a str, version: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let is_border = |it: char| it.is_whitespace() || "\"'`()[]{},;<>|".contains(it);
    let words = text
        .lines()
        .enumerate()
        .flat_map(move |(line, text)| text.split(is_border).map(move |word| (line + 1, word)));
    words.filter(move |(_, word)| {
        let tail = word.rfind("tamis").map(|start| &word[start..]);
        tail.and_then(version_in).is_some_and(|found| found != version)
    })
}

/// Returns the first version in a word, such as `0.1.0`. An address such as `127.0.0.1` is no version.
fn version_in(word: &str) -> Option<&str> {
    let is_part = |it: char| it.is_ascii_digit() || it == '.';
    let mut runs = word.split(|it| !is_part(it)).map(|run| run.trim_matches('.'));
    runs.find(|run| {
        let mut parts = run.split('.');
        run.split('.').count() == 3 && parts.all(|part| !part.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_another_version_are_found() {
        let text = "image: tamis:0.1.0\n`apt install ./tamis_0.0.9_amd64.deb` tamis-0.1.0-x86_64.tar.gz\n\
            npm install @tamis-filter/linux-x64@0.2.0\n";
        let found: Vec<_> = others(text, "0.1.0").collect();
        assert_eq!(found, [(2, "./tamis_0.0.9_amd64.deb"), (3, "@tamis-filter/linux-x64@0.2.0")]);
    }

    #[test]
    fn versions_of_other_programs_are_ignored() {
        let text =
            "redis-server 7.0.15, tamis 127.0.0.1:6379 tamis://127.0.0.1 valkey:8.0.1 tamis-x86_64";
        assert_eq!(others(text, "0.1.0").count(), 0);
    }
}
