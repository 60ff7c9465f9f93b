//! `cargo xtask bench`: builds the `bench` crate, rivals and all, and runs it.

use std::process::Command;

use crate::{Outcome, root};

/// Runs the benches; `args` are theirs.
pub fn run(args: &[&str]) -> Outcome {
    let status = Command::new(env!("CARGO"))
        .args(["run", "--release", "--quiet", "--manifest-path", "bench/Cargo.toml"])
        // One folder for all that is built, so that `tamis` is not compiled once more elsewhere.
        .args(["--target-dir", "target", "--"])
        .args(args)
        .current_dir(root())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the bench failed: see above".to_owned()) }
}
