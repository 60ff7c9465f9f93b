//! `tamis ints`.

use crate::exit::{Exit, Outcome};

/// Under construction in this step.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_: &Args) -> Outcome {
    Ok(Exit::Yes)
}
