//! Builds the site with Material for MkDocs. The configuration is in `packaging/site`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python;
use crate::steps::Steps;
use crate::tools::{Outcome, root};

/// The folder in `target` with the Python environment of the builder.
const TOOLS: &str = "tests/site/python";

/// The configuration of each language, and the folder of the language in the site. The build of the first language
/// empties the site.
const LANGUAGES: [(&str, &str); 2] = [("mkdocs.yml", ""), ("mkdocs.zh-CN.yml", "zh-CN")];

/// Installs the builder and returns the path of its Python interpreter.
pub fn tools(steps: &Steps) -> Result<PathBuf, String> {
    steps.check("tools for the site", || {
        let python = python::environment(TOOLS)?;
        python::install(&python, &["-r", "tests/site/requirements.txt"])?;
        Ok(python)
    })
}

/// Builds the site in a folder. `time` is the time of the build in seconds since 1970; without `time`, the build uses
/// the clock.
///
/// # Errors
///
/// Returns the output of the builder if the builder fails or prints a warning.
pub fn build(steps: &Steps, python: &Path, site: &Path, time: Option<&str>) -> Outcome {
    for (config, folder) in LANGUAGES {
        let mut mkdocs = Command::new(python);
        // With `--quiet`, the builder would not count warnings.
        mkdocs.args(["-m", "mkdocs", "build", "--config-file", config, "--site-dir"]);
        mkdocs.arg(site.join(folder)).current_dir(root().join("packaging/site"));
        mkdocs.env("PYTHONDONTWRITEBYTECODE", "1").env("NO_MKDOCS_2_WARNING", "1");
        // jieba keeps its dictionary in the folder for temporary files.
        mkdocs.env("TMPDIR", root().join("target").join(TOOLS));
        match time {
            Some(time) => mkdocs.env("SOURCE_DATE_EPOCH", time),
            None => mkdocs.env_remove("SOURCE_DATE_EPOCH"),
        };
        steps.run(&format!("site of {config}"), &mut mkdocs)?;
    }
    Ok(())
}
