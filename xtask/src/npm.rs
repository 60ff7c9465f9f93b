//! Installs npm packages for tests in Node.js. The packages are installed in `target` and not in
//! the folder of the tests.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::tools::{Outcome, root, works};

/// Installs the packages of the lock file in the folder `tests`. `package` is one of these
/// packages.
///
/// # Errors
///
/// Returns the reason why the installation failed.
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
    // The code copies the lock file last, because the copy marks the packages as installed.
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

/// Returns the folder with the installed packages for the folder `tests`.
pub fn modules(tests: &str) -> PathBuf {
    root().join("target").join(tests)
}
