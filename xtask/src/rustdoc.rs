//! Stands in for rustdoc where cargo runs the examples in comments: writes the documentation of the
//! same library first, with warnings as errors.
//!
//! `cargo doc` would do so too, but it checks every dependency once more. This took half as long as the
//! build of the tests. The examples use the dependencies that the tests use.

use std::process::{Command, ExitCode};

/// The variable that makes this program stand in for rustdoc. Its value is the folder of the documentation.
pub const FOLDER: &str = "XTASK_RUSTDOC";

/// Makes a command of cargo that runs the examples also write the documentation.
pub fn stand_in(command: &mut Command) {
    let target = crate::root().join("target");
    // The build of the tests wrote this file. The file that started this program is deleted by then.
    command.env("RUSTDOC", target.join("debug/xtask")).env(FOLDER, target.join("doc"));
}

/// Runs rustdoc with the arguments of this program: for the documentation if cargo wants to run
/// examples, and then as cargo wants.
pub fn run(folder: &str, args: &[String]) -> ExitCode {
    if args.iter().any(|arg| arg == "--test") {
        let documentation = documentation(args);
        if !rustdoc(documentation.chain(["-Dwarnings", "-o", folder])) {
            return ExitCode::FAILURE;
        }
    }
    match rustdoc(args.iter().map(String::as_str)) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Leaves out the arguments that are only about running examples.
fn documentation(args: &[String]) -> impl Iterator<Item = &str> {
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
    Command::new("rustdoc").args(args).status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_has_no_arguments_about_running_examples() {
        let words =
            "--crate-name tamis --test src/lib.rs --test-run-directory /p --test-args=-q -L deps";
        let args: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let kept: Vec<&str> = documentation(&args).collect();
        assert_eq!(kept.join(" "), "--crate-name tamis src/lib.rs -L deps");
    }
}
