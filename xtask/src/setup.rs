//! `cargo xtask setup`: installs missing software that the tests need.
//!
//! Rust and its registry must exist. If other software cannot be installed, the task prints a message
//! and does not fail.

use std::process::Command;

use crate::tools::{Outcome, cargo, debian_packages, works};
use crate::{clients, console, databases, servers};

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
    for (loss, installed) in [
        ("the console will not be looked at in Chromium", console::prepare()),
        ("redis-py will not be tried", clients::python().map(drop)),
        ("node-redis will not be tried", clients::node()),
        ("redis-cli will not be tried", clients::debian()),
        ("the module and the filters in bitmaps will not be tried", servers::installed()),
    ] {
        if let Err(why) = installed {
            println!("{loss}: {why}");
        }
    }
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
