//! Builds the program and the module, and separates their debug symbols.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::Steps;
use crate::tools::{Outcome, empty_folder, root};
use crate::zig::{Zig, release_folder};

/// The built files without symbols.
#[derive(Clone)]
pub struct Programs {
    /// The program `tamis` with all commands.
    pub tamis: PathBuf,
    /// The program `tamis` without server, guard and network.
    pub small: PathBuf,
    /// The module for Redis and Valkey.
    pub module: PathBuf,
    /// The debug symbols of the program and of the module.
    pub symbols: [PathBuf; 2],
}

/// Builds the programs.
///
/// # Errors
///
/// Returns the output of the command that failed.
pub fn build(steps: &Steps, zig: &Zig) -> Result<Programs, String> {
    let folder = root().join("target/package/programs");
    empty_folder(&folder)?;
    // The next build replaces the small program.
    let small = small(steps, zig)?;
    let mut build = zig.build();
    steps.finish_quietly(build.args(["-p", "tamis-cli", "-p", "tamis-module"]))?;
    let (tamis, module) = (folder.join("tamis"), folder.join("libtamis.so"));
    let symbols = [folder.join("tamis.debug"), folder.join("libtamis.so.debug")];
    for (path, symbols) in [&tamis, &module].into_iter().zip(&symbols) {
        let built = release_folder().join(path.file_name().expect("a path of a file"));
        objcopy(steps, &["--only-keep-debug", "--compress-debug-sections"], &built, symbols)?;
        strip(steps, &built, path)?;
        objcopy(steps, &[&format!("--add-gnu-debuglink={}", symbols.display())], path, path)?;
    }
    Ok(Programs { tamis, small, module, symbols })
}

/// Builds the small program, without server, guard and network. Returns the path of a copy without symbols.
///
/// # Errors
///
/// Returns the output of the command that failed. Warnings are errors, because no other step of CI compiles the small
/// program.
pub fn small(steps: &Steps, zig: &Zig) -> Result<PathBuf, String> {
    let mut build = zig.build();
    let output = steps.finish_quietly(build.args(["-p", "tamis-cli", "--no-default-features"]))?;
    if output.contains("warning: ") {
        return Err(output);
    }
    let copy = root().join("target/package/small/tamis");
    strip(steps, &release_folder().join("tamis"), &copy)?;
    Ok(copy)
}

/// Copies a program without symbols.
fn strip(steps: &Steps, from: &Path, to: &Path) -> Outcome {
    let folder = to.parent().expect("a path of a file");
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    objcopy(steps, &["--strip-all"], from, to)
}

/// Copies a program with the options of `objcopy`.
fn objcopy(steps: &Steps, options: &[&str], from: &Path, to: &Path) -> Outcome {
    steps.finish_quietly(Command::new("objcopy").args(options).arg(from).arg(to)).map(drop)
}
