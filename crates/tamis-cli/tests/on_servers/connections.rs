//! Passwords, databases, TLS, Sentinels, clusters, and servers that do not answer.

use std::process::{Command, Stdio};

use tamis_testing::{CommandExt as _, wait_for};

use crate::program::Folder;
use crate::support::cluster::Cluster;
use crate::support::{self, Server, free_port};
use crate::{ask, count, folder, ok};

/// Runs a command with a variable of the environment. Returns the status and all output.
fn run_with(folder: &Folder, name: &str, value: &str, line: &str) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tamis"))
        .args(line.split(' '))
        .current_dir(folder.path("."))
        .env(name, value)
        .run();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_password_is_taken_and_never_shown() {
    let (folder, server) = (folder(), Server::with(&["--requirepass", "se/cret@"]));
    let host = format!("127.0.0.1:{}", server.port);
    folder.ok(format!("build n.txt -o redis://:se%2Fcret%40@{host}/f"));
    folder.ok(format!("check -q redis://default:se%2Fcret%40@{host}/f n.txt"));
    folder.refused(format!("info redis://{host}/f"), "requires a password");
    for user in [":wrong", "nobody:se%2Fcret%40", "nobody"] {
        let ended = folder.run(format!("info redis://{user}@{host}/f"));
        assert_eq!((ended.status, ended.stderr.lines().count()), (2, 1), "{ended:?}");
        assert!(!ended.stderr.contains("cret") && !ended.stderr.contains("wrong"), "{ended:?}");
    }
    let text = folder.ok(format!("info redis://:se%2Fcret%40@{host}/f"));
    assert!(text.starts_with(&format!("redis://{host}/f\n")), "{text}");
    let line = format!("info redis://{host}/f");
    assert_eq!(run_with(&folder, "REDISCLI_AUTH", "se/cret@", &line).0, 0);
    let (status, text) = run_with(&folder, "REDISCLI_AUTH", "x", &line);
    assert!(status == 2 && text.contains("rejects the user or the password"), "{text}");
    // Mistakes with the password in the URL.
    for line in [
        format!("info redis://:se/cret@{host}/f"),
        format!("info redis://me:12/cret@{host}/f"),
        format!("info redis+tls://me:cret@{host}/f"),
        format!("info REDIS://:cret@{host}/f"),
        format!("check n.txt redis://:cret@{host}/f"),
        format!("build redis://:cret@{host}/f -o x.tamis"),
        format!("add n.txt redis://:cret@{host}/f"),
        format!("dedup redis://:cret@{host}/f"),
        format!("serve redis://:cret@{host}/f"),
        format!("convert redis://:cret@{host}/f x.tamis --items redis://:cret@{host}/f"),
    ] {
        let ended = folder.run(&line);
        assert_eq!(ended.status, 2, "{line}: {ended:?}");
        assert!(!ended.stderr.contains("cret") && !ended.stdout.contains("cret"), "{ended:?}");
    }
}

#[test]
fn a_user_of_some_keys_and_commands_needs_no_more() {
    let (folder, server) = (folder(), Server::start());
    ok(&folder, &server, "build n.txt -o @/f");
    ok(&folder, &server, "build --to redis-bitmap --items 10K --to-funnel bytes n.txt -o @/g");
    let _: () = ask(&server, "ACL SETUSER app on >pw ~f* ~g +@read +@write +@scripting");
    let url = format!("redis://app:pw@127.0.0.1:{}", server.port);
    assert_eq!(folder.ok(format!("check -c {url}/f n.txt")), "10000\n");
    let options = "--format redis-bitmap --items-planned 10K --rate-planned 0.01 --funnel bytes";
    assert_eq!(folder.ok(format!("check -c {options} {url}/g n.txt")), "10000\n");
    folder.refused(format!("check {url}/other n.txt"), "NOPERM");
}

#[test]
fn a_number_before_the_key_is_the_database() {
    let (folder, server) = (folder(), Server::start());
    ok(&folder, &server, "build n.txt -o @/3/app/users");
    assert_eq!(ask::<i64>(&server, "EXISTS app/users"), 0);
    assert_eq!(count(&folder, &server, "check -c @/3/app/users n.txt"), 10_000);
    folder.refused(format!("check {}/app/users n.txt", server.url()), "no such key");
    ok(&folder, &server, "build n.txt -o @/%E7%94%A8%E6%88%B7");
    assert_eq!(ask::<i64>(&server, "EXISTS 用户"), 1);
}

#[test]
fn servers_that_do_not_answer_are_named() {
    let folder = folder();
    let port = free_port();
    for line in [
        "info redis://127.0.0.1:PORT/f",
        "check redis://127.0.0.1:PORT/f n.txt",
        "add redis://127.0.0.1:PORT/f n.txt",
        "build n.txt -o redis://127.0.0.1:PORT/f",
        "merge redis://127.0.0.1:PORT/a redis://127.0.0.1:PORT/b -o redis://127.0.0.1:PORT/c",
        "convert redis://127.0.0.1:PORT/f f.tamis",
    ] {
        let line = line.replace("PORT", &port.to_string());
        folder.refused(&line, "the connection failed: Connection refused");
    }
    folder.refused("info redis://host.invalid/f", "redis://host.invalid/f: ");
    for line in ["info localhost:6379/f", "check localhost:6379/f n.txt"] {
        folder.refused(line, "write redis://localhost:6379/f");
    }
    for (url, words) in [
        ("redis://127.0.0.1", "has no key"),
        ("redis://127.0.0.1/", "has no key"),
        ("redis://127.0.0.1:x/f", "a port"),
        ("redis://:6379/f", "no host"),
        ("redis+sentinel://127.0.0.1/f", "has no key"),
        ("redis://127.0.0.1/%zz", "percent"),
    ] {
        folder.refused(format!("info {url}"), words);
        folder.refused(format!("build n.txt -o {url}"), words);
    }
    // A server of another protocol.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            use std::io::Write as _;
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").ok();
        }
    });
    folder.refused(format!("info redis://{address}/f"), "the connection failed");
}

#[test]
fn a_filter_works_over_tls() {
    let folder = folder();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    folder.write("cert.pem", certified.cert.pem());
    folder.write("key.pem", certified.signing_key.serialize_pem());
    let file = |name| folder.path(name).to_str().unwrap().to_owned();
    let (cert, key, port) = (file("cert.pem"), file("key.pem"), free_port().to_string());
    let _server = Server::with(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &cert,
        "--tls-auth-clients",
        "no",
    ]);
    let url = format!("rediss://localhost:{port}/f");
    for (line, printed) in
        [(format!("build n.txt -o {url}"), ""), (format!("check -c {url} n.txt"), "10000\n")]
    {
        let ended = run_with(&folder, "SSL_CERT_FILE", &cert, &line);
        assert_eq!(ended, (0, printed.to_owned()), "{line}");
    }
    folder.refused(format!("info {url}"), "certificate");
}

#[test]
fn a_cluster_is_recognised() {
    let (folder, cluster) = (folder(), Cluster::start());
    for server in &cluster.servers {
        let url = server.url();
        let key = format!("f{}", server.port);
        folder.ok(format!("build --rate 1e-6 n.txt -o {url}/{key}"));
        for any in &cluster.servers {
            assert_eq!(folder.ok(format!("check -c {}/{key} n.txt", any.url())), "10000\n");
        }
        folder.shows(format!("info {url}/{key}"), &["tamis-redis"]);
    }
    // The settings of Redisson are in the slot of the bitmap.
    let url = cluster.servers[1].url();
    folder.ok(format!("build --to redisson --items 20K --to-funnel bytes n.txt -o {url}/shop"));
    assert_eq!(folder.ok(format!("check -c --funnel bytes {url}/shop n.txt")), "10000\n");
    folder.run(format!("info {url}/shop")).has_status(0);
}

#[test]
fn sentinels_name_the_primary() {
    let (folder, primary) = (folder(), Server::start());
    let port = free_port();
    let config = format!(
        "port {port}\nbind 127.0.0.1\nsentinel monitor mine 127.0.0.1 {} 1\n",
        primary.port
    );
    folder.write("sentinel.conf", config);
    let _sentinel = Command::new("redis-server")
        .arg(folder.path("sentinel.conf"))
        .arg("--sentinel")
        .stdout(Stdio::null())
        .start();
    let url = format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{port}/mine/2/f");
    let built = wait_for("the sentinel names the primary", || {
        Some(folder.run(format!("build n.txt -o {url}"))).filter(|built| built.status == 0)
    });
    let checked = folder.run(format!("check -c {url} n.txt"));
    let unknown = folder.run(format!("info {}", url.replace("mine", "other")));
    assert_eq!(built.stderr, "");
    assert_eq!(checked.stdout, "10000\n", "{checked:?}");
    assert_eq!((unknown.status, unknown.stderr.lines().count()), (2, 1), "{unknown:?}");
    let mut connection = primary.connection();
    let _: () = support::ask(&mut connection, &["SELECT", "2"]);
    assert_eq!(support::ask::<i64>(&mut connection, &["EXISTS", "f"]), 1);
}
