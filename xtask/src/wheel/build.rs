//! Builds the wheel and the source distribution.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python;
use crate::steps::Steps;
use crate::tools::{Outcome, entries, remove_package_variables, root};

/// The folder of the Python package, in the root of the project.
pub const PACKAGE: &str = "crates/tamis-python";

/// The folder in `target` for the environments and the files of this task.
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
    let tools = steps.check("tools for the wheel", || {
        let python = python::environment(&format!("{FOLDER}/tools"))?;
        python::install(&python, &["-r", "tests/wheel/requirements.txt"])?;
        Ok(python.parent().expect("an interpreter has a folder").to_owned())
    })?;
    let folder = root().join("target/wheels");
    empty(&folder)?;
    // maturin finds no data folder here, so the source distribution has no program.
    steps.run("source distribution", &mut maturin(&tools, "sdist", &folder))?;
    let program = steps.check("program", || program(steps, &tools))?;
    let data = DataFolder::create(&program)?;
    let mut wheel = maturin(&tools, "build", &folder);
    wheel.args(["--compression-level", "9"]).args(OPTIONS);
    steps.run("wheel", wheel.args(["--", "-C", &format!("link-arg={}", libgcc_s()?)]))?;
    drop(data);
    let files = entries(&folder)?;
    let find = |ending: &str| {
        let file = files.iter().find(|path| path.to_string_lossy().ends_with(ending));
        file.cloned().ok_or_else(|| format!("maturin wrote no {ending} to {}", folder.display()))
    };
    Ok(Built { wheel: find(".whl")?, sdist: find(".tar.gz")?, program, tools })
}

/// The options of the builds of the program and of the extension. With the same options, both builds use the same
/// dependencies.
const OPTIONS: [&str; 5] = ["--release", "--locked", "--zig", "--compatibility", "manylinux2014"];

/// Builds the program `tamis` without the server, and returns the path of the program.
///
/// maturin builds the program, because cargo-zigbuild would link with a script at another path. cargo compiles all
/// dependencies again if this path changes.
fn program(steps: &Steps, tools: &Path) -> Result<PathBuf, String> {
    let mut build = maturin(tools, "build", &root().join("target").join(FOLDER).join("program"));
    build.args(OPTIONS).args(["--bindings", "bin", "--no-default-features", "--manifest-path"]);
    build.arg(root().join("crates/tamis-cli/Cargo.toml"));
    let output = steps.finish_quietly(&mut build)?;
    // No other step of CI compiles the program without the server.
    if output.contains("warning: ") {
        return Err(output);
    }
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    Ok(root().join("target").join(target).join("release/tamis"))
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

/// Returns a command of maturin that writes to the folder `out`. The builds have no debug information.
///
/// The search path starts with the tools, because maturin starts zig with the first Python of the search path.
fn maturin(tools: &Path, command: &str, out: &Path) -> Command {
    let mut maturin = Command::new(tools.join("maturin"));
    remove_package_variables(&mut maturin);
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let folders = [tools.to_owned()].into_iter().chain(std::env::split_paths(&rest));
    let path = std::env::join_paths(folders).expect("a folder of PATH has no colon");
    maturin.env("PATH", path).current_dir(root().join(PACKAGE));
    maturin.env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    maturin.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    maturin.arg(command).arg("--out").arg(out);
    maturin
}

/// Creates an empty folder. Removes the old content of the folder.
pub fn empty(folder: &Path) -> Outcome {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(fail)?;
    }
    std::fs::create_dir_all(folder).map_err(fail)
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
        empty(&folder.0.join("scripts"))?;
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
