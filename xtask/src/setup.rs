//! `cargo xtask setup`: installs missing software that the tests need.
//!
//! The task requires Rust and access to the crates registry. If the task cannot install other software, the task prints
//! a message and does not fail.

use std::process::Command;

use crate::tools::{Outcome, cargo, debian_packages, works};
use crate::{clients, console, databases, java, proxies, servers};

/// The name of a Debian package, and a function that tests whether the content of the package is installed.
type Package = (&'static str, fn() -> bool);

const PACKAGES: [Package; 11] = [
    // libFuzzer needs a C++ compiler. zstd and the linker need the C compiler, which `g++` also installs.
    ("g++", || works(&mut Command::new("c++"))),
    // The build generates the bindings of the module from C headers, which requires libclang. The build and the
    // documentation cover the whole workspace, so all contributors need libclang.
    ("libclang-dev", has_libclang),
    ("redis-server", || works(&mut Command::new("redis-server"))),
    ("redis-tools", || works(&mut Command::new("redis-benchmark"))),
    ("mariadb-server-core", databases::has_mariadb),
    // The script that creates a database folder calls `my_print_defaults` of this package.
    ("mariadb-client-core", || works(&mut Command::new("my_print_defaults"))),
    ("postgresql", databases::has_postgres),
    ("chromium", console::has_chromium),
    // Debian's Chromium package does not require fonts. Without a font, Chromium shows no text.
    ("fonts-liberation", has_fonts),
    ("openjdk-17-jdk-headless", java::has_jdk),
    ("libguava-java", java::has_guava),
];

/// Installs all missing software.
pub fn run() -> Outcome {
    tools()?;
    clients()
}

/// Installs missing components of Rust and missing Debian packages. Installs all Debian packages with one call.
pub fn tools() -> Outcome {
    for component in ["rustfmt", "clippy"] {
        let tool = component.trim_start_matches("rust");
        if !works(&mut cargo(&[tool])) {
            println!("installing {component}");
            // The command fails without a network or without rustup. Then the tests skip the steps that need the
            // component.
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
    // If one package does not exist, `apt-get` installs no package of the call. So this loop installs each package
    // separately. The tests skip the steps that need a missing package, except the build.
    for name in &missing {
        if let Err(why) = debian_packages(&[name]) {
            println!("{why}");
        }
    }
    Ok(())
}

/// Prints the reason if an installation failed.
fn report(loss: &str, installed: Outcome) {
    if let Err(why) = installed {
        println!("{loss}: {why}");
    }
}

/// Installs the npm and Python packages that the tests use. If the task cannot install a package, the task prints a
/// message, and the tests skip the steps that need the package.
pub fn clients() -> Outcome {
    report("the console tests are skipped", console::prepare());
    report("the tests with redis-py are skipped", clients::python().map(drop));
    report("the tests with node-redis are skipped", clients::node());
    report("the tests with redis-cli are skipped", clients::debian());
    report("the tests with Java are skipped", java::installed());
    report("the tests of the module and of filters in bitmaps are skipped", servers::installed());
    report("the tests of the guard beside other proxies are skipped", proxies::installed());
    Ok(())
}

/// Tests whether libclang is in a folder where the generator of the bindings searches. The file name without a version
/// belongs to the package that also contains the compiler's headers.
fn has_libclang() -> bool {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    std::env::var_os("LIBCLANG_PATH").is_some()
        || folders.map(|folder| folder.path()).any(|path| path.join("lib/libclang.so").exists())
}

/// Tests whether a TrueType font is installed.
fn has_fonts() -> bool {
    std::fs::read_dir("/usr/share/fonts/truetype").is_ok_and(|mut fonts| fonts.next().is_some())
}
