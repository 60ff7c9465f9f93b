//! The program `tamis`. The library in this crate does all its work.

use std::process::ExitCode;

fn main() -> ExitCode {
    tamis_cli::main()
}
