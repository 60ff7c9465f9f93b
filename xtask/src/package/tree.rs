//! Creates the tree of files that the tar file contains. The other packages take their files from the tree.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::package::dependencies::Dependency;
use crate::package::programs::Programs;
use crate::package::version::Release;
use crate::package::{licences, sbom};
use crate::steps::Steps;
use crate::tools::{Outcome, copy_file, entries, root, write_file};

/// Creates the tree in the folder `work`, and returns the path of the tree.
///
/// # Errors
///
/// Returns the file that cannot be written, or the output of a command that failed.
pub fn create(
    steps: &Steps,
    release: &Release,
    programs: &Programs,
    dependencies: &[Dependency],
    work: &Path,
) -> Result<PathBuf, String> {
    let tree = work.join(release.name());
    copy_file(&programs.tamis, &tree.join("bin/tamis"))?;
    copy_file(&programs.module, &tree.join("lib/libtamis.so"))?;
    manual(steps, &programs.tamis, &tree)?;
    for (shell, path) in COMPLETIONS {
        let mut tamis = Command::new(&programs.tamis);
        let script = steps.finish_quietly(tamis.args(["completions", shell]))?;
        write_file(&tree.join(path), script)?;
    }
    let doc = tree.join("share/doc/tamis");
    for name in ["README.md", "README.zh-CN.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy_file(&root().join(name), &doc.join(name))?;
    }
    copy_file(&root().join("CHANGELOG.md"), &doc.join("changelog"))?;
    write_file(&doc.join("copyright"), COPYRIGHT)?;
    write_file(&doc.join("licenses.txt"), licences::text(dependencies)?)?;
    write_file(&doc.join("sbom.cdx.json"), sbom::json(release, dependencies))?;
    let mut gzip = Command::new("gzip");
    steps.finish_quietly(gzip.arg("-9n").args(["changelog", "licenses.txt"]).current_dir(&doc))?;
    let linux = root().join("packaging").join("linux");
    let share = tree.join("share/tamis");
    for name in ["tamis.service", "tamis-guard.service"] {
        copy_file(&linux.join(name), &share.join("systemd").join(name))?;
    }
    for name in ["serve.toml", "redis-module.conf"] {
        copy_file(&linux.join(name), &share.join("etc").join(name))?;
    }
    let mut example = Command::new(&programs.tamis);
    let example = steps.finish_quietly(example.args(["guard", "example"]))?;
    write_file(&share.join("etc/guard.toml"), example)?;
    set_dates(steps, release, &tree)?;
    Ok(tree)
}

/// The shells with completions, and the place of each script in the tree.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/tamis"),
    ("zsh", "share/zsh/site-functions/_tamis"),
    ("fish", "share/fish/vendor_completions.d/tamis.fish"),
];

/// The copyright file of Debian packages.
const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tamis
Comment: licenses.txt.gz has the licences of all crates in the program.

Files: *
Copyright: The Tamis developers
License: MIT or Apache-2.0
 The file /usr/share/common-licenses/Apache-2.0 has the Apache License 2.0. The file licenses.txt.gz has the MIT
 License.
";

/// Writes the manual pages.
fn manual(steps: &Steps, tamis: &Path, tree: &Path) -> Outcome {
    let folder = tree.join("share/man/man1");
    steps.finish_quietly(Command::new(tamis).arg("man").arg(&folder))?;
    let mut gzip = Command::new("gzip");
    steps.finish_quietly(gzip.arg("-9n").args(entries(&folder)?)).map(drop)
}

/// Sets the date of all files, because some packages store the dates.
pub fn set_dates(steps: &Steps, release: &Release, tree: &Path) -> Outcome {
    let mut find = Command::new("find");
    find.arg(tree).args(["-exec", "touch", "--no-dereference"]);
    find.arg(format!("--date=@{}", release.epoch)).args(["{}", "+"]);
    steps.finish_quietly(&mut find).map(drop)
}
