//! Tests the pages of the consoles of the server and of the guard in Chromium.
//!
//! The tests need Node.js, Chromium and one npm package, which is in `target/tests/console`. If one
//! of them cannot be installed, the task prints a message and skips the step.

use std::path::PathBuf;
use std::process::Command;

use crate::npm;
use crate::steps::Steps;
use crate::tools::{self, Outcome, root, works};

/// The path in Debian's package; the environment variable `CHROMIUM` overrides it.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Opens the consoles of the program in Chromium; their pictures are in
/// `target/tests/console/pictures`.
pub fn test(steps: &Steps) -> Outcome {
    let name = "consoles in Chromium";
    if let Err(why) = prepare() {
        steps.skip(name, &why);
        return Ok(());
    }
    let mut node = Command::new("node");
    node.args(["--test", "--test-concurrency=1", "--test-reporter=spec"]);
    node.args(["tests/console/console.test.js", "tests/console/guard.test.js"]);
    node.current_dir(root())
        .env("MODULES", npm::modules("tests/console"))
        .env("CHROMIUM", chromium());
    node.env("TAMIS", tools::program());
    steps.run(name, node.env("PICTURES", npm::modules("tests/console").join("pictures")))
}

/// Installs what the tests need; returns what is missing.
pub fn prepare() -> Outcome {
    if !has_chromium() {
        return Err("Chromium could not be installed".to_owned());
    }
    npm::install("tests/console", "playwright-core").map(drop)
}

/// Tests whether Chromium is installed.
pub fn has_chromium() -> bool {
    works(&mut Command::new(chromium()))
}

fn chromium() -> PathBuf {
    std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from(CHROMIUM), PathBuf::from)
}
