//! `cargo xtask package`: builds the packages of a release in `target/packages`. With `--check`, installs each package on
//! a clean system and uses it.
//!
//! All packages have the same program, which needs only glibc 2.17 (from 2012). Two runs give equal bytes.

mod check;
pub mod crates;
mod dependencies;
mod image;
mod licences;
pub mod linux;
pub mod npm;
mod packager;
pub mod programs;
mod sbom;
mod tarball;
mod tree;
mod version;

use std::path::Path;
use std::time::Duration;

use crate::args;
use crate::package::check::Systems;
use crate::package::image::DebianPackages;
use crate::package::packager::Packager;
use crate::package::version::Release;
use crate::python;
use crate::site;
use crate::steps::Steps;
use crate::tools::{Outcome, empty_folder, files, require_linux, root};
use crate::zig::Zig;

/// The time limit of one command. The slowest command is the build of the program.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Builds all packages. With `--check`, also tests the packages.
pub fn run(words: &[&str]) -> Outcome {
    let is_check = args::has_check(words)?;
    require_linux("package", "cargo build --release -p tamis-cli")?;
    let steps = Steps::new(LIMIT);
    let release = Release::of_this_tree()?;
    let tools = steps.check("tools for the packages", python::packaging_tools)?;
    let zig = Zig::new(&tools)?;
    let debian =
        steps.check("Debian packages for the images", || DebianPackages::download(&steps))?;
    let site = site::build_site(&steps)?;
    let packager = Packager { release, tools, site, debian };
    let folder = root().join("target/packages");
    empty_folder(&folder)?;
    let (mut programs, mut crates, mut systems) = (None, None, None);
    // The linker of the programs uses only one core for minutes.
    steps.lanes(
        || {
            programs = Some(steps.check("programs", || programs::build(&steps, &zig))?);
            Ok(())
        },
        || {
            let written = steps.check("packages of the crates", || crates::write_all(&steps))?;
            if is_check {
                crates::check(&steps, &written)?;
                systems = Some(Systems::create(&steps)?);
            }
            crates = Some(written);
            Ok(())
        },
    )?;
    let (programs, crates) = (programs.expect("built"), crates.expect("written"));
    steps.check("packages", || packager.write_all(&steps, &programs, &folder))?;
    if let Some(systems) = systems {
        check::check(&steps, &packager, &programs, &crates, &systems, &folder)?;
    }
    steps.end();
    print!("{}", sizes(&folder)?);
    Ok(())
}

/// Returns a table of the files in a folder and their sizes.
fn sizes(folder: &Path) -> Result<String, String> {
    let mut text = String::new();
    for path in files(folder)? {
        let bytes = std::fs::metadata(&path).map_or(0, |data| data.len());
        let path = path.strip_prefix(root()).unwrap_or(&path);
        text.push_str(&format!("{:8.2} MB  {}\n", bytes as f64 / 1e6, path.display()));
    }
    Ok(text)
}
