//! `cargo xtask bench`: builds the `bench` crate, rivals and all, and runs it.

use crate::Outcome;
use crate::setup::cargo;

/// Runs the benches; `args` are theirs.
pub fn run(args: &[&str]) -> Outcome {
    let mut bench = cargo(&["run", "--release", "--quiet", "--manifest-path", "bench/Cargo.toml"]);
    // One folder for all that is built.
    bench.args(["--target-dir", "target", "--"]).args(args);
    let status = bench.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the bench failed: see above".to_owned()) }
}
