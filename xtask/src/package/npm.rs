//! Writes the npm package `tamis`, and the package with the program for this system.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::package::version::Release;
use crate::steps::Steps;
use crate::tools::{Outcome, copy_file, read_text, root, write_file};

/// The start of the names of the packages with the program. npm installs only the package that fits the system.
const SCOPE: &str = "@tamis-filter";

/// The systems for which the package `tamis` names a package with the program.
const SYSTEMS: [&str; 2] = ["linux-x64", "linux-arm64"];

/// Writes both packages to a folder. `tamis` is the program without symbols.
///
/// # Errors
///
/// Returns the file that cannot be read, or the output of npm.
pub fn write_both(
    steps: &Steps,
    release: &Release,
    tamis: &Path,
    work: &Path,
    to: &Path,
) -> Outcome {
    let sources = root().join("packaging").join("npm");
    let text = read_text(&sources.join("package.json"))?;
    let mut main: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    main["version"] = json!(release.version);
    main["optionalDependencies"] = SYSTEMS
        .iter()
        .map(|system| (format!("{SCOPE}/{system}"), json!(release.version)))
        .collect();
    let cpu = cpu();
    let program = json!({
        "name": format!("{SCOPE}/linux-{cpu}"),
        "version": release.version,
        "description": format!("The program of the package tamis for Linux on {cpu}"),
        "license": main["license"],
        "author": main["author"],
        "os": ["linux"],
        "cpu": [cpu],
        "libc": ["glibc"],
        // Yarn must not keep the program in a zip file.
        "preferUnplugged": true,
        "files": ["bin", "LICENSE-APACHE", "LICENSE-MIT"],
    });
    let (main_folder, program_folder) = (work.join("npm-tamis"), work.join("npm-program"));
    copy_file(&sources.join("bin/tamis.js"), &main_folder.join("bin/tamis.js"))?;
    copy_file(&sources.join("README.md"), &main_folder.join("README.md"))?;
    copy_file(tamis, &program_folder.join("bin/tamis"))?;
    for (folder, manifest) in [(main_folder, main), (program_folder, program)] {
        pack(steps, release, &folder, &manifest, to)?;
    }
    Ok(())
}

/// Returns the name of this CPU in npm.
pub fn cpu() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" }
}

/// Writes the package in a folder.
fn pack(steps: &Steps, release: &Release, folder: &Path, manifest: &Value, to: &Path) -> Outcome {
    let text = serde_json::to_string_pretty(manifest).expect("a manifest is JSON");
    write_file(&folder.join("package.json"), text + "\n")?;
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy_file(&root().join(name), &folder.join(name))?;
    }
    let mut npm = Command::new("npm");
    release.configure(&mut npm);
    npm.args(["pack", "--silent", "--ignore-scripts", "--pack-destination"]).arg(to);
    steps.finish_quietly(npm.current_dir(folder)).map(drop)
}
