//! Starts the program `tamis`. The library of this crate contains all other code.

use std::process::ExitCode;

fn main() -> ExitCode {
    tamis_cli::main()
}
