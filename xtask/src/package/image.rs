//! Writes the container images as OCI layouts in tar files. No daemon runs.

pub mod docs;
mod oci;
pub mod program;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use oci::USER;

use crate::steps::Steps;
use crate::tools::{Outcome, debian_packages, empty_folder, entries, root, works};

/// The Debian packages whose files are in the image `tamis`.
const PROGRAM: [&str; 3] = ["base-files", "ca-certificates", "libc6"];

/// The Debian packages whose files are in the image `tamis-docs`.
const DOCS: [&str; 1] = ["busybox-static"];

/// The folders with the Debian packages for the images.
pub struct DebianPackages {
    pub program: PathBuf,
    pub docs: PathBuf,
}

impl DebianPackages {
    /// Downloads the packages. Also installs umoci, which writes the images.
    ///
    /// # Errors
    ///
    /// Returns the output of apt-get.
    pub fn download(steps: &Steps) -> Result<Self, String> {
        if !works(&mut Command::new("umoci")) {
            debian_packages(&["umoci"])?;
        }
        let download = |name: &str, packages: &[&str]| {
            let folder = root().join("target/package/debian").join(name);
            empty_folder(&folder)?;
            let mut apt = Command::new("apt-get");
            // apt-get cannot change to its own user, because this user cannot write to the folder.
            apt.args(["-qq", "-o", "APT::Sandbox::User=root", "download"]).args(packages);
            steps.finish_quietly(apt.current_dir(&folder))?;
            Ok::<_, String>(folder)
        };
        Ok(Self { program: download("program", &PROGRAM)?, docs: download("docs", &DOCS)? })
    }
}

/// Unpacks all Debian packages in a folder to the folder `to`.
fn unpack(steps: &Steps, packages: &Path, to: &Path) -> Outcome {
    for package in entries(packages)? {
        let mut dpkg = Command::new("dpkg-deb");
        steps.finish_quietly(dpkg.arg("--extract").arg(package).arg(to))?;
    }
    Ok(())
}
