//! `cargo xtask wheel`: builds a wheel and a source distribution of the Python package in `target/wheels`. With
//! `--check`, installs both and tests them.
//!
//! The wheel also has the program `tamis`. Every Linux with glibc 2.17 (from 2012) or newer can run the wheel.

mod build;
mod check;
mod tags;

use std::time::Duration;

use crate::args;
use crate::steps::Steps;
use crate::tools::{Outcome, require_linux};

/// The time limit of one command. The slowest command is the build of the program.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// Builds the wheel and the source distribution. With `--check`, also tests them.
pub fn run(words: &[&str]) -> Outcome {
    let is_check = args::has_check(words)?;
    require_linux("wheel", "pip wheel --no-deps crates/tamis-python")?;
    let steps = Steps::new(LIMIT);
    let built = build::build(&steps)?;
    if is_check {
        check::check(&steps, &built)?;
    }
    steps.end();
    println!("{built}");
    Ok(())
}
