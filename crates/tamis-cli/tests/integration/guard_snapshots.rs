//! `tamis guard` that is stopped, killed and started again with snapshots.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tamis_testing::{CommandExt as _, DEADLINE, wait_until};

use crate::guard::{Running, config, guard, refused};
use crate::upstream::upstream;

/// Writes a configuration with an SQLite database of some products and a folder for snapshots.
fn shop(folder: &Path, products: u64) -> String {
    std::fs::create_dir_all(folder.join("state")).unwrap();
    let lines: String = (1..=products).map(|id| format!("{id}\n")).collect();
    std::fs::write(folder.join("ids.txt"), lines).unwrap();
    config(
        folder,
        &format!(
            "proxy = {{ listen = \"127.0.0.1:0\", upstream = \"http://{}\" }}\n\
             snapshots = {{ folder = \"state\", every = \"1s\" }}\n\
             [ids.products]\nsource = {{ kind = \"lines\", path = \"ids.txt\", quiet = \"50ms\" }}\n\
             interval = \"50ms\"\nstale_after = \"20s\"\nrate = 1e-6\n\
             [[route]]\npath = \"/products/{{id}}\"\nids = {{ \"path:id\" = \"products\" }}\n",
            upstream()
        ),
    )
}

#[test]
fn a_stopped_guard_leaves_a_snapshot_and_a_folder_has_one_guard() {
    let folder = tempfile::tempdir().unwrap();
    let path = shop(folder.path(), 1000);
    let mut running = Running::start(&["--config", &path]);
    running.wait_for("synced");
    let text = refused(&["--config", &path]);
    assert!(text.contains("snapshots.folder: another guard uses "), "{text}");
    // These read the source, and leave the folder alone.
    let check = guard(&["check", "--config", &path]).run();
    assert!(check.status.success(), "{check:?}");
    running.process.signal("TERM");
    assert!(running.process.wait().success());
    let snapshot = folder.path().join("state/products.snapshot");
    let written = std::fs::metadata(&snapshot).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(written.permissions().mode() & 0o777, 0o600);
    }
    let mut running = Running::start(&["--config", &path]);
    running.wait_for("synced");
    assert!(running.get("/products/1000").starts_with("HTTP/1.1 200 "));
    assert!(running.get("/products/1001").starts_with("HTTP/1.1 404 "));
    drop(running);
    // A damaged one is reported in one line, and all ids are read.
    std::fs::write(&snapshot, "damaged, and longer than the magic number").unwrap();
    let mut running = Running::start(&["--config", &path]);
    let line = running.wait_for("the snapshot is not used");
    assert!(line.contains("this is not a snapshot of a guard"), "{line}");
    running.wait_for("synced");
    assert!(running.get("/products/1000").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_guard_that_is_killed_while_it_writes_loses_no_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = shop(folder.path(), 1000);
    let state = folder.path().join("state");
    for round in 0..12_u64 {
        let last = 1000 + 1000 * round;
        let mut running = Running::start(&["--config", &path]);
        running.wait_for("synced");
        assert!(running.get(&format!("/products/{last}")).starts_with("HTTP/1.1 200 "), "{round}");
        let absent = running.get(&format!("/products/{}", last + 1));
        assert!(absent.starts_with("HTTP/1.1 404 "), "{round}");
        // A new list costs a new snapshot. The process is killed at different moments of it.
        let lines: String = (1..=last + 1000).map(|id| format!("{id}\n")).collect();
        let new = folder.path().join("new.txt");
        std::fs::write(&new, lines).unwrap();
        std::fs::rename(new, folder.path().join("ids.txt")).unwrap();
        let end = Instant::now() + DEADLINE;
        let is_written = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(".tamis");
        loop {
            let names = std::fs::read_dir(&state).unwrap().flatten().map(|it| it.file_name());
            let names: Vec<_> = names.collect();
            if names.iter().any(|name| is_written(name)) {
                break;
            }
            let passes = running.get(&format!("/products/{}", last + 1000));
            if passes.starts_with("HTTP/1.1 200 ") || Instant::now() > end {
                break;
            }
        }
        std::thread::sleep(Duration::from_micros(300 * round));
        // Dropping it kills the process.
    }
    let mut running = Running::start(&["--config", &path]);
    running.wait_for("synced");
    assert!(running.get("/products/13000").starts_with("HTTP/1.1 200 "));
    let snapshot = state.join("products.snapshot");
    wait_until("the snapshot is written", || snapshot.exists());
    let names = std::fs::read_dir(&state).unwrap().flatten();
    let left = names.filter(|it| it.file_name().to_string_lossy().starts_with(".tamis")).count();
    assert!(left <= 1, "unfinished files are removed at the start");
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = shop(folder.path(), 10);
    std::fs::remove_dir_all(folder.path().join("state")).unwrap();
    let text = refused(&["--config", &path]);
    assert!(text.contains("no snapshot can be written in ") && text.contains("No such file"));
    std::fs::write(folder.path().join("state"), "a file").unwrap();
    assert!(refused(&["--config", &path]).contains("Not a directory"));
}

#[test]
#[cfg(unix)]
fn a_full_disk_is_reported_and_the_old_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = shop(folder.path(), 1000);
    let mut running = Running::start(&["--config", &path]);
    running.wait_for("synced");
    running.process.signal("TERM");
    running.process.wait();
    let snapshot = folder.path().join("state/products.snapshot");
    let old = std::fs::read(&snapshot).unwrap();
    // A limit for files is an error of each write beyond it, as that of a full disk.
    let lines: String = (1..=2000).map(|id| format!("{id}\n")).collect();
    std::fs::write(folder.path().join("ids.txt"), lines).unwrap();
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"]);
    limited.arg(env!("CARGO_BIN_EXE_tamis")).args(["guard", "--config", &path]);
    let mut running = Running::start_command(limited);
    let line = running.wait_for("the snapshot is not written");
    assert!(line.contains("products.snapshot: ") && !line.contains("os error"), "{line}");
    assert!(running.get("/products/2000").starts_with("HTTP/1.1 200 "));
    assert!(running.get("/products/2001").starts_with("HTTP/1.1 404 "));
    assert_eq!(std::fs::read(&snapshot).unwrap(), old);
    drop(running);
    let mut running = Running::start(&["--config", &path]);
    running.wait_for("synced");
    assert!(running.get("/products/2000").starts_with("HTTP/1.1 200 "));
}
