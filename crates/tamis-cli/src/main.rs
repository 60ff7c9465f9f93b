//! The one program, `tamis`. All it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tamis_cli::main()
}
