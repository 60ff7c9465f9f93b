//! Writes tar files with equal bytes in each run.

use std::path::Path;
use std::process::Command;

use crate::package::programs::Programs;
use crate::package::version::Release;
use crate::steps::Steps;
use crate::tools::{Outcome, copy_file};

/// Writes the tar file with the tree of a release.
pub fn write(steps: &Steps, release: &Release, tree: &Path, folder: &Path) -> Outcome {
    let parent = tree.parent().expect("the tree has a parent folder");
    let to = folder.join(format!("{}.tar.gz", release.name()));
    tar(steps, release, parent, &[&release.name()], &to)
}

/// Writes the tar file with the debug symbols. A debugger searches for the symbols beside the program.
pub fn write_symbols(
    steps: &Steps,
    release: &Release,
    programs: &Programs,
    work: &Path,
    folder: &Path,
) -> Outcome {
    let name = format!("{}-debug", release.name());
    let tree = work.join(&name);
    for path in &programs.symbols {
        copy_file(path, &tree.join(path.file_name().expect("a path of a file")))?;
    }
    tar(steps, release, work, &[&name], &folder.join(format!("{name}.tar.gz")))
}

/// Writes files of a folder to a tar file, compressed if the name ends with `.gz`. The files belong to root, have the date
/// of the release, and are sorted by name.
///
/// # Errors
///
/// Returns the output of tar.
pub fn tar(steps: &Steps, release: &Release, parent: &Path, names: &[&str], to: &Path) -> Outcome {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=gnu", "--sort=name", "--owner=0", "--group=0"]);
    tar.args(["--numeric-owner", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{}", release.epoch));
    if to.extension().is_some_and(|extension| extension == "gz") {
        // gzip would store the current time without -n.
        tar.arg("--use-compress-program=gzip -9n");
    }
    tar.arg("--file").arg(to).arg("-C").arg(parent);
    steps.finish_quietly(tar.args(names)).map(drop)
}
