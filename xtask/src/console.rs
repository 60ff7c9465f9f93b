//! Tests the page of the console in Chromium.
//!
//! The tests need Node.js, Chromium and one npm package, which is in `target/tests/console`. If one
//! of them cannot be installed, the task prints a message and skips the step.

use std::path::PathBuf;
use std::process::Command;

use crate::setup::{self, debian_package, works};
use crate::steps::Steps;
use crate::{Outcome, npm, root};

/// The path in Debian's package; the environment variable `CHROMIUM` overrides it.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Installs the software that can be installed.
pub fn install() {
    if let Err(why) = prepare() {
        println!("the console will not be looked at in Chromium: {why}");
    }
}

/// Opens the console of the program in Chromium; its pictures are in
/// `target/tests/console/pictures`.
pub fn test(steps: &mut Steps) -> Outcome {
    let name = "console in Chromium";
    if let Err(why) = prepare() {
        steps.skip(name, &why);
        return Ok(());
    }
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec", "tests/console/console.test.js"]);
    node.current_dir(root())
        .env("MODULES", npm::modules("tests/console"))
        .env("CHROMIUM", chromium());
    node.env("TAMIS", setup::program());
    steps.run(name, node.env("PICTURES", npm::modules("tests/console").join("pictures")))
}

/// Checks that all required software is installed; returns what is missing.
fn prepare() -> Outcome {
    if !works(&mut Command::new(chromium())) {
        debian_package("chromium")?;
    }
    npm::install("tests/console", "playwright-core").map(drop)
}

fn chromium() -> PathBuf {
    std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from(CHROMIUM), PathBuf::from)
}
