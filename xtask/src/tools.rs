//! Functions that several tasks use: the project folder, cargo commands, and the installation of Debian packages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a task. The error is a message for the user.
pub type Outcome = Result<(), String>;

/// Returns the root folder of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root")
}

/// Tests whether a command succeeds with the option `--version`.
pub fn works(command: &mut Command) -> bool {
    let quiet = command.arg("--version").stdin(Stdio::null());
    quiet.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Returns a cargo command with the environment of the user.
pub fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    remove_package_variables(&mut command);
    command.args(words).current_dir(root());
    command
}

/// Removes the environment variables that `cargo xtask` sets, so that the command can call cargo.
///
/// `cargo xtask` sets environment variables that describe the package `xtask`. The build script of `ring` depends on
/// some of these variables. With changed values, cargo would compile `ring` and all dependent crates again, so this
/// function removes the variables.
pub fn remove_package_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let is_removed = name.to_str().is_some_and(|name| {
            // The tasks expect the built programs in `target`, so the user must not move the target folder.
            let moves_target = name == "CARGO_TARGET_DIR" || name == "CARGO_BUILD_TARGET_DIR";
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || moves_target
        });
        if is_removed {
            command.env_remove(name);
        }
    }
}

/// Returns the path of the program that the test build creates. A fully optimized build would take five more minutes in
/// CI.
pub fn program() -> PathBuf {
    root().join("target/debug/tamis")
}

/// Returns the path of the module that the test build creates.
pub fn module() -> PathBuf {
    root().join("target/debug/libtamis.so")
}

/// Installs a Debian package.
///
/// # Errors
///
/// Returns a message with the `apt-get` command that a user can run instead.
pub fn debian_package(name: &str) -> Outcome {
    debian_packages(&[name])
}

/// Installs several Debian packages with one call of `apt-get`.
///
/// # Errors
///
/// Returns a message with the `apt-get` command that a user can run instead.
pub fn debian_packages(names: &[&str]) -> Outcome {
    let names = names.join(" ");
    println!("installing Debian's {names}");
    // `--no-install-recommends` skips the desktop packages that Chromium recommends.
    let install = format!("-qq install --yes --no-install-recommends {names}");
    for line in ["-qq update", &install] {
        let mut apt = Command::new("apt-get");
        apt.args(line.split(' ')).env("DEBIAN_FRONTEND", "noninteractive");
        let output =
            apt.stdin(Stdio::null()).output().map_err(|error| format!("apt-get: {error}"))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{errors}apt-get failed: run 'sudo apt-get install {names}'"));
        }
    }
    Ok(())
}

/// Returns the paths in a folder, sorted.
///
/// # Errors
///
/// Returns why the folder cannot be read.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(fail)?;
    let mut paths: Vec<_> =
        entries.map(|entry| entry.map(|it| it.path())).collect::<Result<_, _>>().map_err(fail)?;
    paths.sort();
    Ok(paths)
}
