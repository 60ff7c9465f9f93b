//! `tamis guard` as a program, between a client and an upstream of the test.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use tamis_testing::wait_until;
use tamis_testing::{CommandExt as _, Lines, Process, accept, connect, join, read_to_end, receive};

use crate::upstream::{ok, read_path, upstream};

pub fn guard(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
    command.arg("guard").args(arguments);
    command
}

/// Returns the error lines of a command that must fail.
pub fn refused(arguments: &[&str]) -> String {
    let output = guard(arguments).run();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert!(text.starts_with("tamis: ") && !text.contains("os error"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

pub struct Running {
    pub process: Process,
    stderr: Lines,
    address: SocketAddr,
}

impl Running {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_command(guard(arguments))
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
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = connect(address);
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    String::from_utf8(read_to_end(&mut stream)).unwrap()
}

pub fn config(folder: &Path, text: &str) -> String {
    let path = folder.join("guard.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn unknown_ids_get_404_and_others_reach_the_upstream() {
    let folder = tempfile::tempdir().unwrap();
    let ids = folder.path().join("ids.txt");
    std::fs::write(&ids, "1\n2\n3\n").unwrap();
    let upstream = format!("http://{}", upstream());
    let mut running = Running::start(&[
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        &upstream,
        "--path",
        "/pms/productInfo/{id}",
        "--ids",
        ids.to_str().unwrap(),
        "--message",
        "产品不存在!",
    ]);
    running.wait_for("synced");
    assert!(running.get("/pms/productInfo/2").ends_with("\r\n\r\n/pms/productInfo/2"));
    assert!(running.get("/other/777").ends_with("/other/777"));
    for path in ["/pms/productInfo/777", "/pms/productInfo/abc"] {
        let answer = running.get(path);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        assert!(answer.ends_with("\r\n\r\n{\"code\":404,\"message\":\"产品不存在!\"}"), "{answer}");
    }
    // A second guard on the same port.
    let listen = running.address.to_string();
    let ids = ids.to_str().unwrap();
    let text =
        refused(&["--listen", &listen, "--upstream", &upstream, "--path", "/{id}", "--ids", ids]);
    assert!(text.contains(&format!("cannot listen on {listen}: Address already in use")), "{text}");
}

#[test]
fn a_filter_file_is_a_source_and_a_shadow_refuses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (ids, filter) = (folder.path().join("ids.txt"), folder.path().join("ids.tamis"));
    std::fs::write(&ids, "a\nb\n").unwrap();
    let mut build = Command::new(env!("CARGO_BIN_EXE_tamis"));
    assert!(build.arg("build").arg("-o").args([&filter, &ids]).run().status.success());
    let upstream = format!("http://{}", upstream());
    let arguments = [
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        &upstream,
        "--path",
        "/search",
        "--id",
        "query:q",
        "--type",
        "text",
        "--ids",
        filter.to_str().unwrap(),
    ];
    let mut running = Running::start(&arguments);
    // Nothing shows yet that the filter has the ids as requests write them.
    running.wait_for("unknown ids pass");
    assert!(running.get("/search?q=c").starts_with("HTTP/1.1 200 "));
    let mut running = Running::start(&[&arguments[..], &["--trust"]].concat());
    running.wait_for("synced");
    assert!(running.get("/search?q=b").starts_with("HTTP/1.1 200 "));
    assert!(running.get("/search?q=c").starts_with("HTTP/1.1 404 "));
    let mut running = Running::start(&[&arguments[..], &["--trust", "--shadow"]].concat());
    running.wait_for("synced");
    assert!(running.get("/search?q=c").starts_with("HTTP/1.1 200 "));
}

#[test]
fn real_ids_audit_a_filter() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("ids.txt"), "1\n2\n3\n").unwrap();
    let config = "proxy = { upstream = \"http://127.0.0.1:9000\" }\n\
        [ids.products]\nsource = { kind = \"filter\", path = \"ids.tamis\", quiet = \"50ms\" }\n";
    std::fs::write(path("guard.toml"), config).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
        let output = command.current_dir(folder.path()).args(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    // The texts of a program whose serializer writes quotes.
    for (in_filter, real, status, expected) in [
        ("1\n2\n3\n", "1\n02\n3\n", 0, "products"),
        ("\"1\"\n\"2\"\n\"3\"\n", "1\n2\n", 1, "2 ids that exist are refused: 1, 2"),
        ("1\n2\n3\n", "1\nx\n", 1, "1 lines of real.txt are no ids of the type"),
        ("1\n2\n3\n", "", 2, "real.txt has no ids"),
    ] {
        std::fs::write(path("in.txt"), in_filter).unwrap();
        std::fs::write(path("real.txt"), real).unwrap();
        _ = std::fs::remove_file(path("ids.tamis"));
        assert_eq!(run(&["build", "-o", "ids.tamis", "in.txt"]).0, Some(0));
        let audit = ["guard", "audit", "--config", "guard.toml"];
        let (code, text) = run(&[&audit[..], &["--ids", "real.txt"]].concat());
        assert_eq!(code, Some(status), "{text}");
        assert!(text.contains(expected), "{text}");
        let (code, text) = run(&audit);
        assert!(code == Some(2) && text.contains("audit --ids FILE"), "{text}");
    }
    std::fs::write(path("guard.toml"), format!("{config}[ids.others]\n")).unwrap();
    let audit = ["guard", "audit", "--config", "guard.toml", "--ids", "ids.txt"];
    let (code, text) = run(&audit);
    assert!(
        code == Some(2) && text.contains("choose it with --set from others, products"),
        "{text}"
    );
    assert_eq!(run(&[&audit[..], &["--set", "products"]].concat()).0, Some(0));
    let (code, text) = run(&[&audit[..], &["--set", "shops"]].concat());
    assert!(code == Some(2) && text.contains("no set \"shops\""), "{text}");
    let (code, text) = run(&["guard", "check", "--config", "guard.toml"]);
    assert!(text.contains("unproven"), "{code:?} {text}");
}

#[test]
fn a_hangup_reloads_the_configuration_and_a_wrong_one_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ids.txt"), "1\n").unwrap();
    let text = format!(
        "proxy = {{ listen = \"127.0.0.1:0\", upstream = \"http://{}\" }}\n\
         [ids.products]\nsource = {{ kind = \"lines\", path = \"ids.txt\", quiet = \"50ms\" }}\n\
         interval = \"50ms\"\nstale_after = \"5s\"\n\
         [[route]]\npath = \"/products/{{id}}\"\nids = {{ \"path:id\" = \"products\" }}\n\
         refusal = {{ message = \"first\" }}\n",
        upstream()
    );
    let path = config(folder.path(), &text);
    let mut running = Running::start(&["--config", &path]);
    running.wait_for("synced");
    assert!(running.get("/products/7").ends_with("\"first\"}"));
    config(folder.path(), &text.replace("first", "second"));
    running.process.signal("HUP");
    running.wait_for("is reloaded");
    assert!(running.get("/products/7").ends_with("\"second\"}"));
    config(folder.path(), &text.replace("first", "third").replace("message", "massage"));
    running.process.signal("HUP");
    let line = running.wait_for("cannot be reloaded");
    assert!(line.contains("unknown field `massage`"), "{line}");
    assert!(running.get("/products/7").ends_with("\"second\"}"));
    // The ids file is read again when it changes.
    std::fs::write(folder.path().join("ids.txt"), "1\n7\n").unwrap();
    wait_for_status(&running, "/products/7", 200);
}

#[test]
fn a_signal_ends_the_guard_after_the_requests_in_progress() {
    let folder = tempfile::tempdir().unwrap();
    let ids = folder.path().join("ids.txt");
    std::fs::write(&ids, "slow\n").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("http://{}", listener.local_addr().unwrap());
    let ((arrived_in, arrived), (answer, answered)) = (mpsc::channel(), mpsc::channel());
    std::thread::spawn(move || {
        let mut stream = BufReader::new(accept("the guard", &listener));
        arrived_in.send(read_path(&mut stream).unwrap()).unwrap();
        let body: &str = receive("the body of the answer", &answered);
        stream.get_mut().write_all(ok(body).as_bytes()).unwrap();
    });
    let ids = ids.to_str().unwrap();
    let mut running = Running::start(&[
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        &upstream,
        "--path",
        "/{id}",
        "--type",
        "text",
        "--ids",
        ids,
    ]);
    running.wait_for("synced");
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
    let folder = tempfile::tempdir().unwrap();
    let example = guard(&["example"]).run();
    assert!(example.status.success());
    let path = config(folder.path(), std::str::from_utf8(&example.stdout).unwrap());
    let text = refused(&["check", "--config", &path]);
    assert!(text.contains("ids.products: cannot read ") && text.contains("ids.txt"), "{text}");
    std::fs::write(folder.path().join("ids.txt"), "1\n2\nx\n").unwrap();
    let output = guard(&["check", "--config", &path]).run();
    assert!(output.status.success(), "{output:?}");
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("ids.products: 1 row has no valid id"), "{note}");
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[..4], ["products", "synced", "2", "1"], "{text}");
    let output = guard(&["check", "--json", "--config", &path]).run();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json[0]["items"], &json[0]["state"]), (&2.into(), &"synced".into()));
    let output = guard(&["audit", "--json", "--config", &path]).run();
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json[0]["present_checked"], &json[0]["present_refused"]), (&2.into(), &0.into()));
    assert_eq!(json[0]["is_rate_kept"], true, "{json}");
    let output = guard(&["audit", "--absent", "1000", "--config", &path]).run();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("ids       present  refused"), "{text}");
}

#[test]
fn wrong_options_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let ids = folder.path().join("ids.txt");
    std::fs::write(&ids, "1\n").unwrap();
    let ids = ids.to_str().unwrap();
    let with = |change: &[&str]| {
        let mut arguments =
            vec!["--upstream", "http://127.0.0.1:9", "--path", "/{id}", "--ids", ids];
        arguments.extend(change);
        refused(&arguments)
    };
    assert!(refused(&[]).contains("--upstream is missing; give --config FILE, or"));
    assert!(
        refused(&["--config", "/nonexistent.toml"]).contains("/nonexistent.toml: No such file")
    );
    assert!(with(&["--config", "a.toml"]).contains("--upstream has no effect with --config"));
    assert!(with(&["--type", "int"]).contains("write integer, uuid or text"));
    assert!(with(&["--rate", "2"]).contains("--rate") || with(&["--rate", "2"]).contains("rate"));
    assert!(with(&["--listen", "127.0.0.1:99999"]).contains("write HOST:PORT"));
    assert!(with(&["--id", "body"]).contains("is not the place of an id"));
    assert!(with(&["--colour"]).contains("--colour"));
    assert!(with(&["--threads", "0"]).contains("threads"));
    let text = refused(&[
        "--upstream",
        "http://127.0.0.1:9",
        "--path",
        "/{id}",
        "--ids",
        "/nonexistent.txt",
    ]);
    assert!(text.contains("ids: /nonexistent.txt: No such file or directory"), "{text}");
    assert!(refused(&["check", "--config", "/dev/null"]).contains("missing field `proxy`"));
}

/// Waits until a request gets a status.
fn wait_for_status(running: &Running, path: &str, status: u16) {
    wait_until(format_args!("{path} gets {status}"), || {
        running.get(path).starts_with(&format!("HTTP/1.1 {status} "))
    });
}

#[test]
fn a_leader_and_two_followers_answer_alike_also_after_a_kill_of_each() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ids.txt"), "1\n2\n").unwrap();
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
        let path = folder.path().join("leader.toml");
        let text = text(list, &format!("admin = {{ listen = \"{admin}\" }}"));
        std::fs::write(&path, text).unwrap();
        let mut leader = Running::start(&["--config", path.to_str().unwrap()]);
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
    let follower_config = config(folder.path(), &text(&source, ""));
    let follow = || {
        let mut follower = Running::start(&["--config", &follower_config]);
        follower.wait_for("synced");
        follower
    };
    let mut followers = [follow(), follow()];
    let check = |followers: &[Running; 2]| {
        for follower in followers {
            for id in [1, 2] {
                assert!(follower.get(&format!("/products/{id}")).starts_with("HTTP/1.1 200 "));
            }
            assert!(follower.get("/products/777").starts_with("HTTP/1.1 404 "));
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
    assert!(followers[1].get("/products/500").starts_with("HTTP/1.1 200 "));
    check(&followers);
    // Without the leader, the followers let unknown ids pass, and have their ids.
    drop(leader);
    for follower in &mut followers {
        follower.wait_for("stale");
        assert!(follower.get("/products/777").starts_with("HTTP/1.1 200 "));
    }
    let (_leader, _) = lead(&admin);
    for follower in &mut followers {
        follower.wait_for("synced");
    }
    check(&followers);
    // The set of a guard is no file.
    let mut pull = Command::new(env!("CARGO_BIN_EXE_tamis"));
    let token = folder.path().join("token");
    std::fs::write(&token, "fleet").unwrap();
    let copy = folder.path().join("copy");
    pull.arg("pull").arg(format!("http://{admin}/filters/products")).arg("-o").arg(&copy);
    let output = pull.arg("--token-file").arg(&token).run();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("is the set of a guard") && text.contains("kind = \"leader\""), "{text}");
    assert!(output.status.code() == Some(2) && !copy.exists());
    // It can be checked, and has no list of its ids.
    let output = guard(&["check", "--config", &follower_config]).run();
    assert!(output.status.success(), "{output:?}");
    let text = refused(&["audit", "--config", &follower_config]);
    assert!(text.contains("a leader sends no list of its ids"), "{text}");
}
