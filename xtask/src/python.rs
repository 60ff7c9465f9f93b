//! Environments of Python in `target`, with packages of PyPI.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Outcome, root};

/// Makes sure that there is an environment in this folder of `target`, and returns its Python.
///
/// # Errors
///
/// Why there is none.
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

/// Installs what pip is told by these words, unless it is there.
///
/// # Errors
///
/// If pip could not.
pub fn install(python: &Path, words: &[&str]) -> Outcome {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(words);
    let installed = works_quietly(pip.current_dir(root()));
    if installed { Ok(()) } else { Err(format!("pip could not install {}", words.join(" "))) }
}

/// Tells whether a command succeeds, whatever it says.
pub fn works_quietly(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
