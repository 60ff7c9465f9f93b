//! Builds release programs for old Linux systems: zig compiles the C code, and links with the symbols of glibc 2.17.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::{cargo, root};

/// The oldest glibc on which the programs run. Version 2.17 is from 2012.
pub const GLIBC: (u32, u32) = (2, 17);

/// The compiler and linker of zig, as environment variables for cargo and maturin.
///
/// All release builds use the same variables and the same folder of cargo, so the builds share the compiled
/// dependencies.
pub struct Zig {
    variables: Vec<(String, String)>,
}

impl Zig {
    /// Writes scripts that call zig. `tools` is a folder with the programs `python` and `cargo-zigbuild`, and with the
    /// Python package `ziglang`.
    ///
    /// # Errors
    ///
    /// Returns why a script cannot be written.
    pub fn new(tools: &Path) -> Result<Self, String> {
        let scripts = root().join("target/zig");
        std::fs::create_dir_all(&scripts)
            .map_err(|error| format!("{}: {error}", scripts.display()))?;
        let (major, minor) = GLIBC;
        let cpu = std::env::consts::ARCH;
        let target = format!(" -- -fno-sanitize=all -target {cpu}-linux-gnu.{major}.{minor}");
        let script = |name: &str, options: &str| script(&scripts, tools, name, options);
        let (c, cpp) = (script("cc", &target)?, script("c++", &target)?);
        let suffix = triple().replace('-', "_");
        let variables = vec![
            (format!("CARGO_TARGET_{}_LINKER", suffix.to_uppercase()), c.clone()),
            (format!("CC_{suffix}"), c),
            (format!("CXX_{suffix}"), cpp),
            (format!("AR_{suffix}"), script("ar", " --")?),
            (format!("RANLIB_{suffix}"), script("ranlib", " --")?),
            ("CARGO_ENCODED_RUSTFLAGS".to_owned(), remapped_paths()),
        ];
        Ok(Self { variables })
    }

    /// Sets the environment variables of a command.
    pub fn configure(&self, command: &mut Command) {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }

    /// Returns a command that builds with the release profile. The caller adds the packages.
    pub fn build(&self) -> Command {
        let mut build = cargo(&["build", "--release", "--locked", "--target", &triple()]);
        self.configure(&mut build);
        build
    }
}

/// Returns the target triple of the release builds.
pub fn triple() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Returns the folder in which cargo writes the programs.
pub fn release_folder() -> PathBuf {
    root().join("target").join(triple()).join("release")
}

/// Returns compiler flags that replace the paths of this machine in panic messages and debug information. Builds in two
/// folders therefore give the same bytes.
fn remapped_paths() -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let root = root().display();
    // A byte 31 separates the flags.
    format!(
        "--remap-path-prefix={cargo}/registry/src=/registry\u{1f}--remap-path-prefix={root}=/tamis"
    )
}

/// Writes a script that runs a command of `cargo-zigbuild zig` with options, and returns the path of the script.
///
/// `cargo-zigbuild zig` removes the options of rustc that zig does not know. cargo compiles all dependencies again if the
/// path of the script changes.
fn script(folder: &Path, tools: &Path, name: &str, options: &str) -> Result<String, String> {
    let path = folder.join(name);
    let tools = tools.display();
    let text = format!(
        "#!/bin/sh\n\
         export CARGO_ZIGBUILD_ZIG_COMMAND='{tools}/python'\n\
         export CARGO_ZIGBUILD_ZIG_COMMAND_ARGS='-m ziglang'\n\
         exec '{tools}/cargo-zigbuild' zig {name}{options} \"$@\"\n"
    );
    let written = std::fs::write(&path, text)
        .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.display().to_string())
}
