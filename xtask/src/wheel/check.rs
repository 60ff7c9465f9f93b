//! Installs the wheel and the source distribution in new environments, and tests both.
//!
//! One lane of steps tests the wheel. The other lane compiles the source distribution.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::glibc;
use crate::process;
use crate::python;
use crate::steps::Steps;
use crate::tools::{self, Outcome, empty_folder, read_file, remove_package_variables, root};
use crate::wheel::build::{Built, FOLDER, PACKAGE};
use crate::wheel::tags::{WheelName, platforms};
use crate::zig::GLIBC;

/// The largest size of the wheel, in bytes. Small wheels install fast, and PyPI has a quota for each project.
const MAX_WHEEL_BYTES: u64 = 8_000_000;

/// The largest size of the source distribution, in bytes.
const MAX_SDIST_BYTES: u64 = 2_000_000;

/// The time limit of a program that only prints a line.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs all checks of the wheel and of the source distribution.
pub fn check(steps: &Steps, built: &Built) -> Outcome {
    steps.check("names, sizes and glibc", || files(built))?;
    ruff(steps, built)?;
    steps.lanes(|| wheel(steps, built), || sdist(steps, built))
}

/// Checks the file name and the sizes, and that the program runs with an old glibc.
fn files(built: &Built) -> Outcome {
    let name = built.wheel.file_name().unwrap_or_default().to_string_lossy();
    let expected = platforms(std::env::consts::ARCH);
    let tags = WheelName::parse(&name).ok_or_else(|| format!("{name} is no name of a wheel"))?;
    let is_expected = (tags.python, tags.abi) == ("cp311", "abi3")
        && tags.platforms == expected.iter().map(String::as_str).collect();
    if !is_expected {
        return Err(format!(
            "{name} must have the tags cp311, abi3 and {}",
            expected.join(" and ")
        ));
    }
    for (path, limit) in [(&built.wheel, MAX_WHEEL_BYTES), (&built.sdist, MAX_SDIST_BYTES)] {
        let bytes = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
        if bytes > limit {
            return Err(format!("{} has {bytes} bytes, the limit is {limit}", path.display()));
        }
    }
    match glibc::newest(&read_file(&built.program)?) {
        Some(version) if version <= GLIBC => Ok(()),
        Some((major, minor)) => Err(format!(
            "the program needs glibc {major}.{minor}, and the limit is {}.{}",
            GLIBC.0, GLIBC.1
        )),
        None => Err("the program names no version of glibc".to_owned()),
    }
}

/// Checks the format and the lints of the Python code.
fn ruff(steps: &Steps, built: &Built) -> Outcome {
    let folders = ["python", "tests"].map(|name| root().join(PACKAGE).join(name));
    for (name, words) in [("lints", ["check"].as_slice()), ("format", &["format", "--check"])] {
        let mut ruff = command(built.tools.join("ruff"));
        ruff.args(words).arg("--no-cache").args(&folders);
        steps.run(&format!("{name} of the Python code"), &mut ruff)?;
    }
    Ok(())
}

/// Installs the wheel in a new environment and tests the installed package.
fn wheel(steps: &Steps, built: &Built) -> Outcome {
    let installed = steps.check("installation of the wheel", || {
        let mut wheel = built.wheel.clone().into_os_string();
        wheel.push("[test]");
        Installed::new(steps, "installed", &wheel.to_string_lossy())
    })?;
    steps.check("the program of the wheel", || program(steps, &installed))?;
    packaging(steps, built)?;
    types(steps, &installed)?;
    tests(steps, &installed)
}

/// Runs the tests of the package.
fn tests(steps: &Steps, installed: &Installed) -> Outcome {
    let package = root().join(PACKAGE);
    let mut pytest = installed.python(&["-m", "pytest", "-p", "no:cacheprovider", "-c"]);
    pytest.arg(package.join("pyproject.toml")).arg(package.join("tests"));
    pytest.env("TAMIS_PYRIGHT", "1");
    // The program of the wheel has no server.
    let server = tools::program();
    if server.exists() {
        pytest.env("TAMIS", server);
    } else {
        steps.skip(
            "tests with `tamis serve`",
            "run `cargo xtask test` first, which builds the server",
        );
    }
    steps.run("tests of the package", &mut pytest)
}

/// Checks the wheel and the source distribution with the tools of the Python packagers.
fn packaging(steps: &Steps, built: &Built) -> Outcome {
    let mut abi3audit = command(built.tools.join("abi3audit"));
    steps.run("abi3audit", abi3audit.arg("--strict").arg(&built.wheel))?;
    steps.check("auditwheel", || {
        let mut auditwheel = command(built.tools.join("auditwheel"));
        let report = steps.finish_quietly(auditwheel.arg("show").arg(&built.wheel))?;
        // auditwheel breaks the lines of the report.
        let text = report.split_whitespace().collect::<Vec<_>>().join(" ");
        let [platform, _] = platforms(std::env::consts::ARCH);
        let is_expected = text.contains(&format!("the following platform tag: \"{platform}\""));
        if is_expected { Ok(()) } else { Err(format!("the wheel is not {platform}:\n{report}")) }
    })?;
    let mut twine = command(built.tools.join("twine"));
    steps.run("twine", twine.args(["check", "--strict"]).arg(&built.wheel).arg(&built.sdist))
}

/// Checks the types of the installed package. The tests check the types of programs that use the package.
fn types(steps: &Steps, installed: &Installed) -> Outcome {
    let mut mypy = installed.python(&["-m", "mypy", "--strict", "--cache-dir", "mypy"]);
    steps.run("mypy", mypy.args(["-p", "tamis"]))?;
    let mut pyright = installed.python(&["-m", "pyright", "--pythonpath"]);
    steps.run("pyright", pyright.arg(&installed.python).arg(installed.package(steps)?))
}

/// Runs the program directly and with `python -m tamis`.
fn program(steps: &Steps, installed: &Installed) -> Outcome {
    let version = format!("tamis {}\n", env!("CARGO_PKG_VERSION"));
    let input = installed.folder.join("lines.txt");
    std::fs::write(&input, "a\nb\na\n").map_err(|error| error.to_string())?;
    let tamis = || command(installed.python.with_file_name("tamis"));
    let (mut dedup, mut direct) = (tamis(), tamis());
    dedup.args(["--quiet", "dedup"]).arg(&input);
    direct.arg("--version");
    let module = installed.python(&["-m", "tamis", "--version"]);
    for (mut command, expected) in [(dedup, "a\nb\n"), (direct, &version), (module, &version)] {
        let output = steps.finish_quietly(&mut command)?;
        if output != expected {
            return Err(format!("{command:?} printed {output:?} instead of {expected:?}"));
        }
    }
    Ok(())
}

/// Builds a wheel from the source distribution in an environment with pip alone, and tests the package without the
/// program.
fn sdist(steps: &Steps, built: &Built) -> Outcome {
    let installed = steps.check("build from the source distribution", || {
        Installed::new(steps, "from-source", &built.sdist.to_string_lossy())
    })?;
    steps.check("the package from the source distribution", || {
        let code = "import tamis; f = tamis.Bloom(1000, 0.01); print(f.add('a'), 'a' in f)";
        let output = steps.finish_quietly(&mut installed.python(&["-c", code]))?;
        if output != "True True\n" {
            return Err(format!("{code} printed {output:?}"));
        }
        let mut program = installed.python(&["-m", "tamis", "--version"]);
        let mut lines = Vec::new();
        let status =
            process::run(&mut program, LIMIT, steps.failed(), |line| lines.push(line.to_owned()))
                .map_err(|stopped| stopped.to_string())?;
        match (status.code(), lines.as_slice()) {
            (Some(2), [line]) if line.starts_with("tamis: the program is not installed") => Ok(()),
            _ => Err(format!("{program:?} without the program: {status}, {lines:?}")),
        }
    })
}

/// An environment with the installed package.
struct Installed {
    /// The interpreter of the environment.
    python: PathBuf,
    /// The working folder of all commands. From this folder, Python does not find the sources of the package.
    folder: PathBuf,
}

impl Installed {
    /// Creates the environment `name` and installs a package with pip.
    fn new(steps: &Steps, name: &str, package: &str) -> Result<Self, String> {
        let folder = root().join("target").join(FOLDER).join(name);
        empty_folder(&folder)?;
        let python = python::environment(&format!("{FOLDER}/{name}/python"))?;
        let installed = Self { python, folder };
        let mut pip = installed.python(&["-m", "pip", "install", "--disable-pip-version-check"]);
        // The build of a source distribution uses this folder and these settings. The optimization would take minutes.
        // The folder is empty: all files of a source distribution are from 2006, so cargo would not see their changes.
        pip.env("CARGO_TARGET_DIR", installed.folder.join("target"));
        pip.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
        pip.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        pip.env("CARGO_PROFILE_RELEASE_DEBUG", "0");
        steps.finish_quietly(pip.args(["--quiet", package]))?;
        Ok(installed)
    }

    /// Returns a command that runs the interpreter of the environment with these arguments.
    fn python(&self, words: &[&str]) -> Command {
        let mut python = command(&self.python);
        python.args(words).current_dir(&self.folder).env("PYTHONDONTWRITEBYTECODE", "1");
        python
    }

    /// Returns the folder of the installed package `tamis`.
    fn package(&self, steps: &Steps) -> Result<PathBuf, String> {
        let code = "import tamis; print(tamis.__path__[0])";
        let path = steps.finish_quietly(&mut self.python(&["-c", code]))?;
        Ok(PathBuf::from(path.trim_end()))
    }
}

/// Returns a command without the environment variables of `cargo xtask` and of Python.
fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    remove_package_variables(&mut command);
    command.env_remove("PYTHONPATH").env_remove("VIRTUAL_ENV");
    command
}
