//! `tamis guard` that is stopped, killed and started again with snapshots.

use std::process::Command;
use std::time::{Duration, Instant};

use tamis_testing::{DEADLINE, wait_until};

use crate::guard::Running;
use crate::program::{Folder, lines};
use crate::upstream::upstream;

const CONFIG: &str = "--config guard.toml";

/// Creates a folder with a configuration, the ids of some products and a folder for snapshots.
fn shop(products: u64) -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("state")).unwrap();
    folder.write("ids.txt", lines(1..=products));
    folder.write(
        "guard.toml",
        format!(
            "proxy = {{ listen = \"127.0.0.1:0\", upstream = \"http://{}\" }}\n\
             snapshots = {{ folder = \"state\", every = \"1s\" }}\n\
             [ids.products]\nsource = {{ kind = \"lines\", path = \"ids.txt\", quiet = \"50ms\" }}\n\
             interval = \"50ms\"\nstale_after = \"20s\"\nrate = 1e-6\n\
             [[route]]\npath = \"/products/{{id}}\"\nids = {{ \"path:id\" = \"products\" }}\n",
            upstream()
        ),
    );
    folder
}

#[test]
fn a_stopped_guard_leaves_a_snapshot_and_a_folder_has_one_guard() {
    let folder = shop(1000);
    let mut running = Running::synced(&folder, CONFIG);
    folder.refused("guard --config guard.toml", "snapshots.folder: another guard uses ");
    // These read the source, and leave the folder alone.
    folder.run("guard check --config guard.toml").has_status(0);
    running.process.signal("TERM");
    assert!(running.process.wait().success());
    let written = std::fs::metadata(folder.path("state/products.snapshot")).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(written.permissions().mode() & 0o777, 0o600);
    }
    let running = Running::synced(&folder, CONFIG);
    running.passes("/products/1000");
    running.stops("/products/1001");
    drop(running);
    // A damaged one is reported in one line, and all ids are read.
    folder.write("state/products.snapshot", "damaged, and longer than the magic number");
    let mut running = Running::start(&folder, CONFIG);
    let line = running.wait_for("the snapshot is not used");
    assert!(line.contains("this is not a snapshot of a guard"), "{line}");
    running.wait_for("synced");
    running.passes("/products/1000");
}

#[test]
fn a_guard_that_is_killed_while_it_writes_loses_no_id() {
    let folder = shop(1000);
    let state = folder.path("state");
    for round in 0..12_u64 {
        let last = 1000 + 1000 * round;
        let running = Running::synced(&folder, CONFIG);
        running.passes(&format!("/products/{last}"));
        running.stops(&format!("/products/{}", last + 1));
        // A new list costs a new snapshot. The process is killed at different moments of it.
        folder.write("new.txt", lines(1..=last + 1000));
        std::fs::rename(folder.path("new.txt"), folder.path("ids.txt")).unwrap();
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
    let running = Running::synced(&folder, CONFIG);
    running.passes("/products/13000");
    let snapshot = state.join("products.snapshot");
    wait_until("the snapshot is written", || snapshot.exists());
    let names = std::fs::read_dir(&state).unwrap().flatten();
    let left = names.filter(|it| it.file_name().to_string_lossy().starts_with(".tamis")).count();
    assert!(left <= 1, "unfinished files are removed at the start");
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_at_the_start() {
    let folder = shop(10);
    std::fs::remove_dir_all(folder.path("state")).unwrap();
    for words in ["no snapshot can be written in ", "No such file"] {
        folder.refused("guard --config guard.toml", words);
    }
    folder.write("state", "a file");
    folder.refused("guard --config guard.toml", "Not a directory");
}

#[test]
#[cfg(unix)]
fn a_full_disk_is_reported_and_the_old_file_stays() {
    let folder = shop(1000);
    let mut running = Running::synced(&folder, CONFIG);
    running.process.signal("TERM");
    running.process.wait();
    let old = folder.read("state/products.snapshot");
    // A limit for files is an error of each write beyond it, as that of a full disk.
    folder.write("ids.txt", lines(1..=2000));
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"]);
    limited.arg(env!("CARGO_BIN_EXE_tamis")).args(["guard", "--config", "guard.toml"]);
    limited.current_dir(folder.path("."));
    let mut running = Running::start_command(limited);
    let line = running.wait_for("the snapshot is not written");
    assert!(line.contains("products.snapshot: ") && !line.contains("os error"), "{line}");
    running.passes("/products/2000");
    running.stops("/products/2001");
    assert_eq!(folder.read("state/products.snapshot"), old);
    drop(running);
    Running::synced(&folder, CONFIG).passes("/products/2000");
}
