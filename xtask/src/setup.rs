//! `cargo xtask setup`: installs missing software that the tests need.
//!
//! Rust and its registry must exist. If other software cannot be installed, the task prints a message
//! and does not fail.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{Outcome, clients, console, databases, servers};

/// A package of Debian, and a function that tests whether its content is installed.
type Package = (&'static str, fn() -> bool);

const PACKAGES: [Package; 9] = [
    // libFuzzer is C++; zstd and the linker need the C compiler that comes with it.
    ("g++", || works(&mut Command::new("c++"))),
    // The bindings of the module are made from C headers. The build and the documentation cover the
    // whole workspace.
    ("libclang-dev", has_libclang),
    ("redis-server", || works(&mut Command::new("redis-server"))),
    ("redis-tools", || works(&mut Command::new("redis-benchmark"))),
    ("mariadb-server-core", databases::has_mariadb),
    // The script that creates the folder of a database calls a program of this package.
    ("mariadb-client-core", || works(&mut Command::new("my_print_defaults"))),
    ("postgresql", databases::has_postgres),
    ("chromium", console::has_chromium),
    // Chromium only recommends fonts. Without a font, a page has no text.
    ("fonts-liberation", has_fonts),
];

/// Installs the missing software.
pub fn run() -> Outcome {
    tools()?;
    clients()
}

/// Installs the parts of Rust and the Debian packages that are missing, the packages in one call.
pub fn tools() -> Outcome {
    for component in ["rustfmt", "clippy"] {
        let tool = component.trim_start_matches("rust");
        if !works(&mut cargo(&[tool])) {
            println!("installing {component}");
            // The command fails offline, or with a Rust without rustup. The steps that need the
            // component are then skipped.
            let _ = Command::new("rustup").args(["component", "add", component]).status();
        }
    }
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(_, is_here)| !is_here()).map(|(name, _)| *name).collect();
    if missing.contains(&"postgresql") {
        databases::forbid_cluster()?;
    }
    if missing.is_empty() || debian_packages(&missing).is_ok() {
        return Ok(());
    }
    // One package that is not there keeps apt-get from installing the others. The steps of the
    // missing ones are skipped, except the build.
    for name in &missing {
        if let Err(why) = debian_packages(&[name]) {
            println!("{why}");
        }
    }
    Ok(())
}

/// Installs the packages of Node.js and Python that the tests use. If one cannot be installed, the
/// task prints a message, and its tests are skipped.
pub fn clients() -> Outcome {
    console::install();
    clients::install();
    servers::install();
    Ok(())
}

/// Tests whether the library that reads C headers is where the bindings look for it. The link
/// without a version belongs to the package that also has the compiler's own headers.
fn has_libclang() -> bool {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    std::env::var_os("LIBCLANG_PATH").is_some()
        || folders.map(|folder| folder.path()).any(|path| path.join("lib/libclang.so").exists())
}

/// Tests whether a TrueType font is installed.
fn has_fonts() -> bool {
    std::fs::read_dir("/usr/share/fonts/truetype").is_ok_and(|mut fonts| fonts.next().is_some())
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
    command.args(words).current_dir(crate::root());
    command
}

/// Returns the path of the program as `cargo test` builds it for the tests. A fully optimized build
/// would take CI five minutes longer.
pub fn program() -> PathBuf {
    crate::root().join("target/debug/tamis")
}

/// Returns the path of the module as [`test_programs::build`](crate::test_programs::build) builds it.
pub fn module() -> PathBuf {
    crate::root().join("target/debug/libtamis.so")
}

/// Installs a package of Debian.
///
/// # Errors
///
/// Returns the command that a user can run instead.
pub fn debian_package(name: &str) -> Outcome {
    debian_packages(&[name])
}

fn debian_packages(names: &[&str]) -> Outcome {
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
