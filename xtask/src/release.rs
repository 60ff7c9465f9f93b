//! `cargo xtask release VERSION --dry-run`: checks that a version can be released. Prints the files, the places to which
//! the files are uploaded, and the commands that upload them.
//!
//! The task uploads nothing: the workflow `.github/workflows/release.yml` uploads after a tag was pushed.

mod changelog;
mod destinations;
mod files;
mod repository;
mod versions;

use std::time::Duration;

use crate::package::crates;
use crate::release::destinations::Destination;
use crate::steps::Steps;
use crate::tools::{Outcome, root};

/// The time limit of one command. All commands only read files.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Checks a version, and prints the table of all uploads. Returns an error that lists all problems.
pub fn run(words: &[&str]) -> Outcome {
    let version = match words {
        [version, "--dry-run"] | ["--dry-run", version] => version,
        [version] if !version.starts_with('-') => {
            return Err(format!(
                "`cargo xtask release` uploads nothing: the workflow `.github/workflows/release.yml` uploads the release \
                 after `git push origin v{version}`. Check the release before with `--dry-run`"
            ));
        }
        _ => return Err("the arguments are VERSION --dry-run: see `cargo xtask`".to_owned()),
    };
    let steps = Steps::new(LIMIT);
    let crates = crates::published(&steps)?;
    let destinations = destinations::of(version, &crates);
    println!("{}", table(&destinations));
    let mut problems = versions::check(&steps, version, &crates)?;
    problems.extend(changelog::check(version)?);
    problems.extend(repository::check(&steps, version)?);
    problems.extend(files::check(&steps, &destinations)?);
    if problems.is_empty() {
        println!("{version} can be released: push the tag v{version}");
        return Ok(());
    }
    let list: String = problems.iter().map(|problem| format!("\n* {problem}")).collect();
    Err(format!("{version} cannot be released, number of problems: {}{list}", problems.len()))
}

/// Formats the destinations: their files with the sizes, and the commands.
fn table(destinations: &[Destination]) -> String {
    let mut text = String::new();
    for destination in destinations {
        text.push_str(&format!("{}\n", destination.name));
        for path in &destination.files {
            let size = match std::fs::metadata(root().join(path)) {
                Ok(data) => format!("{:.2} MB", data.len() as f64 / 1e6),
                Err(_) => "missing".to_owned(),
            };
            text.push_str(&format!("{size:>10}  {path}\n"));
        }
        for command in &destination.commands {
            text.push_str(&format!("  $ {command}\n"));
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_uploads_nothing() {
        assert!(run(&["0.1.0"]).unwrap_err().contains("release.yml"));
        assert!(run(&["--dry-run"]).unwrap_err().contains("VERSION"));
        assert!(run(&[]).unwrap_err().contains("VERSION"));
    }

    #[test]
    fn the_table_shows_sizes_and_commands() {
        let destination = Destination {
            name: "a place",
            files: vec!["LICENSE-MIT".to_owned(), "no such file".to_owned()],
            commands: vec!["upload it".to_owned()],
        };
        let expected = "a place\n   0.00 MB  LICENSE-MIT\n   missing  no such file\n  $ upload it";
        assert_eq!(table(&[destination]), expected);
    }
}
