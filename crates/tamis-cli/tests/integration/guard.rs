//! `tamis guard` as a program, between a client and an upstream of the test.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use tamis_testing::wait_until;
use tamis_testing::{CommandExt as _, Lines, Process, accept, connect, join, read_to_end, receive};

use crate::program::Folder;
use crate::upstream::{ok, read_path, upstream};

pub struct Running {
    pub process: Process,
    stderr: Lines,
    address: SocketAddr,
}

impl Running {
    /// Starts `tamis guard` in a folder, and waits until it has read its ids.
    pub fn synced(folder: &Folder, line: &str) -> Self {
        let mut running = Self::start(folder, line);
        running.wait_for("synced");
        running
    }

    pub fn start(folder: &Folder, line: &str) -> Self {
        Self::start_command(folder.command(&format!("guard {line}")))
    }

    pub fn start_command(mut command: Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).start();
        let mut stderr = process.stderr_lines();
        let line = stderr.line_with("ready");
        let address = line.split("address=").nth(1).unwrap().split(' ').next().unwrap();
        Self { address: address.parse().unwrap(), process, stderr }
    }

    /// Reads the log up to a line with a text.
    pub fn wait_for(&mut self, text: &str) -> String {
        self.stderr.line_with(text)
    }

    /// Returns the answer to a request.
    pub fn get(&self, path: &str) -> String {
        get(self.address, path)
    }

    /// Checks that the guard lets a request pass.
    #[track_caller]
    pub fn passes(&self, path: &str) {
        let answer = self.get(path);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    }

    /// Checks that the guard refuses a request.
    #[track_caller]
    pub fn stops(&self, path: &str) {
        let answer = self.get(path);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
    }
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = connect(address);
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    String::from_utf8(read_to_end(&mut stream)).unwrap()
}

#[test]
fn unknown_ids_get_404_and_others_reach_the_upstream() {
    let folder = Folder::new();
    folder.write("ids.txt", "1\n2\n3\n");
    let upstream = upstream();
    let path = "--path /pms/productInfo/{id} --ids ids.txt --message 产品不存在!";
    let running = Running::synced(
        &folder,
        &format!("--listen 127.0.0.1:0 --upstream http://{upstream} {path}"),
    );
    assert!(running.get("/pms/productInfo/2").ends_with("\r\n\r\n/pms/productInfo/2"));
    assert!(running.get("/other/777").ends_with("/other/777"));
    for path in ["/pms/productInfo/777", "/pms/productInfo/abc"] {
        let answer = running.get(path);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        assert!(answer.ends_with("\r\n\r\n{\"code\":404,\"message\":\"产品不存在!\"}"), "{answer}");
    }
    // A second guard on the same port.
    let listen = running.address;
    folder.refused(
        format!(
            "guard --listen {listen} --upstream http://{upstream} --path /{{id}} --ids ids.txt"
        ),
        &format!("cannot listen on {listen}: Address already in use"),
    );
}

#[test]
fn a_filter_file_is_a_source_and_a_shadow_refuses_nothing() {
    let folder = Folder::new();
    folder.build("ids", "a\nb\n");
    let line = format!("--listen 127.0.0.1:0 --upstream http://{}", upstream());
    let line = format!("{line} --path /search --id query:q --type text --ids ids.tamis");
    let mut running = Running::start(&folder, &line);
    // Nothing shows yet that the filter has the ids as requests write them.
    running.wait_for("unknown ids pass");
    running.passes("/search?q=c");
    let running = Running::synced(&folder, &format!("{line} --trust"));
    running.passes("/search?q=b");
    running.stops("/search?q=c");
    Running::synced(&folder, &format!("{line} --trust --shadow")).passes("/search?q=c");
}

#[test]
fn real_ids_audit_a_filter() {
    let folder = Folder::new();
    folder.write("ids.txt", "1\n2\n3\n");
    let config = "proxy = { upstream = \"http://127.0.0.1:9000\" }\n\
        [ids.products]\nsource = { kind = \"filter\", path = \"ids.tamis\", quiet = \"50ms\" }\n";
    folder.write("guard.toml", config);
    let audit = "guard audit --config guard.toml";
    // The texts of a program whose serializer writes quotes.
    for (in_filter, real, status, expected) in [
        ("1\n2\n3\n", "1\n02\n3\n", 0, "products"),
        ("\"1\"\n\"2\"\n\"3\"\n", "1\n2\n", 1, "2 ids that exist are refused: 1, 2"),
        ("1\n2\n3\n", "1\nx\n", 1, "1 lines of real.txt are no ids of the type"),
        ("1\n2\n3\n", "", 2, "real.txt has no ids"),
    ] {
        folder.write("in.txt", in_filter);
        folder.write("real.txt", real);
        folder.ok("build -o ids.tamis in.txt");
        let ended = folder.run(format!("{audit} --ids real.txt"));
        ended.has_status(status);
        assert!(format!("{}{}", ended.stdout, ended.stderr).contains(expected), "{ended:?}");
        folder.refused(audit, "audit --ids FILE");
    }
    folder.write("guard.toml", format!("{config}[ids.others]\n"));
    let audit = format!("{audit} --ids ids.txt");
    folder.refused(&audit, "choose it with --set from others, products");
    folder.run(format!("{audit} --set products")).has_status(0);
    folder.refused(format!("{audit} --set shops"), "no set \"shops\"");
    folder.run("guard check --config guard.toml").shows(&["unproven"]);
}

#[test]
fn a_hangup_reloads_the_configuration_and_a_wrong_one_is_not_used() {
    let folder = Folder::new();
    folder.write("ids.txt", "1\n");
    let text = format!(
        "proxy = {{ listen = \"127.0.0.1:0\", upstream = \"http://{}\" }}\n\
         [ids.products]\nsource = {{ kind = \"lines\", path = \"ids.txt\", quiet = \"50ms\" }}\n\
         interval = \"50ms\"\nstale_after = \"5s\"\n\
         [[route]]\npath = \"/products/{{id}}\"\nids = {{ \"path:id\" = \"products\" }}\n\
         refusal = {{ message = \"first\" }}\n",
        upstream()
    );
    folder.write("guard.toml", &text);
    let mut running = Running::synced(&folder, "--config guard.toml");
    assert!(running.get("/products/7").ends_with("\"first\"}"));
    folder.write("guard.toml", text.replace("first", "second"));
    running.process.signal("HUP");
    running.wait_for("is reloaded");
    assert!(running.get("/products/7").ends_with("\"second\"}"));
    folder.write("guard.toml", text.replace("first", "third").replace("message", "massage"));
    running.process.signal("HUP");
    let line = running.wait_for("cannot be reloaded");
    assert!(line.contains("unknown field `massage`"), "{line}");
    assert!(running.get("/products/7").ends_with("\"second\"}"));
    // The ids file is read again when it changes.
    folder.write("ids.txt", "1\n7\n");
    wait_for_status(&running, "/products/7", 200);
}

#[test]
fn a_signal_ends_the_guard_after_the_requests_in_progress() {
    let folder = Folder::new();
    folder.write("ids.txt", "slow\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("--upstream http://{}", listener.local_addr().unwrap());
    let ((arrived_in, arrived), (answer, answered)) = (mpsc::channel(), mpsc::channel());
    std::thread::spawn(move || {
        let mut stream = BufReader::new(accept("the guard", &listener));
        arrived_in.send(read_path(&mut stream).unwrap()).unwrap();
        let body: &str = receive("the body of the answer", &answered);
        stream.get_mut().write_all(ok(body).as_bytes()).unwrap();
    });
    let line = format!("--listen 127.0.0.1:0 {upstream} --path /{{id}} --type text --ids ids.txt");
    let mut running = Running::synced(&folder, &line);
    let address = running.address;
    let request = std::thread::spawn(move || get(address, "/slow"));
    assert_eq!(receive("the request", &arrived), "/slow");
    running.process.signal("INT");
    running.wait_for("finishes the requests in progress");
    answer.send("late").unwrap();
    let answer = join("the request", request);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("late"), "{answer}");
    assert!(running.process.wait().success());
}

#[test]
fn the_example_is_a_configuration_and_check_reads_its_sources() {
    let folder = Folder::new();
    folder.write("guard.toml", folder.ok("guard example"));
    let checked = folder.run("guard check --config guard.toml");
    checked.warns(2, "ids.products: cannot read ");
    checked.warns(2, "ids.txt");
    assert_eq!(checked.stderr.lines().count(), 1, "{checked:?}");
    folder.write("ids.txt", "1\n2\nx\n");
    let checked = folder.run("guard check --config guard.toml");
    checked.warns(0, "ids.products: 1 row has no valid id");
    let words: Vec<&str> = checked.stdout.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[..4], ["products", "synced", "2", "1"], "{checked:?}");
    let checked = folder.run("guard check --json --config guard.toml").json();
    assert_eq!((&checked[0]["items"], &checked[0]["state"]), (&2.into(), &"synced".into()));
    let audited = folder.run("guard audit --json --config guard.toml");
    audited.has_status(0);
    let set = &audited.json()[0];
    assert_eq!((&set["present_checked"], &set["present_refused"]), (&2.into(), &0.into()));
    assert_eq!(set["is_rate_kept"], true, "{set}");
    let audited = folder.run("guard audit --absent 1000 --config guard.toml");
    assert!(audited.stdout.starts_with("ids       present  refused"), "{audited:?}");
}

#[test]
fn wrong_options_are_refused_in_one_line() {
    let folder = Folder::new();
    folder.write("ids.txt", "1\n");
    let line = "guard --upstream http://127.0.0.1:9 --path /{id} --ids";
    for (options, words) in [
        ("--config a.toml", "--upstream has no effect with --config"),
        ("--type int", "write integer, uuid or text"),
        ("--rate 2", "rate"),
        ("--listen 127.0.0.1:99999", "write HOST:PORT"),
        ("--id body", "is not the place of an id"),
        ("--colour", "--colour"),
        ("--threads 0", "threads"),
    ] {
        folder.refused(format!("{line} ids.txt {options}"), words);
    }
    folder.refused("guard", "--upstream is missing; give --config FILE, or");
    folder.refused("guard --config nonexistent.toml", "nonexistent.toml: No such file");
    let words = "ids: nonexistent.txt: No such file or directory";
    folder.refused(format!("{line} nonexistent.txt"), words);
    folder.refused("guard check --config /dev/null", "proxy: write [proxy]");
}

/// Waits until a request gets a status.
fn wait_for_status(running: &Running, path: &str, status: u16) {
    wait_until(format_args!("{path} gets {status}"), || {
        running.get(path).starts_with(&format!("HTTP/1.1 {status} "))
    });
}

#[test]
fn a_leader_and_two_followers_answer_alike_also_after_a_kill_of_each() {
    let folder = Folder::new();
    folder.write("ids.txt", "1\n2\n");
    let upstream = upstream();
    let text = |source: &str, more: &str| {
        format!(
            "proxy = {{ listen = \"127.0.0.1:0\", upstream = \"http://{upstream}\" }}\n{more}\n\
             [ids.products]\nsource = {source}\ninterval = \"50ms\"\nstale_after = \"2s\"\n\
             [[route]]\npath = \"/products/{{id}}\"\nids = {{ \"path:id\" = \"products\" }}\n"
        )
    };
    let list = r#"{ kind = "lines", path = "ids.txt", quiet = "50ms" }
        publish = { token = "fleet" }
        push = { token = "program" }"#;
    let lead = |admin: &str| {
        folder.write("leader.toml", text(list, &format!("admin = {{ listen = \"{admin}\" }}")));
        let mut leader = Running::start(&folder, "--config leader.toml");
        let line = leader.wait_for("the metrics are available");
        let admin = line.split("url=http://").nth(1).unwrap();
        let admin = admin.trim().trim_end_matches('/').to_owned();
        leader.wait_for("synced");
        (leader, admin)
    };
    let (leader, admin) = lead("127.0.0.1:0");
    let source = format!(
        "{{ kind = \"leader\", url = \"http://{admin}/filters/products\", token = \"fleet\" }}"
    );
    folder.write("guard.toml", text(&source, ""));
    let follow = || Running::synced(&folder, "--config guard.toml");
    let mut followers = [follow(), follow()];
    let check = |followers: &[Running; 2]| {
        for follower in followers {
            for id in [1, 2] {
                follower.passes(&format!("/products/{id}"));
            }
            follower.stops("/products/777");
        }
    };
    check(&followers);
    // An id that a program pushes to the leader.
    let mut stream = connect(admin.parse().unwrap());
    let push = "POST /ids/products HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
                authorization: Bearer program\r\ncontent-length: 3\r\n\r\n500";
    stream.write_all(push.as_bytes()).unwrap();
    read_to_end(&mut stream);
    for follower in &followers {
        wait_for_status(follower, "/products/500", 200);
    }
    // A killed follower begins with a snapshot.
    followers[1] = follow();
    followers[1].passes("/products/500");
    check(&followers);
    // Without the leader, the followers let unknown ids pass, and have their ids.
    drop(leader);
    for follower in &mut followers {
        follower.wait_for("stale");
        follower.passes("/products/777");
    }
    let (_leader, _) = lead(&admin);
    for follower in &mut followers {
        follower.wait_for("synced");
    }
    check(&followers);
    // The set of a guard is no file.
    folder.write("token", "fleet");
    let pull = format!("pull http://{admin}/filters/products -o copy --token-file token");
    for words in ["is the set of a guard", "kind = \"leader\""] {
        folder.refused(&pull, words);
    }
    // It can be checked, and has no list of its ids.
    folder.run("guard check --config guard.toml").has_status(0);
    folder.refused("guard audit --config guard.toml", "a leader sends no list of its ids");
}
