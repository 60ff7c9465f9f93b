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

/// Checks that this system is Linux, before a task that would fail in the middle on another system.
///
/// # Errors
///
/// Returns the reason, and the command `instead`, which works on other systems.
pub fn require_linux(task: &str, instead: &str) -> Outcome {
    match std::env::consts::OS {
        "linux" => Ok(()),
        other => Err(not_linux(task, other, instead)),
    }
}

/// Returns the message that a task needs Linux.
fn not_linux(task: &str, system: &str, instead: &str) -> String {
    format!(
        "`cargo xtask {task}` works only on Linux, because its files are for Linux. On {system}, use `{instead}`, which \
         is not tested there"
    )
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

/// Returns the paths in a folder whose extension is `extension`, sorted.
///
/// # Errors
///
/// Returns why the folder cannot be read.
pub fn entries_with(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut paths = entries(folder)?;
    paths.retain(|path| path.extension().is_some_and(|it| it == extension));
    Ok(paths)
}

/// Reads a file.
///
/// # Errors
///
/// Returns the path of the file, and why the file cannot be read.
pub fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a file that is UTF-8.
///
/// # Errors
///
/// Returns the path of the file, and why the file cannot be read.
pub fn read_text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Creates an empty folder. Removes the old content of the folder.
pub fn empty_folder(folder: &Path) -> Outcome {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(fail)?;
    }
    std::fs::create_dir_all(folder).map_err(fail)
}

/// Writes a file, and creates the folder of the file.
pub fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> Outcome {
    let written = std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))
        .and_then(|()| std::fs::write(path, bytes));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a file, and creates the folder of the copy.
pub fn copy_file(from: &Path, to: &Path) -> Outcome {
    let folder = to.parent().expect("a path of a file");
    let copied = std::fs::create_dir_all(folder).and_then(|()| std::fs::copy(from, to));
    copied.map(drop).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

/// Returns the name of this CPU in Debian packages and container images.
pub fn debian_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Returns the paths of the files in a folder, sorted, without folders.
///
/// # Errors
///
/// Returns why the folder cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_file()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_for_linux_names_the_command_for_other_systems() {
        assert_eq!(require_linux("package", "cargo build"), Ok(()), "the tests run on Linux");
        let why = not_linux("package", "macos", "cargo build");
        assert!(why.starts_with("`cargo xtask package` works only on Linux"), "{why}");
        assert!(why.contains("On macos, use `cargo build`"), "{why}");
    }
}
