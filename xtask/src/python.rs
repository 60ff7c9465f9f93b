//! Creates Python environments in `target`, and installs packages from PyPI.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tools::{Outcome, root};

/// Creates a Python environment in `target/FOLDER` if the environment does not exist. Returns the
/// path of the Python interpreter.
///
/// # Errors
///
/// Returns the reason why the environment could not be created.
pub fn environment(folder: &str) -> Result<PathBuf, String> {
    let folder = root().join("target").join(folder);
    let python = folder.join("bin/python");
    if works_quietly(Command::new(&python).arg("--version"))
        || works_quietly(Command::new("python3").args(["-m", "venv"]).arg(&folder))
    {
        Ok(python)
    } else {
        Err("python3 makes no environment: install python3-venv".to_owned())
    }
}

/// Installs the tools that build and check packages, and returns the folder of their programs.
///
/// # Errors
///
/// Returns the reason why the installation failed.
pub fn packaging_tools() -> Result<PathBuf, String> {
    let python = environment("package/tools")?;
    install(&python, &["-r", "packaging/requirements.txt"])?;
    Ok(python.parent().expect("an interpreter has a folder").to_owned())
}

/// Runs `pip install` with these arguments. `pip` skips packages that are already installed.
///
/// # Errors
///
/// Returns an error message if `pip` fails.
pub fn install(python: &Path, words: &[&str]) -> Outcome {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(words);
    let installed = works_quietly(pip.current_dir(root()));
    if installed { Ok(()) } else { Err(format!("pip could not install {}", words.join(" "))) }
}

/// Tests whether a command succeeds, and discards the output of the command.
pub fn works_quietly(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
