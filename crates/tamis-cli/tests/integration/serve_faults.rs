//! `tamis serve` on disks that are full, lose written data or are read-only, and with hostile
//! clients.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::client::Client;
use crate::program::tamis;
use crate::server::Program;
use tamis_formats::RedisValue;
use tamis_resp::Reply;
use tamis_testing::{CommandExt as _, connect, read, try_connect, wait_for, wait_until};

/// Adds numbered items until the server rejects one. Returns the number of accepted items and the
/// error.
fn add_until_refused(client: &mut Client, from: u64) -> (u64, String) {
    for i in from.. {
        match client.try_send(&["BF.ADD", "seen", &format!("{i}:{}", "x".repeat(100))]) {
            Ok(()) => {}
            Err(_) => return (i, "closed".to_owned()),
        }
        match client.try_receive() {
            Some(Reply::Integer(_)) => {}
            Some(Reply::Error(text)) => return (i, text.into_owned()),
            None => return (i, "closed".to_owned()),
            other => panic!("{other:?}"),
        }
    }
    unreachable!("it takes 2^64 items")
}

/// Checks that the filter contains all items whose insert was acknowledged.
fn assert_holds(client: &mut Client, items: u64) {
    for first in (0..items).step_by(1000) {
        let mut words = vec!["BF.MEXISTS".to_owned(), "seen".to_owned()];
        words.extend((first..items.min(first + 1000)).map(|i| format!("{i}:{}", "x".repeat(100))));
        let Reply::Array(found) = client.say(&words) else { panic!() };
        let lost = found.iter().position(|one| *one != Reply::Integer(1));
        assert_eq!(lost, None, "from {first} of {items}");
    }
}

/// A small mounted file system that is unmounted on drop.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a file system. Returns `None` if this user has no permission to mount.
    fn mount(at: &Path, size: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tamis-test"]).arg(at);
        mount.run().status.success().then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("--lazy").arg(&self.0).run();
    }
}

#[test]
fn a_full_disk_stops_changes_and_loses_none_that_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path(), "2m") else {
        println!("skipped: this user may not mount a small disk");
        return;
    };
    let ballast = folder.path().join("ballast");
    std::fs::write(&ballast, vec![0; 1 << 20]).unwrap();
    let dir = folder.path().join("data");
    let mut taken = 0;
    {
        let program = Program::start(&dir, &["--appendfsync", "always"]);
        let mut client = program.client();
        for _ in 0..2 {
            let (items, why) = add_until_refused(&mut client, taken);
            taken = items;
            assert!(why.starts_with("MISCONF") && why.contains("No space left"), "{why}");
            // The server still answers reads.
            assert_holds(&mut client, taken);
            // A change that is refused has no effect.
            let is_set = |i: &u32| client.say(&["SET", "a", &i.to_string()]) == Reply::ok();
            let last = (1..10_000).take_while(is_set).last();
            let expected = last.map_or(Reply::Null, |last| Reply::bulk(last.to_string()));
            assert_eq!(client.say(&["GET", "a"]), expected);
            if !ballast.exists() {
                break;
            }
            // After space is freed, the server accepts writes again without a restart.
            std::fs::remove_file(&ballast).unwrap();
            wait_until("a change is accepted", || client.say(&["SET", "b", "1"]) == Reply::ok());
            client.say(&["DEL", "a"]);
        }
        assert!(taken > 1000, "{taken}");
    }
    // The server starts although the disk is full.
    let program = Program::start(&dir, &["--appendfsync", "always"]);
    assert_holds(&mut program.client(), taken);
}

#[test]
fn a_transaction_whose_values_do_not_fit_on_the_disk_has_no_effect() {
    const LEN: usize = 1_500_000;
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path(), "4m") else {
        println!("skipped: this user may not mount a small disk");
        return;
    };
    let dir = folder.path().join("data");
    let payload = RedisValue::String(vec![b'x'; LEN]).to_payload();
    let restore = |client: &mut Client, keys: &[&str]| {
        assert_eq!(client.say(&["MULTI"]), Reply::ok());
        for key in keys {
            let argv: [&[u8]; 4] = [b"RESTORE", key.as_bytes(), b"0", &payload];
            assert_eq!(client.say(&argv), Reply::simple("QUEUED"));
        }
        client.say(&["EXEC"])
    };
    {
        let program = Program::start(&dir, &["--appendfsync", "always"]);
        let mut client = program.client();
        let refused = restore(&mut client, &["a", "b", "c"]);
        let Reply::Error(why) = refused else { panic!("{refused:?}") };
        assert!(why.starts_with("EXECABORT") && why.contains("No space left"), "{why}");
        assert_eq!(client.say(&["EXISTS", "a", "b", "c"]), Reply::Integer(0));
        // Two of the values fit.
        let restored = Reply::Array(vec![Reply::ok(), Reply::ok()]);
        assert_eq!(restore(&mut client, &["a", "b"]), restored);
    }
    let program = Program::start(&dir, &["--appendfsync", "always"]);
    assert_eq!(program.client().say(&["EXISTS", "a", "b", "c"]), Reply::Integer(2));
}

/// Replaces system calls: while the file that `FAULT` names exists, every sync fails.
const FAULTY_SYNC: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
static int broken(void) { return access(getenv("FAULT"), F_OK) == 0; }
int fsync(int fd) {
    if (broken()) { errno = EIO; return -1; }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
int fdatasync(int fd) {
    if (broken()) { errno = EIO; return -1; }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
"#;

#[test]
#[cfg(target_os = "linux")]
fn a_sync_that_fails_is_never_taken_for_done() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("sync.c"), folder.path().join("sync.so"));
    std::fs::write(&source, FAULTY_SYNC).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .run();
    assert!(built.status.success(), "cc builds a library: {built:?}");
    let (fault, dir) = (folder.path().join("fault"), folder.path().join("data"));
    let environment = [("LD_PRELOAD", library.as_path()), ("FAULT", fault.as_path())];
    let mut items = 0;
    {
        let program = Program::start_with(&dir, &["--appendfsync", "always"], &environment);
        let mut client = program.client();
        for i in 0..100 {
            client.say(&["BF.ADD", "seen", &format!("{i}:{}", "x".repeat(100))]);
            items += 1;
        }
        std::fs::write(&fault, "").unwrap();
        // In a pipeline, only commands that write are answered with an error. The sync failed after
        // they were applied.
        client.send(&["PING"]);
        client.send(&["BF.ADD", "seen", "lost"]);
        client.send(&["BF.ADD", "seen", &format!("0:{}", "x".repeat(100))]);
        client.send(&["BF.EXISTS", "seen", "none"]);
        let replies = [(); 4].map(|()| client.try_receive().expect("an answer"));
        assert_eq!((&replies[0], &replies[3]), (&Reply::simple("PONG"), &Reply::Integer(0)));
        let starts =
            |reply: &Reply, word| matches!(reply, Reply::Error(why) if why.starts_with(word));
        assert!(starts(&replies[1], "UNCERTAIN"), "{replies:?}");
        // The server may read the second one after the failure.
        let is_refused = ["UNCERTAIN", "MISCONF"].iter().any(|word| starts(&replies[2], word));
        assert!(is_refused, "{replies:?}");
        let Reply::Error(why) = client.say(&["BF.ADD", "seen", "refused"]) else { panic!() };
        assert!(why.starts_with("MISCONF") && why.contains("Input/output error"), "{why}");
        assert_holds(&mut client, items);
        assert!(matches!(client.say(&["SAVE"]), Reply::Error(_)));
        // After a failed write, the system may drop the page and mark it as written.
        std::fs::remove_file(&fault).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let Reply::Error(why) = client.say(&["BF.ADD", "seen", "refused"]) else { panic!() };
        assert!(why.contains("restart the server"), "{why}");
    }
    let program = Program::start(&dir, &[]);
    let mut client = program.client();
    assert_holds(&mut client, items);
    assert_eq!(client.say(&["BF.ADD", "seen", "new"]), Reply::Integer(1));
}

#[test]
fn a_folder_that_is_deleted_under_the_server_stops_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, moved) = (folder.path().join("data"), folder.path().join("moved"));
    let program = Program::start(&dir, &[]);
    let mut client = program.client();
    assert_eq!(client.say(&["BF.ADD", "seen", "a"]), Reply::Integer(1));
    std::fs::rename(&dir, &moved).unwrap();
    let wait = |client: &mut Client, is_done: fn(&Reply) -> bool| {
        wait_for("the server notices the change of the folder", || {
            Some(client.say(&["SET", "b", "1"])).filter(is_done)
        })
    };
    let is_refused =
        |reply: &Reply| matches!(reply, Reply::Error(why) if why.starts_with("MISCONF"));
    let refused = wait(&mut client, is_refused);
    let Reply::Error(why) = refused else { unreachable!() };
    assert!(why.starts_with("MISCONF") && why.contains("was removed or replaced"), "{why}");
    assert_eq!(client.say(&["BF.EXISTS", "seen", "a"]), Reply::Integer(1));
    std::fs::rename(&moved, &dir).unwrap();
    wait(&mut client, |reply| *reply == Reply::ok());
}

#[test]
fn a_folder_that_cannot_be_written_is_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path(), "1m,ro") else {
        println!("skipped: this user may not mount a disk");
        return;
    };
    let output = tamis("serve --port 0 --dir").arg(folder.path().join("data")).run();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("Read-only file system") && text.contains("--dir"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn ten_thousand_connections_are_served() {
    const MANY: usize = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path(), &["--appendonly", "no", "--maxclients", "10001"]);
    let mut streams = Vec::new();
    for _ in 0..MANY {
        match try_connect(program.address) {
            Ok(stream) => streams.push(stream),
            // The limit of open files of this test process may be lower; then fewer connections are
            // enough.
            Err(error) if error.raw_os_error() == Some(24) => break,
            Err(error) => panic!("{error} after {}", streams.len()),
        }
    }
    assert!(streams.len() > 500, "{}", streams.len());
    for (i, stream) in streams.iter_mut().enumerate() {
        write!(stream, "BF.ADD seen {i}\r\n").unwrap();
    }
    for stream in &mut streams {
        let mut reply = [0; 4];
        std::io::Read::read_exact(stream, &mut reply).unwrap();
        assert!([b":1\r\n", b":0\r\n"].contains(&&reply), "{reply:?}");
    }
    let memory = resident_bytes(&program) / streams.len() as u64;
    assert!(memory < 64 << 10, "{memory} bytes a connection");
    if streams.len() == MANY {
        let mut last = Client::connect(program.address);
        assert_eq!(last.say(&["PING"]), Reply::simple("PONG"));
        let mut over = Client::connect(program.address);
        let refused = Reply::error("ERR max number of clients reached");
        assert!(over.try_receive().is_none_or(|reply| reply == refused));
    }
    drop(streams);
    let mut client = wait_for("a connection is accepted", || {
        let mut client = Client::connect(program.address);
        let is_served = client.try_send(&["PING"]).is_ok()
            && client.try_receive() == Some(Reply::simple("PONG"));
        is_served.then_some(client)
    });
    wait_until("no other connection is left", || {
        info(&mut client).contains("connected_clients:1\r\n")
    });
}

fn info(client: &mut Client) -> String {
    match client.say(&["INFO", "clients"]) {
        Reply::Bulk(text) => String::from_utf8(text).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn resident_bytes(program: &Program) -> u64 {
    let path = format!("/proc/{}/status", program.process.id());
    let Ok(text) = std::fs::read_to_string(path) else { return 0 };
    let kib = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
    kib.map_or(0, |kib| kib.parse::<u64>().unwrap() * 1024)
}

#[test]
fn a_pipeline_of_a_million_commands_takes_little_memory() {
    const MANY: usize = 1_000_000;
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path(), &["--appendonly", "no"]);
    let before = resident_bytes(&program);
    let mut reader = connect(program.address);
    let mut writer = reader.try_clone().unwrap();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            let piece = "*1\r\n$4\r\nPING\r\n".repeat(MANY / 100);
            for _ in 0..100 {
                writer.write_all(piece.as_bytes()).unwrap();
            }
        });
        // The client reads late. Replies must not accumulate in the server.
        std::thread::sleep(Duration::from_millis(500));
        let grown = resident_bytes(&program).saturating_sub(before);
        assert!(grown < 32 << 20, "{grown} bytes wait");
        let mut other = program.client();
        assert_eq!(other.say(&["PING"]), Reply::simple("PONG"));
        let (mut left, mut piece) = (MANY * 7, vec![0; 1 << 16]);
        while left > 0 {
            let len = read(&mut reader, &mut piece);
            assert!(len > 0 && len <= left);
            left -= len;
        }
    });
}

#[test]
fn hostile_clients_hurt_only_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path(), &["--appendonly", "no"]);
    let before = resident_bytes(&program);
    let mut half_open = Vec::new();
    for bytes in [
        // The client declares this length and never sends the bytes.
        b"*2\r\n$3\r\nGET\r\n$536870912\r\n".to_vec(),
        b"*1048576\r\n".to_vec(),
        b"*3\r\n$6\r\nBF.ADD\r\n".to_vec(),
        b"PIN".to_vec(),
        Vec::new(),
    ] {
        let mut stream = connect(program.address);
        stream.write_all(&bytes).unwrap();
        half_open.push(stream);
    }
    for (bytes, expected) in [
        (b"*2\r\n$3\r\nGET\r\n$2147483648\r\n".to_vec(), "invalid bulk length"),
        (b"*2147483648\r\n".to_vec(), "invalid multibulk length"),
        (b"*1\r\n:5\r\n".to_vec(), "expected '$'"),
        (vec![b'x'; 100_000], "too big inline request"),
        (b"GET \"unbalanced\r\n".to_vec(), "unbalanced quotes"),
    ] {
        let mut client = Client::connect(program.address);
        client.stream.write_all(&bytes).unwrap();
        let Some(Reply::Error(text)) = client.try_receive() else { panic!("{expected}") };
        assert!(text.contains(expected), "{text}");
        assert_eq!(client.try_receive(), None, "{expected}");
    }
    let mut client = program.client();
    client.stream.write_all(&b"*0\r\n".repeat(1_000_000)).unwrap();
    for (command, expected) in [
        ("BF.RESERVE k 1e-300 1073741824", "ERR"),
        ("BF.RESERVE k 0.01 1073741825", "capacity must be"),
        ("CF.RESERVE k 1073741825", "Capacity must be"),
        ("TM.RESERVE k KIND cuckoo ITEMS 18446744073709551615", "ERR"),
        ("SETBIT k 4294967296 1", "bit offset"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let Reply::Error(text) = client.say(&words) else { panic!("{command}") };
        assert!(text.contains(expected), "{command}: {text}");
    }
    assert_eq!(client.say(&["PING"]), Reply::simple("PONG"));
    let grown = resident_bytes(&program).saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes");
}

/// Starts a server as in a container with any user id: the user has no name and no home, and no
/// temporary folder exists.
#[cfg(unix)]
#[test]
fn a_server_needs_no_known_user_and_no_environment() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    use std::os::unix::process::CommandExt as _;

    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    std::fs::create_dir(&dir).unwrap();
    let mut ancestors = Path::new(env!("CARGO_BIN_EXE_tamis")).ancestors();
    let may_all_run = ancestors.all(|path| path.metadata().is_ok_and(|it| it.mode() & 1 == 1));
    let is_root = [folder.path(), &dir].iter().all(|path| chown(path, Some(54321), None).is_ok());
    let mut command = tamis("serve --port 0 --http-port no --dir");
    command.arg(&dir).env_clear().env("TMPDIR", "/dev/null/x").current_dir("/");
    if is_root && may_all_run {
        command.uid(54321);
    } else {
        println!("skipped: the server runs as another user");
    }
    let mut program = Program::start_command(command);
    assert_eq!(program.client().say(&["SET", "a", "1"]), Reply::ok());
    program.process.signal("TERM");
    assert!(program.process.wait().success());
    assert!(dir.join("log-0.tamis").exists());
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_server_with_open_connections() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::start(dir.path(), &[]);
    let mut client = program.client();
    let idle: Vec<_> = (0..20).map(|_| connect(program.address)).collect();
    let mut unfinished = connect(program.address);
    unfinished.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nz\r\n$100000\r\nhalf").unwrap();
    // A client sends commands with long replies, and reads no reply.
    let mut unread = connect(program.address);
    assert_eq!(client.say(&["SETBIT", "long", "80000000", "1"]), Reply::Integer(0));
    unread.write_all("GET long\r\n".repeat(20).as_bytes()).unwrap();
    assert_eq!(client.say(&["SET", "a", "1"]), Reply::ok());
    program.process.signal("TERM");
    assert!(program.process.wait().success());
    drop((idle, unfinished, unread));
    let program = Program::start(dir.path(), &[]);
    let mut client = program.client();
    assert_eq!(client.say(&["MGET", "a", "z"]), Reply::Array(vec![Reply::bulk("1"), Reply::Null]));
}
