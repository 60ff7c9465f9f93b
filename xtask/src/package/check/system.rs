//! Creates clean Debian systems in folders. The tests install and use packages in these systems.
//!
//! `debootstrap` unpacks a minimal Debian without compiler and Rust. Each test runs in a new overlay of this Debian, in
//! its own namespaces: all changes and all processes of a test end with the test.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::package::check::older;
use crate::steps::Steps;
use crate::tools::{Outcome, empty_folder, root, write_file};

/// The address of Debian's archive.
const ARCHIVE: &str = "http://deb.debian.org/debian";

/// A clean Debian.
pub struct System {
    suite: &'static str,
    /// The folder of the overlays and of the unpacked Debian.
    folder: PathBuf,
}

/// The settings of one test.
#[derive(Clone, Copy, Default)]
pub struct Settings {
    /// Whether systemd starts as the first process, and starts the test as a service.
    pub is_booted: bool,
    /// The largest size of all changed files, such as `30m`. The default is 2 GiB.
    pub max_size: Option<&'static str>,
}

impl System {
    /// Unpacks a suite of Debian, such as `bookworm`, or reuses the system of an earlier run.
    ///
    /// # Errors
    ///
    /// Returns the output of debootstrap.
    pub fn create(steps: &Steps, suite: &'static str) -> Result<Self, String> {
        let folder = root().join("target/package/systems").join(suite);
        let (base, ready) = (folder.join("base"), folder.join("ready"));
        let system = Self { suite, folder };
        if ready.exists() {
            return Ok(system);
        }
        empty_folder(&base)?;
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", suite]).arg(&base).arg(ARCHIVE);
        steps.finish_quietly(&mut debootstrap)?;
        write_file(&ready, "")?;
        Ok(system)
    }

    /// Runs the script `tests/packages/SCRIPT.sh` in a new overlay of the system.
    ///
    /// The script sees the packages in `/packages`, and the folders `tests` and `packaging` of the project in `/project`.
    /// The script may use the network only to install packages.
    ///
    /// # Errors
    ///
    /// Returns the output of the script if the script fails.
    pub fn run(
        &self,
        steps: &Steps,
        packages: &Path,
        script: &str,
        arguments: &[&str],
        settings: Settings,
    ) -> Outcome {
        let mut unshare = Command::new("unshare");
        // Without propagation, no mount of the test is visible outside.
        unshare.args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "--ipc",
            "--uts",
        ]);
        unshare.arg("sh").arg(root().join("tests/packages/in_system.sh"));
        unshare.env("BASE", self.folder.join("base")).env("CACHE", self.cache()?);
        unshare.env("WORK", self.folder.join("overlay")).env("PACKAGES", packages);
        unshare
            .env("OLDER", older::folder())
            .env("PROJECT", root())
            .env("SIZE", settings.max_size.unwrap_or("2g"));
        unshare.env("BOOT", if settings.is_booted { "1" } else { "" });
        unshare.arg(format!("{script}.sh")).args(arguments);
        let name = [&[script], arguments].concat().join(" ");
        steps.run(&format!("{}: {name}", self.suite), &mut unshare)
    }

    /// Returns the folder with Debian packages that earlier tests downloaded.
    fn cache(&self) -> Result<PathBuf, String> {
        let cache = self.folder.join("cache");
        std::fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
        Ok(cache)
    }
}
