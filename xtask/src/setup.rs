//! `cargo xtask setup`: installs missing software that the tests need.
//!
//! Rust and its registry must exist. If optional software cannot be installed, the task prints a
//! message and does not fail.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{Outcome, clients, console, databases, servers};

/// Installs the missing software.
pub fn run() -> Outcome {
    for component in ["rustfmt", "clippy"] {
        let tool = component.trim_start_matches("rust");
        if !works(&mut cargo(&[tool])) {
            println!("installing {component}");
            // The command fails offline, or with a Rust without rustup. The steps that need the
            // component are then skipped.
            let _ = Command::new("rustup").args(["component", "add", component]).status();
        }
    }
    // libFuzzer is C++; zstd and the linker need the C compiler that comes with it.
    if !works(&mut Command::new("c++")) {
        debian_package("g++")?;
    }
    // The bindings of the module are made from C headers. The lints and the documentation cover the
    // whole workspace.
    if !has_libclang() {
        debian_package("libclang-dev")?;
    }
    console::install();
    clients::install();
    servers::install();
    databases::install();
    Ok(())
}

/// Tests whether the library that reads C headers is where the bindings look for it. The link
/// without a version belongs to the package that also has the compiler's own headers.
fn has_libclang() -> bool {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    std::env::var_os("LIBCLANG_PATH").is_some()
        || folders.map(|folder| folder.path()).any(|path| path.join("lib/libclang.so").exists())
}

/// Tests whether this command can be started and prints its version.
pub fn works(command: &mut Command) -> bool {
    let quiet = command.arg("--version").stdin(Stdio::null());
    quiet.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Returns the command `cargo WORD`.
pub fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(words).current_dir(crate::root());
    command
}

/// Returns the path of the program as `cargo test` builds it for the tests. A fully optimized build
/// would take CI five minutes longer.
pub fn program() -> PathBuf {
    crate::root().join("target/debug/tamis")
}

pub fn debian_package(name: &str) -> Outcome {
    println!("installing Debian's package {name}");
    let help = format!("install {name} by hand, such as 'sudo apt-get install {name}'");
    for words in [&["-qq", "update"][..], &["-qq", "install", "--yes", name][..]] {
        let mut command = Command::new("apt-get");
        let status = command.args(words).env("DEBIAN_FRONTEND", "noninteractive").status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("apt-get could not: {help}"));
        }
    }
    Ok(())
}
