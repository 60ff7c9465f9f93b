//! The tests of the console's page, in Chromium.
//!
//! They need Node.js, Chromium and one package of npm, which lies in `target/console`. Where these are not and cannot be
//! installed the step is left out with a word.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::setup::{debian_package, works};
use crate::steps::Steps;
use crate::{Outcome, root};

/// Where Debian's package puts it; the environment variable `CHROMIUM` says otherwise.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Installs what can be.
pub fn install() {
    if let Err(why) = prepare() {
        println!("the console will not be looked at in Chromium: {why}");
    }
}

/// Opens the console of the release program in Chromium; its pictures are in `target/console/pictures`.
pub fn test(steps: &mut Steps) -> Outcome {
    let name = "console in Chromium";
    if let Err(why) = prepare() {
        steps.skip(name, &why);
        return Ok(());
    }
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec", "tests/console/console.test.js"]);
    node.current_dir(root()).env("MODULES", modules()).env("CHROMIUM", chromium());
    node.env("TAMIS", root().join("target/release/tamis"));
    steps.run(name, node.env("PICTURES", modules().join("pictures")))
}

/// Makes sure that all is there, or says what is not.
fn prepare() -> Outcome {
    if !works(&mut Command::new("node")) || !works(&mut Command::new("npm")) {
        return Err("there is no Node.js: install nodejs and npm".to_owned());
    }
    if !works(&mut Command::new(chromium())) {
        debian_package("chromium")?;
    }
    let (from, to) = (root().join("tests/console"), modules());
    let is_there = || {
        let same =
            |name: &str| std::fs::read(from.join(name)).ok() == std::fs::read(to.join(name)).ok();
        same("package-lock.json") && to.join("node_modules/playwright-core").exists()
    };
    if is_there() {
        return Ok(());
    }
    std::fs::create_dir_all(&to).map_err(|error| format!("{}: {error}", to.display()))?;
    // The lock last: with it the package counts as installed.
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(from.join(name), to.join(name))
            .map_err(|error| format!("{name}: {error}"))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    match npm.current_dir(&to).stdin(Stdio::null()).status() {
        Ok(status) if status.success() && is_there() => Ok(()),
        _ => Err("npm could not install playwright-core".to_owned()),
    }
}

fn chromium() -> PathBuf {
    std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from(CHROMIUM), PathBuf::from)
}

fn modules() -> PathBuf {
    root().join("target/console")
}
