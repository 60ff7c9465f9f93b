//! `cargo xtask site`: builds the documentation site in `target/site`. With `--check`, also checks the site.
//!
//! The site is a folder of files for any static file server. The files load nothing from other hosts.

mod browser;
mod build;
mod html;
mod links;
mod same;

use std::path::PathBuf;
use std::time::Duration;

use crate::args;
use crate::steps::Steps;
use crate::tools::{Outcome, root};

/// The time limit of one command. The slowest commands are the installation of the builder and the test in Chromium.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Builds the site, and returns the folder of the site.
///
/// # Errors
///
/// Returns the output of a command that failed.
pub fn build_site(steps: &Steps) -> Result<PathBuf, String> {
    let site = root().join("target/site");
    let python = build::tools(steps)?;
    build::build(steps, &python, &site, None)?;
    Ok(site)
}

/// Builds the site. With `--check`, builds the site twice, compares the builds, checks the links, and tests the site in
/// Chromium.
pub fn run(words: &[&str]) -> Outcome {
    let is_check = args::has_check(words)?;
    let steps = Steps::new(LIMIT);
    let site = build_site(&steps)?;
    if is_check {
        let python = build::tools(&steps)?;
        // A build that depends on the time differs from a build with the start of 1970 as its time.
        let again = root().join("target/tests/site/again");
        build::build(&steps, &python, &again, Some("0"))?;
        steps.check("both builds of the site are equal", || same::check(&site, &again))?;
        steps.check("links of the site", || links::check(&site))?;
        browser::test(&steps, &site)?;
    }
    steps.end();
    println!("target/site");
    Ok(())
}
