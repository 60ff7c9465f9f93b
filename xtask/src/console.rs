//! The tests of the console's page, in Chromium.
//!
//! They need Node.js, Chromium and one package of npm, which lies in `target/tests/console`. Where these are not and cannot be
//! installed the step is left out with a word.

use std::path::PathBuf;
use std::process::Command;

use crate::setup::{self, debian_package, works};
use crate::steps::Steps;
use crate::{Outcome, npm, root};

/// Where Debian's package puts it; the environment variable `CHROMIUM` says otherwise.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Installs what can be.
pub fn install() {
    if let Err(why) = prepare() {
        println!("the console will not be looked at in Chromium: {why}");
    }
}

/// Opens the console of the program in Chromium; its pictures are in `target/tests/console/pictures`.
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

/// Makes sure that all is there, or says what is not.
fn prepare() -> Outcome {
    if !works(&mut Command::new(chromium())) {
        debian_package("chromium")?;
    }
    npm::install("tests/console", "playwright-core").map(drop)
}

fn chromium() -> PathBuf {
    std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from(CHROMIUM), PathBuf::from)
}
