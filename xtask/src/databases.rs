//! Tests the guard's sources with real databases: MariaDB of Debian.
//!
//! If it cannot be installed, the task prints a message and skips the tests.

use std::path::Path;

use crate::Outcome;
use crate::setup::{cargo, debian_package};
use crate::steps::Steps;
use crate::test::GUARD_FEATURES;

/// Installs what can be installed.
pub fn install() {
    if let Err(why) = installed() {
        println!("sources in databases will not be tried: {why}");
    }
}

/// Runs the tests that need databases.
pub fn test(steps: &mut Steps) -> Outcome {
    if let Err(why) = installed() {
        steps.skip("ids in MariaDB", &why);
        return Ok(());
    }
    let mut tests = cargo(&["test", "-p", "tamis-guard", "--test", "mysql", "--quiet"]);
    steps.run("ids in MariaDB", tests.args(GUARD_FEATURES))
}

fn installed() -> Outcome {
    // Only the program: the package `mariadb-server` would start a service.
    if Path::new("/usr/sbin/mariadbd").exists() {
        return Ok(());
    }
    debian_package("mariadb-server-core")
}
