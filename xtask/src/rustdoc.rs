//! Replaces rustdoc when cargo runs the doc tests. First writes the documentation of the same library, with warnings as
//! errors. Then runs the doc tests.
//!
//! `cargo doc` also checks the documentation. But `cargo doc` compiles every dependency again, which took half of the
//! time of the test build. This check covers no programs, because cargo runs doc tests only for libraries.

use std::process::{Command, ExitCode};

use crate::tools::root;

/// The environment variable that makes this program replace rustdoc. The value is the folder for the documentation.
pub const FOLDER: &str = "XTASK_RUSTDOC";

/// Changes a cargo command that runs doc tests, so that the command also writes the documentation.
pub fn stand_in(command: &mut Command) {
    let target = root().join("target");
    // The test build has replaced the executable of this running program, so `current_exe` would return the path of a
    // deleted file.
    command.env("RUSTDOC", target.join("debug/xtask"));
    // The folder is not the folder of `cargo doc`, because a user may read the pages in that folder.
    command.env(FOLDER, target.join("tests/doc"));
}

/// Runs rustdoc with the arguments from cargo. If the arguments run doc tests, writes the documentation first.
pub fn run(folder: &str, args: &[String]) -> ExitCode {
    if args.iter().any(|arg| arg == "--test") {
        let kept = without_test_options(args);
        if !rustdoc(kept.chain(["-Dwarnings", "-o", folder])) {
            return ExitCode::FAILURE;
        }
    }
    match rustdoc(args.iter().map(String::as_str)) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Returns the arguments without the options for doc tests.
fn without_test_options(args: &[String]) -> impl Iterator<Item = &str> {
    let mut args = args.iter().map(String::as_str);
    std::iter::from_fn(move || {
        let mut arg = args.next()?;
        while arg.starts_with("--test") {
            // Except `--test`, each of these options has a value after `=` or in the next argument.
            if arg != "--test" && !arg.contains('=') {
                args.next()?;
            }
            arg = args.next()?;
        }
        Some(arg)
    })
}

fn rustdoc<'a>(args: impl Iterator<Item = &'a str>) -> bool {
    match Command::new("rustdoc").args(args).status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("rustdoc: {error}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_has_no_arguments_about_running_examples() {
        let words =
            "--crate-name tamis --test src/lib.rs --test-run-directory /p --test-args=-q -L deps";
        let args: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let kept: Vec<&str> = without_test_options(&args).collect();
        assert_eq!(kept.join(" "), "--crate-name tamis src/lib.rs -L deps");
    }
}
