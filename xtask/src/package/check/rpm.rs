//! Installs the RPM packages in an empty folder with `rpm --root`.

use std::path::Path;
use std::process::Command;

use crate::package::version::Release;
use crate::steps::Steps;
use crate::tools::{Outcome, empty_folder, entries_with, root};

/// Installs the packages, compares the files with the checksums in the packages, and removes the packages.
pub fn check(steps: &Steps, release: &Release, packages: &Path) -> Outcome {
    let folder = root().join("target/package/rpm");
    empty_folder(&folder)?;
    let files = entries_with(packages, "rpm")?;
    let rpm = |words: &[&str]| {
        let mut rpm = Command::new("rpm");
        rpm.arg("--root").arg(&folder).args(words);
        rpm
    };
    steps.check("rpm: installation, verification and removal", || {
        // The empty folder has no glibc and no shell for the scripts.
        let mut install = rpm(&["--install", "--nodeps", "--noscripts"]);
        steps.finish_quietly(install.args(&files))?;
        steps.finish_quietly(&mut rpm(&["--verify", "--nodeps", "tamis", "tamis-redis-module"]))?;
        let output =
            steps.finish_quietly(Command::new(folder.join("usr/bin/tamis")).arg("--version"))?;
        if output != format!("tamis {}\n", release.version) {
            return Err(format!("the installed program printed {output:?}"));
        }
        let needs =
            steps.finish_quietly(&mut rpm(&["--query", "--requires", "tamis-redis-module"]))?;
        if !needs.contains("redis >= 7.0") {
            return Err(format!("the module does not require a server: {needs}"));
        }
        let mut erase = rpm(&["--erase", "--nodeps", "--noscripts", "tamis", "tamis-redis-module"]);
        steps.finish_quietly(&mut erase)?;
        let left = folder.join("usr/bin/tamis");
        if left.exists() { Err(format!("{} is left", left.display())) } else { Ok(()) }
    })
}
