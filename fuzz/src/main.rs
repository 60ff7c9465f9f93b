//! Runs one fuzz target with libFuzzer. The environment variable `TAMIS_FUZZ_TARGET` contains the name of the target.
//! `cargo xtask soak` starts this program.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tamis_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("TAMIS_FUZZ_TARGET").expect("TAMIS_FUZZ_TARGET names a target");
    Target::named(&name).unwrap_or_else(|| panic!("there is no fuzz target {name}"))
});

fuzz_target!(|bytes: &[u8]| TARGET.run(bytes));
