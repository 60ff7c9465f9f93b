//! Writes the Debian package of an older version, from which the tests upgrade.

use std::path::PathBuf;

use crate::package::crates::{self, Crate};
use crate::package::linux::Nfpm;
use crate::package::packager::Packager;
use crate::package::programs::Programs;
use crate::package::version::Release;
use crate::package::{dependencies, tree};
use crate::steps::Steps;
use crate::tools::{empty_folder, entries, root};

/// The version of the older package.
const VERSION: &str = "0.0.9";

/// Returns the folder of the package. Systems see this folder as `/older`.
pub fn folder() -> PathBuf {
    root().join("target/package/older/package")
}

/// Builds this tree as version 0.0.9, and returns the path of the package inside a system.
///
/// # Errors
///
/// Returns the output of a command that failed.
pub fn write(
    steps: &Steps,
    packager: &Packager,
    programs: &Programs,
    crates: &[Crate],
) -> Result<String, String> {
    let tamis = crates::compile(steps, crates, VERSION)?;
    let release = Release { version: VERSION.to_owned(), epoch: packager.release.epoch };
    let programs = Programs { tamis, ..programs.clone() };
    let work = root().join("target/package/older");
    empty_folder(&work)?;
    let dependencies = dependencies::of(steps, &["tamis-cli"])?;
    let tree = tree::create(steps, &release, &programs, &dependencies, &work)?;
    empty_folder(&folder())?;
    let nfpm = Nfpm { release: &release, tools: &packager.tools, tree: &tree };
    nfpm.write(steps, "tamis", "deb", &folder())?;
    let packages = entries(&folder())?;
    let name = packages.first().and_then(|path| path.file_name()).unwrap_or_default();
    Ok(format!("/older/{}", name.to_string_lossy()))
}
