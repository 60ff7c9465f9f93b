//! Checks the packages: their sizes, their bytes in a second run, their manifests, and each package on a clean system.

mod container;
mod manifests;
mod npm;
mod older;
mod rpm;
mod system;

use std::path::Path;
use std::process::Command;

use crate::glibc;
use crate::package::check::system::{Settings, System};
use crate::package::crates::Crate;
use crate::package::packager::Packager;
use crate::package::programs::Programs;
use crate::steps::Steps;
use crate::tools::{Outcome, debian_packages, empty_folder, files, read_file, root, works};
use crate::zig::GLIBC;

/// The largest sizes of the programs, in bytes.
const MAX_PROGRAM_BYTES: u64 = 25_000_000;
const MAX_SMALL_BYTES: u64 = 8_000_000;

/// The clean systems, from the oldest to the newest.
pub struct Systems {
    bullseye: System,
    bookworm: System,
    trixie: System,
}

impl Systems {
    /// Installs the tools for the checks, and unpacks the clean systems.
    ///
    /// # Errors
    ///
    /// Returns the output of a command that failed.
    pub fn create(steps: &Steps) -> Result<Self, String> {
        steps.check("tools for the checks", install)?;
        let create = |suite| {
            steps.check(&format!("a clean Debian {suite}"), || System::create(steps, suite))
        };
        Ok(Self {
            bullseye: create("bullseye")?,
            bookworm: create("bookworm")?,
            trixie: create("trixie")?,
        })
    }
}

/// Runs all checks of the packages in a folder.
pub fn check(
    steps: &Steps,
    packager: &Packager,
    programs: &Programs,
    crates: &[Crate],
    systems: &Systems,
    folder: &Path,
) -> Outcome {
    steps.check("sizes and glibc of the programs", || check_programs(programs))?;
    steps.check("equal bytes in a second run", || {
        check_second_run(steps, packager, programs, folder)
    })?;
    manifests::check(steps, packager, folder)?;
    npm::check(steps, &packager.release, folder)?;
    container::check(steps, packager, folder)?;
    rpm::check(steps, &packager.release, folder)?;
    let older = steps
        .check("package of version 0.0.9", || older::write(steps, packager, programs, crates))?;
    let run = |system: &System, script: &str, arguments: &[&str]| {
        system.run(steps, folder, script, arguments, Settings::default())
    };
    let Systems { bullseye, bookworm, trixie } = systems;
    steps.lanes(
        || {
            run(bullseye, "tarball", &[])?;
            run(bullseye, "debian", &[])?;
            run(bullseye, "refused_module", &[])?;
            run(trixie, "debian", &[])?;
            run(trixie, "module", &["redis"])?;
            run(trixie, "module", &["valkey"])
        },
        || {
            let booted = Settings { is_booted: true, ..Settings::default() };
            bookworm.run(steps, folder, "services", &[&older], booted)?;
            run(bookworm, "module", &["redis"])?;
            run(bookworm, "guard", &[])?;
            run(bookworm, "side_by_side", &[&older])?;
            let small = Settings { max_size: Some("200m"), ..Settings::default() };
            bookworm.run(steps, folder, "full_disk", &[&older], small)
        },
    )
}

/// Installs the tools that unpack and start clean systems.
fn install() -> Outcome {
    const TOOLS: [(&str, &str); 4] = [
        ("runc", "runc"),
        ("debootstrap", "debootstrap"),
        ("systemd-nspawn", "systemd-container"),
        ("rpm", "rpm"),
    ];
    let missing: Vec<&str> = TOOLS
        .iter()
        .filter(|(program, _)| !works(&mut Command::new(program)))
        .map(|it| it.1)
        .collect();
    if missing.is_empty() { Ok(()) } else { debian_packages(&missing) }
}

/// Checks three properties of each program: the size, the version of glibc, and that no path of this machine is in the
/// program.
fn check_programs(programs: &Programs) -> Outcome {
    let own = root().display().to_string();
    for (path, limit) in [
        (&programs.tamis, MAX_PROGRAM_BYTES),
        (&programs.small, MAX_SMALL_BYTES),
        (&programs.module, MAX_SMALL_BYTES),
    ] {
        let name = path.display();
        let bytes = read_file(path)?;
        if bytes.len() as u64 > limit {
            return Err(format!("{name} has {} bytes, the limit is {limit}", bytes.len()));
        }
        match glibc::newest(&bytes) {
            Some(version) if version <= GLIBC => {}
            version => {
                return Err(format!("{name} needs glibc {version:?}, the limit is {GLIBC:?}"));
            }
        }
        if bytes.windows(own.len()).any(|part| part == own.as_bytes()) {
            return Err(format!("{name} contains the path {own}"));
        }
    }
    Ok(())
}

/// Writes all packages again and compares the bytes.
fn check_second_run(
    steps: &Steps,
    packager: &Packager,
    programs: &Programs,
    folder: &Path,
) -> Outcome {
    let second = root().join("target/package/again");
    empty_folder(&second)?;
    packager.write_all(steps, programs, &second)?;
    for path in files(folder)? {
        let name = path.file_name().expect("a path of a file");
        if read_file(&path)? != read_file(&second.join(name))? {
            return Err(format!("{} has other bytes after the second run", path.display()));
        }
    }
    empty_folder(&second)
}
