//! Tests the site in Chromium with the software of the console tests.

use std::path::Path;
use std::process::Command;

use crate::console;
use crate::npm;
use crate::steps::Steps;
use crate::tools::{Outcome, root};

/// Runs `tests/site/site.test.js`. The test writes screenshots to `target/tests/site/pictures`. If Chromium or Node.js
/// cannot be installed, skips the test with a message.
pub fn test(steps: &Steps, site: &Path) -> Outcome {
    let name = "site in Chromium";
    if let Err(why) = console::prepare() {
        steps.skip(name, &why);
        return Ok(());
    }
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec", "tests/site/site.test.js"]).current_dir(root());
    node.env("MODULES", npm::modules("tests/console")).env("CHROMIUM", console::chromium());
    node.env("SITE", site).env("PICTURES", root().join("target/tests/site/pictures"));
    steps.run(name, &mut node)
}
