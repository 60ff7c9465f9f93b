//! Tests the web consoles of the server and the guard in Chromium.
//!
//! The tests need Node.js, Chromium and one npm package in `target/tests/console`. If the task
//! cannot install one of these programs, the task prints a message and skips the step.

use std::path::PathBuf;
use std::process::Command;

use crate::npm;
use crate::steps::Steps;
use crate::tools::{self, Outcome, root, works};

/// The path of Chromium in Debian's package. The environment variable `CHROMIUM` overrides this
/// path.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Tests the consoles of the program in Chromium. The tests write screenshots to
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

/// Installs the npm package, and checks that the other software is installed. Returns an error that
/// names the missing software.
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

/// Returns the path of Chromium.
pub fn chromium() -> PathBuf {
    std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from(CHROMIUM), PathBuf::from)
}
