//! Stands in for rustdoc where cargo runs the examples in comments: writes the documentation of the
//! same library first, with warnings as errors.
//!
//! `cargo doc` also checks the documentation, but it compiles every dependency again: that took half of the
//! time of the test build. Programs are not documented, because cargo runs no examples of programs.

use std::process::{Command, ExitCode};

use crate::tools::root;

/// The variable that makes this program stand in for rustdoc. Its value is the folder of the documentation.
pub const FOLDER: &str = "XTASK_RUSTDOC";

/// Makes a command of cargo that runs the examples also write the documentation.
pub fn stand_in(command: &mut Command) {
    let target = root().join("target");
    // The test build replaced the file of the running program, so `current_exe` names a deleted file.
    command.env("RUSTDOC", target.join("debug/xtask"));
    // Not the folder of `cargo doc`, which a user may have open.
    command.env(FOLDER, target.join("tests/doc"));
}

/// Runs rustdoc with the arguments that cargo gave to this program. If they run examples, this function
/// writes the documentation first.
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

/// Leaves out the arguments that are only about running examples.
fn without_test_options(args: &[String]) -> impl Iterator<Item = &str> {
    let mut args = args.iter().map(String::as_str);
    std::iter::from_fn(move || {
        let mut arg = args.next()?;
        while arg.starts_with("--test") {
            // Except `--test`, these options have a value, some after a space.
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
