//! Rejects options and files that contradict each other.

use std::path::Path;

use crate::commands::dedup::{Args, Repeated};
use crate::exit::Failure;
use crate::io::output::is_same_file;

impl Args {
    /// Rejects options that have no effect or contradict each other.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.repeated == Some(Repeated::Once)
            && !self.count
            && (self.approx.is_some() || self.state.is_some() || self.suspects.is_some())
        {
            return Err(Failure::new(
                "--repeated=once needs an exact set of this run; use --repeated=all with --approx, \
                 --state or --suspects",
            ));
        }
        self.check_optional_values()?;
        // Clap ignores `requires` if the required option conflicts with another given option.
        let is_stateless = self.state.is_none();
        let options = [
            (
                self.items.is_some() && self.approx.is_none(),
                "--items N is the number of lines that --approx is planned for",
            ),
            (
                self.restart && is_stateless,
                "--restart discards the progress of a killed run with --state",
            ),
            (
                self.checkpoint.is_some() && is_stateless,
                "--checkpoint sets how often --state is saved",
            ),
        ];
        let mut options = options.into_iter().chain(self.window.unused());
        if let Some((_, option)) = options.find(|&(has_no_effect, _)| has_no_effect) {
            return Err(Failure::new(format!("{option}, and has no effect here: leave it out")));
        }
        let is_once = self.repeated == Some(Repeated::Once);
        self.window.check(self.approx.is_some(), self.items.is_some(), is_once)?;
        self.check_files()
    }

    /// Rejects the name of a missing file if the name is also a value of an option, such as `json`
    /// for `--stats`. If a value is optional, the user must write the value after `=`.
    fn check_optional_values(&self) -> Result<(), Failure> {
        let options = [
            ("--repeated", self.repeated.is_some(), ["once", "all"]),
            ("--stats", self.stats.is_some(), ["text", "json"]),
        ];
        for (option, is_given, values) in options {
            let is_value = |value: &&str| self.files.iter().any(|file| file == Path::new(value));
            let found =
                values.into_iter().find(|value| is_value(value) && !Path::new(value).exists());
            if let Some(value) = found.filter(|_| is_given) {
                return Err(Failure::new(format!(
                    "{value}: no such file; if it is the value of {option}, write {option}={value}"
                )));
            }
        }
        Ok(())
    }

    /// Rejects a file with two uses if one use would destroy the file for the other use.
    fn check_files(&self) -> Result<(), Failure> {
        let is_input = |path: &Path| self.files.iter().any(|file| is_same_file(file, path));
        let output = self.output.as_deref();
        if self.state.is_some() && output.is_some_and(is_input) {
            return Err(Failure::new(
                "with --state the output cannot be one of the inputs: a run that is killed needs \
                 the input again",
            ));
        }
        for (option, path) in [("--state", &self.state), ("--suspects", &self.suspects)] {
            let Some(path) = path else { continue };
            let is_output = output.is_some_and(|output| is_same_file(output, path));
            if is_output || is_input(path) {
                let other = if is_output { "the output" } else { "an input" };
                let path = path.display();
                return Err(Failure::new(format!(
                    "{path}: is {other} too; name another file for {option}"
                )));
            }
        }
        Ok(())
    }
}
