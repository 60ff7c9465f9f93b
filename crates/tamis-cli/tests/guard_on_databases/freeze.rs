//! Stops processes for a while, as a hypervisor or a full disk would.

use std::process::{Command, Stdio};
use std::time::Duration;

use tamis_testing::CommandExt as _;

/// Stops processes, and runs `meanwhile`. They continue after `pause`.
pub fn freeze(processes: &[u32], pause: Duration, meanwhile: impl FnOnce()) {
    // A shell continues them, so that they continue also if the tests are interrupted.
    // A process of a database may have ended meanwhile.
    let script = r#"trap "" HUP INT TERM; pause=$1; shift; kill -STOP "$@"; echo; exec >&-
        sleep "$pause"; kill -CONT "$@"; exit 0"#;
    let mut shell = Command::new("sh")
        .args(["-c", script, "sh", &pause.as_secs_f64().to_string()])
        .args(processes.iter().map(ToString::to_string))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .start();
    // The shell closes its stdout when the processes stand still.
    shell.stdout_lines().rest();
    meanwhile();
    assert!(shell.wait().success());
}
