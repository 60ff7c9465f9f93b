//! Stops processes for a while, as a hypervisor or a full disk would.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

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
        .spawn()
        .unwrap();
    shell.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    meanwhile();
    assert!(shell.wait().unwrap().success());
}
