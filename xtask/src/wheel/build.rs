//! Builds the wheel and the source distribution.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::package::programs;
use crate::python;
use crate::steps::Steps;
use crate::tools::{empty_folder, entries_with, remove_package_variables, root};
use crate::zig::{Zig, triple};

/// The folder of the Python package, in the root of the project.
pub const PACKAGE: &str = "crates/tamis-python";

/// The folder in `target` for the environments of this task.
pub const FOLDER: &str = "wheel";

/// The built files.
pub struct Built {
    pub wheel: PathBuf,
    pub sdist: PathBuf,
    /// The program in the wheel.
    pub program: PathBuf,
    /// The folder with the programs of the tools, such as `maturin`.
    pub tools: PathBuf,
}

impl fmt::Display for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", size(&self.wheel), size(&self.sdist))
    }
}

/// Formats the path of a file, in the root of the project, and the size of the file.
fn size(path: &Path) -> String {
    let bytes = std::fs::metadata(path).map_or(0, |data| data.len());
    let path = path.strip_prefix(root()).unwrap_or(path);
    format!("{}: {:.2} MB", path.display(), bytes as f64 / 1e6)
}

/// Builds the source distribution, the program and the wheel.
///
/// # Errors
///
/// Returns the output of the command that failed.
pub fn build(steps: &Steps) -> Result<Built, String> {
    let tools = steps.check("tools for the packages", python::packaging_tools)?;
    let zig = Zig::new(&tools)?;
    let folder = root().join("target/wheels");
    empty_folder(&folder)?;
    // maturin finds no data folder here, so the source distribution has no program.
    steps.run("source distribution", &mut maturin(&tools, "sdist", &folder))?;
    let program = steps.check("small program", || programs::small(steps, &zig))?;
    let data = DataFolder::create(&program)?;
    let mut wheel = maturin(&tools, "build", &folder);
    zig.configure(&mut wheel);
    wheel.args(["--release", "--locked", "--compression-level", "9", "--target", &triple()]);
    // maturin names the wheel after these systems, and refuses an extension that needs a newer glibc.
    wheel.args(["--compatibility", "manylinux2014"]);
    steps.run("wheel", wheel.args(["--", "-C", &format!("link-arg={}", libgcc_s()?)]))?;
    drop(data);
    let find = |extension: &str| {
        let file = entries_with(&folder, extension)?.pop();
        file.ok_or_else(|| format!("maturin wrote no .{extension} to {}", folder.display()))
    };
    Ok(Built { wheel: find("whl")?, sdist: find("gz")?, program, tools })
}

/// Returns the path of the shared library `libgcc_s.so.1`, which unwinds stacks.
///
/// Without this library, zig links a copy of LLVM's libunwind into the extension. At its end, CPython before 3.14 stops
/// daemon threads by `pthread_exit`, which unwinds the stack by the library of the system. The frames of the extension
/// then called the copy with the data of the other library, and the process crashed.
fn libgcc_s() -> Result<String, String> {
    let asked = Command::new("cc").arg("-print-file-name=libgcc_s.so.1").output();
    let path = asked.map_err(|error| format!("cc: {error}"))?.stdout;
    let path = String::from_utf8_lossy(&path).trim_end().to_owned();
    // The compiler prints only the name if the compiler does not find the file.
    if Path::new(&path).is_absolute() { Ok(path) } else { Err("cc has no libgcc_s.so.1".into()) }
}

/// Returns a command of maturin that writes to the folder `out`.
fn maturin(tools: &Path, command: &str, out: &Path) -> Command {
    let mut maturin = Command::new(tools.join("maturin"));
    remove_package_variables(&mut maturin);
    maturin.current_dir(root().join(PACKAGE)).arg(command).arg("--out").arg(out);
    maturin
}

/// The folder beside `pyproject.toml` whose files maturin adds to the wheel. Dropping this value removes the folder.
///
/// The configuration cannot name a folder in `target`, because a build from the source distribution would fail without
/// the folder. maturin searches for a folder with this name if the configuration names no folder.
struct DataFolder(PathBuf);

impl DataFolder {
    /// Creates the folder with the program in `scripts`. pip installs these files in a folder of the search path.
    fn create(program: &Path) -> Result<Self, String> {
        let folder = Self(root().join(PACKAGE).join("tamis._tamis.data"));
        empty_folder(&folder.0.join("scripts"))?;
        let copy = folder.0.join("scripts/tamis");
        std::fs::copy(program, copy).map_err(|error| format!("{}: {error}", program.display()))?;
        Ok(folder)
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}
