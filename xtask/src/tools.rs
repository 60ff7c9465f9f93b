//! What the tasks have in common: the folder of the project, cargo, and packages of Debian.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a task. The error is a text for the user.
pub type Outcome = Result<(), String>;

/// Returns the root folder of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root")
}

/// Tests whether this command can be started and prints its version.
pub fn works(command: &mut Command) -> bool {
    let quiet = command.arg("--version").stdin(Stdio::null());
    quiet.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Returns the command `cargo WORD`, in the environment of the user.
///
/// `cargo xtask` describes its own package in variables. The build script of `ring` depends on some of
/// them, so cargo would compile `ring` and its users again in each build that has other values.
pub fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let is_removed = name.to_str().is_some_and(|name| {
            // The tasks look for programs in `target`.
            let moves_target = name == "CARGO_TARGET_DIR" || name == "CARGO_BUILD_TARGET_DIR";
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || moves_target
        });
        if is_removed {
            command.env_remove(name);
        }
    }
    command.args(words).current_dir(root());
    command
}

/// Returns the path of the program as `cargo test` builds it for the tests. A fully optimized build
/// would take CI five minutes longer.
pub fn program() -> PathBuf {
    root().join("target/debug/tamis")
}

/// Returns the path of the module as the build of the tests makes it.
pub fn module() -> PathBuf {
    root().join("target/debug/libtamis.so")
}

/// Installs a package of Debian.
///
/// # Errors
///
/// Returns the command that a user can run instead.
pub fn debian_package(name: &str) -> Outcome {
    debian_packages(&[name])
}

/// Installs packages of Debian in one call.
///
/// # Errors
///
/// Returns the command that a user can run instead.
pub fn debian_packages(names: &[&str]) -> Outcome {
    let names = names.join(" ");
    println!("installing Debian's {names}");
    // The packages that Chromium recommends are parts of a desktop.
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
