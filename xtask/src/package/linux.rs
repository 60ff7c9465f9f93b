//! Writes packages for Debian and RPM from the same descriptions, with nfpm.

use std::path::Path;
use std::process::Command;

use crate::package::version::Release;
use crate::steps::Steps;
use crate::tools::{Outcome, copy_file, debian_architecture, root};

/// The maintainer in the packages.
const MAINTAINER: &str = "The Tamis developers <tamis@localhost>";

/// The names of the packages. Each package has a description `packaging/linux/NAME.yaml`.
pub const PACKAGES: [&str; 2] = ["tamis", "tamis-redis-module"];

/// The scripts that run at installation and removal.
const SCRIPTS: [&str; 3] = ["postinstall.sh", "preremove.sh", "postremove.sh"];

/// Writes the Debian and RPM packages of a release.
pub struct Nfpm<'a> {
    pub release: &'a Release,
    /// The folder with the program `nfpm`.
    pub tools: &'a Path,
    /// The tree with the built files. The paths in the descriptions are relative to the tree.
    pub tree: &'a Path,
}

impl Nfpm<'_> {
    /// Writes the package `name` in the format `deb` or `rpm` to a folder.
    ///
    /// # Errors
    ///
    /// Returns the output of nfpm.
    pub fn write(&self, steps: &Steps, name: &str, format: &str, to: &Path) -> Outcome {
        let descriptions = root().join("packaging/linux");
        // nfpm reads the scripts from a path relative to the tree.
        for script in SCRIPTS {
            let copy = self.tree.with_file_name("scripts").join(script);
            copy_file(&descriptions.join(script), &copy)?;
        }
        let mut nfpm = Command::new(self.tools.join("nfpm"));
        self.release.configure(&mut nfpm);
        nfpm.env("TAMIS_VERSION", &self.release.version);
        nfpm.env("TAMIS_ARCH", debian_architecture()).env("TAMIS_MAINTAINER", MAINTAINER);
        nfpm.args(["package", "--packager", format, "--config"]);
        nfpm.arg(descriptions.join(format!("{name}.yaml"))).arg("--target").arg(to);
        steps.finish_quietly(nfpm.current_dir(self.tree)).map(drop)
    }
}
