//! `cargo xtask site`: builds the documentation site in `target/site`.
//!
//! The site is a folder of files for any static file server. The files load nothing from other hosts.

mod build;

use std::time::Duration;

use crate::steps::Steps;
use crate::tools::{Outcome, root};

/// The time limit of one command. The slowest command is the installation of the builder.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Builds the site.
pub fn run(words: &[&str]) -> Outcome {
    if let [word, ..] = words {
        return Err(format!("unknown argument {word}: see `cargo xtask`"));
    }
    let steps = Steps::new(LIMIT);
    let python = build::tools(&steps)?;
    build::build(&steps, &python, &root().join("target/site"), None)?;
    steps.end();
    println!("target/site");
    Ok(())
}
