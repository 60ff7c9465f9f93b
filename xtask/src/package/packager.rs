//! Writes all packages of a release and their checksums.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::package::image::{self, DebianPackages};
use crate::package::linux::{self, Nfpm};
use crate::package::programs::Programs;
use crate::package::version::Release;
use crate::package::{dependencies, npm, tarball, tree};
use crate::steps::Steps;
use crate::tools::{Outcome, copy_file, empty_folder, files, root, write_file};

/// Writes the packages of a release. The fields are the inputs that do not change between two runs.
pub struct Packager {
    pub release: Release,
    /// The folder with the tools, such as `nfpm`.
    pub tools: PathBuf,
    /// The folder with the documentation site.
    pub site: PathBuf,
    /// The Debian packages for the images.
    pub debian: DebianPackages,
}

impl Packager {
    /// Writes all packages and their checksums to a folder.
    ///
    /// # Errors
    ///
    /// Returns the output of the command that failed.
    pub fn write_all(&self, steps: &Steps, programs: &Programs, folder: &Path) -> Outcome {
        let dependencies = dependencies::of(steps, &["tamis-cli", "tamis-module"])?;
        let work = root().join("target/package/work");
        empty_folder(&work)?;
        let tree = tree::create(steps, &self.release, programs, &dependencies, &work)?;
        tarball::write(steps, &self.release, &tree, folder)?;
        tarball::write_symbols(steps, &self.release, programs, &work, folder)?;
        let nfpm = Nfpm { release: &self.release, tools: &self.tools, tree: &tree };
        for name in linux::PACKAGES {
            nfpm.write(steps, name, "deb", folder)?;
            nfpm.write(steps, name, "rpm", folder)?;
        }
        image::program::write(steps, &self.release, &tree, &self.debian.program, &work, folder)?;
        image::docs::write(steps, &self.release, &self.site, &self.debian.docs, &work, folder)?;
        npm::write_both(steps, &self.release, &programs.tamis, &work, folder)?;
        let sbom = format!("{}.cdx.json", self.release.name());
        copy_file(&tree.join("share/doc/tamis/sbom.cdx.json"), &folder.join(sbom))?;
        checksums(steps, folder)
    }
}

/// Writes the file `SHA256SUMS` for all files in a folder.
fn checksums(steps: &Steps, folder: &Path) -> Outcome {
    let mut sum = Command::new("sha256sum");
    let files = files(folder)?;
    sum.args(files.iter().filter_map(|path| path.file_name())).current_dir(folder);
    let text = steps.finish_quietly(&mut sum)?;
    write_file(&folder.join("SHA256SUMS"), &text)
}
