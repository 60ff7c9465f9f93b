//! Filters of modules, here those of `tamis serve`.

use std::process::{Command, Stdio};

use tamis_testing::{CommandExt as _, Process};

use crate::folder;
use crate::program::Folder;
use crate::support::{self, Server, free_port};

struct Serve {
    _process: Process,
    url: String,
}

fn serve(folder: &Folder) -> Serve {
    let port = free_port().to_string();
    let mut process = Command::new(env!("CARGO_BIN_EXE_tamis"))
        .args(["serve", "--http-port", "no", "--port", &port, "--dir"])
        .arg(folder.path("data"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .start();
    process.stderr_lines().line_with(&port);
    Serve { _process: process, url: format!("redis://127.0.0.1:{port}") }
}

fn say(server: &Serve, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    support::ask::<()>(&mut support::connect(&server.url), &words);
}

#[test]
fn filters_of_modules_take_and_find_items() {
    let folder = folder();
    let server = serve(&folder);
    let url = &server.url;
    for create in [
        "BF.RESERVE bloom 0.001 20000",
        "CF.RESERVE cuckoo 40000",
        "TM.RESERVE counting KIND counting ITEMS 20000",
        "TM.RESERVE growing KIND growing ITEMS 100",
    ] {
        say(&server, create);
        let key = create.split(' ').nth(1).unwrap();
        folder.ok(format!("add {url}/{key} n.txt"));
        // A repeated add to a cuckoo filter adds nothing.
        folder.ok(format!("add {url}/{key} n.txt"));
        assert_eq!(folder.ok(format!("check -c {url}/{key} n.txt")), "10000\n", "{key}");
        let wrong = folder.run(format!("check -c {url}/{key} other.txt")).stdout;
        assert!(wrong.trim().parse::<u64>().unwrap() < 300, "{key}: {wrong}");
        let info = folder.run(format!("info --json {url}/{key}"));
        info.has_status(0);
        assert_eq!(info.json()[0]["name"], format!("{url}/{key}"));
    }
    folder.ok(format!("convert {url}/bloom bloom.tamis"));
    assert_eq!(folder.ok("check -c bloom.tamis n.txt"), "10000\n");
    folder.ok(format!("convert bloom.tamis {url}/copy --to tamis"));
    assert_eq!(folder.ok(format!("check -c {url}/copy n.txt")), "10000\n");
    folder.ok(format!("merge {url}/bloom {url}/copy -o {url}/both"));
    assert_eq!(folder.ok(format!("check -c {url}/both n.txt")), "10000\n");
    folder.refused(format!("convert bloom.tamis {url}/copy --to tamis"), "exists");
    say(&server, "TM.RESERVE full KIND cuckoo ITEMS 100");
    folder.run(format!("add {url}/full n.txt")).warns(2, "items were added");

    // A server without the module.
    let redis = Server::start();
    let line = format!("convert bloom.tamis {}/f --to tamis", redis.url());
    folder.refused(&line, "cannot load a file of Tamis");
}
