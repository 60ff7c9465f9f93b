//! Installs npm packages for tests in Node.js. They are in `target`, never beside the tests.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::tools::{Outcome, root, works};

/// Installs the packages in the lock file of a folder of tests. `package` is one of them.
///
/// # Errors
///
/// Returns why the installation failed.
pub fn install(tests: &str, package: &str) -> Outcome {
    if !works(&mut Command::new("node")) || !works(&mut Command::new("npm")) {
        return Err("there is no Node.js: install nodejs and npm".to_owned());
    }
    let (from, to) = (root().join(tests), modules(tests));
    let is_there = || {
        let same =
            |name: &str| std::fs::read(from.join(name)).ok() == std::fs::read(to.join(name)).ok();
        same("package-lock.json") && to.join("node_modules").join(package).exists()
    };
    if is_there() {
        return Ok(());
    }
    std::fs::create_dir_all(&to).map_err(|error| format!("{}: {error}", to.display()))?;
    // The lock file is copied last: it marks the package as installed.
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(from.join(name), to.join(name))
            .map_err(|error| format!("{name}: {error}"))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    match npm.current_dir(&to).stdin(Stdio::null()).status() {
        Ok(status) if status.success() && is_there() => Ok(()),
        _ => Err(format!("npm could not install {package}")),
    }
}

/// Returns the folder with the packages for a folder of tests.
pub fn modules(tests: &str) -> PathBuf {
    root().join("target").join(tests)
}
