//! Packages the crates for crates.io, and compiles the crates from their packages.

mod published;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use published::{Crate, published};

use crate::steps::Steps;
use crate::tools::{
    Outcome, cargo, copy_file, empty_folder, remove_package_variables, root, works, write_file,
};

/// The crates without a stable interface: each version may change the interface.
const WITHOUT_INTERFACE: [&str; 2] = ["tamis-cli", "tamis-console"];

/// Writes the package of each published crate to `target/packages/crates`, and prints the order of publication. Returns the
/// crates in this order.
///
/// # Errors
///
/// Returns the problems of all manifests, or the output of cargo.
pub fn write_all(steps: &Steps) -> Result<Vec<Crate>, String> {
    let crates = published(steps)?;
    let problems: Vec<_> = crates.iter().flat_map(Crate::problems).collect();
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    // A developer may package an unfinished change. The task `release` rejects this change.
    let mut package = cargo(&["package", "--no-verify", "--allow-dirty", "--target-dir"]);
    package.arg(work());
    for it in &crates {
        package.args(["-p", &it.name]);
    }
    steps.finish_quietly(&mut package)?;
    empty_folder(&folder())?;
    for name in crates.iter().map(Crate::file_name) {
        copy_file(&work().join("package").join(&name), &folder().join(&name))?;
    }
    let names: Vec<_> = crates.iter().map(|it| it.name.as_str()).collect();
    println!("order of publication: {}", names.join(", "));
    Ok(crates)
}

/// Compiles the crates from their packages, and compares their interfaces with the last release.
///
/// # Errors
///
/// Returns the output of the command that failed.
pub fn check(steps: &Steps, crates: &[Crate]) -> Outcome {
    steps.check("crates from their packages", || {
        compile(steps, crates, env!("CARGO_PKG_VERSION"))
    })?;
    interfaces(steps, crates)
}

/// Compiles all crates from their packages, with all features, as the version `version`. Returns the path of the program
/// without symbols.
///
/// `cargo package` would compile each crate alone, and most dependencies once for each crate. One workspace of all
/// packages takes a fraction of this time. The program is not optimized.
///
/// # Errors
///
/// Returns the output of the command that failed.
pub fn compile(steps: &Steps, crates: &[Crate], version: &str) -> Result<PathBuf, String> {
    let sources = work().join(version);
    empty_folder(&sources)?;
    for it in crates {
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(folder().join(it.file_name())).arg("-C").arg(&sources);
        steps.finish_quietly(&mut tar)?;
        set_version(&sources.join(format!("{}-{}/Cargo.toml", it.name, it.version)), version)?;
    }
    write_file(&sources.join("Cargo.toml"), workspace(crates))?;
    copy_file(&root().join("Cargo.lock"), &sources.join("Cargo.lock"))?;
    let target = work().join("target");
    let mut build = Command::new(env!("CARGO"));
    remove_package_variables(&mut build);
    build.args(["build", "--quiet", "--workspace", "--all-features", "--target-dir"]).arg(&target);
    build.env("CARGO_INCREMENTAL", "0").current_dir(&sources);
    steps.finish_quietly(&mut build)?;
    let program = sources.join("tamis");
    let mut strip = Command::new("strip");
    steps.finish_quietly(strip.arg("-o").arg(&program).arg(target.join("debug/tamis")))?;
    let printed = steps.finish_quietly(Command::new(&program).arg("--version"))?;
    if printed == format!("tamis {version}\n") {
        Ok(program)
    } else {
        Err(format!("the program printed {printed:?} instead of the version {version}"))
    }
}

/// Changes the version of a package, and of the packages of this project that the package uses.
fn set_version(manifest: &Path, version: &str) -> Outcome {
    let text = std::fs::read_to_string(manifest)
        .map_err(|error| format!("{}: {error}", manifest.display()))?;
    let own = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
    write_file(manifest, text.replace(&own, &format!("version = \"{version}\"")))
}

/// Returns the manifest of a workspace in which the crates use each other's packages.
fn workspace(crates: &[Crate]) -> String {
    let mut text = String::from("[workspace]\nresolver = \"3\"\nmembers = [\"*-*\"]\n\n");
    text.push_str("[profile.dev]\nopt-level = 0\ndebug = false\n\n[patch.crates-io]\n");
    for it in crates {
        text.push_str(&format!("{0} = {{ path = \"{0}-{1}\" }}\n", it.name, it.version));
    }
    text
}

/// Compares the interfaces of the crates with the last tag of a release. cargo-semver-checks reports changes that the new
/// version does not allow.
fn interfaces(steps: &Steps, crates: &[Crate]) -> Outcome {
    const NAME: &str = "interfaces of the crates";
    let mut git = Command::new("git");
    git.args(["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]).current_dir(root());
    let Ok(tag) = steps.finish_quietly(&mut git) else {
        steps.skip(NAME, "there is no tag of a release");
        return Ok(());
    };
    if !works(&mut cargo(&["semver-checks"])) {
        let mut install = cargo(&["install", "--quiet", "--locked", "cargo-semver-checks"]);
        steps.run("installation of cargo-semver-checks", &mut install)?;
    }
    let mut check = cargo(&["semver-checks", "--baseline-rev", tag.trim()]);
    for it in crates.iter().filter(|it| !WITHOUT_INTERFACE.contains(&it.name.as_str())) {
        check.args(["-p", &it.name]);
    }
    steps.run(NAME, &mut check)
}

/// Returns the folder of the packages.
fn folder() -> PathBuf {
    root().join("target/packages/crates")
}

/// Returns the folder for the intermediate files.
fn work() -> PathBuf {
    root().join("target/package/crates")
}
