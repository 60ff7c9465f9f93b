//! Permissions: tests every command of the table with users of all kinds.

use crate::client::Client;
use crate::support::{config, connect, start};
use tamis_commands::{COMMANDS, Command, Flag, Permission};
use tamis_resp::Reply;
use tamis_server::{Config, Server};

/// Connects a client, and authenticates it.
#[track_caller]
fn login(server: &Server, user: &str, password: &str) -> Client {
    let mut client = connect(server);
    assert_eq!(client.say(&["AUTH", user, password]), Reply::ok());
    client
}

fn text(reply: &Reply) -> &str {
    match reply {
        Reply::Error(text) | Reply::Simple(text) => text,
        _ => "",
    }
}

/// Returns the shortest valid form of a command, with `key` for its keys and all other arguments.
fn words(action: Permission, key: &str) -> Vec<String> {
    let command = action.command;
    let mut words = vec![command.name.to_owned()];
    words.extend(action.subcommand.map(|it| it.name.to_owned()));
    let last_key = action.subcommand.map_or(command.keys, |it| it.keys).first;
    let least = command.arity.number().unsigned_abs() as usize;
    words.resize(words.len().max(least).max(last_key + 1), key.to_owned());
    words
}

/// Tests whether a command runs before authentication. Every user may run it.
fn is_for_all(command: &Command) -> bool {
    command.has(Flag::NoAuth)
}

/// Tests whether a command ends the connection or changes its user.
fn is_ending(command: &Command) -> bool {
    ["SHUTDOWN", "QUIT", "HELLO", "AUTH", "RESET"].contains(&command.name)
}

#[test]
fn a_user_with_all_but_one_command_is_denied_only_that_one() {
    let (_server, mut operator) = start(1);
    for refused in Permission::all() {
        let name = refused.name();
        operator.ask(&format!("ACL SETUSER u reset on nopass ~* +@all -{name}"));
        for asked in Permission::all() {
            let is_within =
                refused.subcommand.is_none() && refused.command.name == asked.command.name;
            let is_refused =
                (asked.index() == refused.index() || is_within) && !is_for_all(asked.command);
            let mut asking = vec!["ACL".to_owned(), "DRYRUN".to_owned(), "u".to_owned()];
            asking.extend(words(asked, "key"));
            let reply = operator.say(&asking);
            let expected = if is_refused {
                let name = asked.name();
                Reply::bulk(format!("User u has no permissions to run the '{name}' command"))
            } else {
                Reply::ok()
            };
            assert_eq!(reply, expected, "-{name}: {asking:?}");
        }
    }
}

#[test]
fn a_user_with_one_command_may_run_it_and_no_other() {
    let (server, mut operator) = start(1);
    for allowed in Permission::all().filter(|it| !is_ending(it.command)) {
        let name = allowed.name();
        let rule = format!("+{name}");
        operator.say(&["ACL", "SETUSER", "u", "reset", "on", "nopass", "~*", &rule]);
        let mut client = login(&server, "u", "x");
        let reply = client.say(&words(allowed, "key"));
        assert!(!text(&reply).starts_with("NO"), "{name}: {reply:?}");
        if allowed.command.name == "MULTI" {
            client.say(&["RESET"]);
            client.say(&["AUTH", "u", "x"]);
        }
        for other in COMMANDS.iter().filter(|it| !is_for_all(it)) {
            if other.name == allowed.command.name {
                continue;
            }
            let action = Permission { command: other, subcommand: None };
            let reply = client.say(&words(action, "key"));
            let expected =
                format!("NOPERM User u has no permissions to run the '{}' command", action.name());
            assert_eq!(text(&reply), expected, "with +{name}");
        }
    }
}

#[test]
fn before_authentication_only_noauth_commands_run() {
    let password = "secret".to_owned();
    let server = Server::start(Config { password, ..config() }).unwrap();
    for command in COMMANDS {
        for action in Permission::of_command(command) {
            let mut client = connect(&server);
            let reply = client.say(&words(action, "1"));
            let is_refused = text(&reply) == "NOAUTH Authentication required.";
            assert_eq!(is_refused, !is_for_all(command), "{}: {reply:?}", action.name());
        }
    }
    let mut client = connect(&server);
    client.say(&["AUTH", "secret"]);
    assert_eq!(client.say(&["DBSIZE"]), Reply::Integer(0), "and nothing has changed");
    // Commands sent directly after it are refused too.
    let mut client = connect(&server);
    for _ in 0..100 {
        client.send(&["BF.ADD", "k", "a"]);
    }
    for _ in 0..100 {
        assert!(text(&client.receive()).starts_with("NOAUTH"));
    }
}

#[test]
fn no_command_touches_a_key_that_is_not_allowed() {
    let (server, mut operator) = start(1);
    operator.say(&["ACL", "SETUSER", "u", "on", "nopass", "+@all", "~allowed:*"]);
    operator.say(&["SET", "other", "1"]);
    let mut client = login(&server, "u", "x");
    let mut seen = 0;
    for action in Permission::all().filter(|it| !is_ending(it.command)) {
        let words = words(action, "other");
        let bytes: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let keys = action.command.keys_of(&bytes).count();
        let mut one_of_many = words.clone();
        if let Some(first) = words.iter().position(|word| word == "other") {
            one_of_many[first] = "allowed:1".to_owned();
        }
        for (words, is_refused) in [(words, keys > 0), (one_of_many, keys > 1)] {
            if !is_refused {
                continue;
            }
            seen += 1;
            let refused = Reply::error("NOPERM No permissions to access a key");
            assert_eq!(client.say(&words), refused, "{words:?}");
            client.say(&["MULTI"]);
            assert_eq!(client.say(&words), refused, "{words:?}, queued");
            client.say(&["DISCARD"]);
        }
    }
    assert!(seen > 60, "{seen}");
    assert_eq!(operator.say(&["GET", "other"]), Reply::bulk("1"));
}

#[test]
fn permissions_are_checked_for_each_command_of_a_batch() {
    let (server, mut operator) = start(1);
    operator.say(&["ACL", "SETUSER", "u", "on", "nopass", "+bf.add", "+bf.exists", "~a"]);
    let mut client = login(&server, "u", "x");
    let keys = ["a", "a", "b", "b", "a", "b", "a"];
    for key in keys {
        client.send(&["BF.ADD", key, "item"]);
    }
    for key in keys {
        assert_eq!(matches!(client.receive(), Reply::Error(_)), key == "b");
    }
    for name in ["BF.EXISTS", "BF.MEXISTS", "BF.EXISTS", "BF.MADD", "BF.ADD"] {
        client.send(&[name, "a", "item"]);
    }
    let refused: Vec<bool> = (0..5).map(|_| matches!(client.receive(), Reply::Error(_))).collect();
    assert_eq!(refused, [false, true, false, true, false]);
    assert_eq!(operator.say(&["EXISTS", "b"]), Reply::Integer(0));
}

#[test]
fn changes_of_users_apply_to_open_connections() {
    let (server, mut operator) = start(1);
    operator.say(&["ACL", "SETUSER", "u", "on", ">pw", "+@all", "~*"]);
    let mut client = login(&server, "u", "pw");
    assert_eq!(client.say(&["SET", "k", "1"]), Reply::ok());
    operator.say(&["ACL", "SETUSER", "u", "-set", "resetpass", ">new"]);
    assert!(text(&client.say(&["SET", "k", "1"])).starts_with("NOPERM"));
    assert_eq!(client.say(&["GET", "k"]), Reply::bulk("1"));
    assert!(operator.text(&["CLIENT", "LIST"]).contains(" user=u "));

    // After its user is turned off or deleted, the connection ends, even if a new user gets the
    // same name.
    for gone in [&["ACL", "SETUSER", "u", "off"][..], &["ACL", "DELUSER", "u"]] {
        operator.say(&["ACL", "SETUSER", "u", "on", "nopass", "allcommands"]);
        let mut client = login(&server, "u", "x");
        operator.say(gone);
        operator.say(&["ACL", "SETUSER", "u", "on", "nopass", "allcommands"]);
        // The server may send an error first, or close the connection at once.
        _ = client.try_send(&["PING"]);
        let reply = client.try_receive();
        assert!(reply.is_none_or(|reply| text(&reply).starts_with("NOAUTH")), "{gone:?}");
        assert_eq!(client.try_receive(), None, "{gone:?}");
    }

    // An operator may remove its own user and gets the reply before the connection ends.
    let mut client = login(&server, "u", "x");
    assert_eq!(client.say(&["ACL", "DELUSER", "u"]), Reply::Integer(1));
    assert_eq!(client.try_receive(), None);

    // In a transaction the connection ends too, and no later command of the transaction runs.
    operator.say(&["ACL", "SETUSER", "u", "on", "nopass", "allcommands", "allkeys"]);
    let mut client = login(&server, "u", "x");
    client.say(&["MULTI"]);
    for queued in
        [&["ACL", "DELUSER", "u"][..], &["SET", "a", "1"], &["SET", "b", "2"], &["SET", "c", "3"]]
    {
        assert_eq!(client.say(queued), Reply::simple("QUEUED"));
    }
    let replies = client.list(&["EXEC"]);
    assert_eq!(replies[0], Reply::Integer(1));
    assert!(replies[1..].iter().all(|reply| text(reply).starts_with("NOAUTH")), "{replies:?}");
    assert_eq!(operator.say(&["EXISTS", "a", "b", "c"]), Reply::Integer(0));

    let mut one = connect(&server);
    one.say(&["PING"]);
    assert_eq!(operator.say(&["ACL", "SETUSER", "default", "off"]), Reply::ok());
    assert_eq!((operator.try_receive(), one.try_receive()), (None, None));
    let mut client = connect(&server);
    assert!(text(&client.say(&["PING"])).starts_with("NOAUTH"));
    assert!(text(&client.say(&["AUTH", "default", "x"])).starts_with("WRONGPASS"));
}

#[test]
fn requirepass_is_the_password_of_the_default_user() {
    let (server, mut operator) = start(1);
    assert_eq!(operator.say(&["CONFIG", "SET", "requirepass", "one"]), Reply::ok());
    assert_eq!(operator.say(&["PING"]), Reply::simple("PONG"), "who was in stays in");
    let mut client = connect(&server);
    assert!(text(&client.say(&["PING"])).starts_with("NOAUTH"));
    assert_eq!(client.say(&["AUTH", "one"]), Reply::ok());
    operator.say(&["ACL", "SETUSER", "default", ">two"]);
    for password in ["one", "two"] {
        login(&server, "default", password);
    }
    operator.say(&["CONFIG", "SET", "requirepass", ""]);
    assert_eq!(connect(&server).say(&["PING"]), Reply::simple("PONG"));
    // A connection that waits for a password no longer needs one after the change.
    operator.say(&["CONFIG", "SET", "requirepass", "three"]);
    let mut waiting = connect(&server);
    assert!(text(&waiting.say(&["PING"])).starts_with("NOAUTH"));
    operator.say(&["ACL", "SETUSER", "default", "nopass"]);
    assert_eq!(waiting.say(&["PING"]), Reply::simple("PONG"));
}

#[test]
fn users_are_loaded_and_saved() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("users.acl");
    let with = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Server::start(Config { users_file: Some(path.clone()), ..config() })
    };
    for (bad, expected) in [
        ("user a on\nuser b +nothing\n", "users.acl:2:"),
        ("users", "users.acl:1:"),
        ("user a\nuser a", "twice"),
    ] {
        let refused = with(bad).unwrap_err().to_string();
        assert!(refused.starts_with("aclfile: ") && refused.contains(expected), "{refused}");
    }
    let missing = Config { users_file: Some(dir.path().join("none")), ..config() };
    let refused = Server::start(missing).unwrap_err().to_string();
    assert!(refused.contains("none: cannot be read"), "{refused}");

    let server =
        with("user default off\nuser admin on >root ~* +@all\nuser a on nopass\n").unwrap();
    assert!(text(&connect(&server).say(&["PING"])).starts_with("NOAUTH"));
    let mut admin = login(&server, "admin", "root");
    admin.say(&["ACL", "SETUSER", "b", "on", ">pw", "~b:*", "+@bloom"]);
    assert_eq!(admin.say(&["ACL", "SAVE"]), Reply::ok());
    let saved = std::fs::read_to_string(&path).unwrap();
    assert!(saved.contains("user b on #") && saved.contains("~b:* resetchannels -@all +@bloom"));
    assert!(!saved.contains("root") && !saved.contains("pw"), "{saved}");

    let mut a = login(&server, "a", "x");
    let before = admin.list(&["ACL", "LIST"]);
    std::fs::write(&path, "user admin on\nuser x +nothing\n").unwrap();
    assert!(text(&admin.say(&["ACL", "LOAD"])).contains("users.acl:2:"));
    assert_eq!(admin.say(&["ACL", "LIST"]), Reply::Array(before));
    let without_a: String =
        saved.lines().filter(|it| !it.contains("user a ")).collect::<Vec<_>>().join("\n");
    std::fs::write(&path, without_a).unwrap();
    assert_eq!(admin.say(&["ACL", "LOAD"]), Reply::ok());
    assert_eq!(a.try_receive(), None, "a is gone, and its connection");
    login(&server, "b", "pw");
    assert_eq!(admin.say(&["ACL", "WHOAMI"]), Reply::bulk("admin"));
}

#[test]
fn a_server_for_the_network_needs_a_closed_default_user() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("users.acl");
    let open = Config {
        bind: vec!["0.0.0.0".parse().unwrap()],
        users_file: Some(path.clone()),
        ..config()
    };
    std::fs::write(&path, "user a on >pw +@all ~*\n").unwrap();
    let refused = Server::start(open.clone()).unwrap_err().to_string();
    assert!(refused.contains("--aclfile"), "{refused}");
    std::fs::write(&path, "user default off\nuser a on >pw +@all ~*\n").unwrap();
    let server = Server::start(open).unwrap();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], server.addresses()[0].port()));
    let mut a = Client::connect(address);
    assert_eq!(a.say(&["AUTH", "a", "pw"]), Reply::ok());
    for opening in
        [&["ACL", "SETUSER", "default", "on", "nopass"][..], &["CONFIG", "SET", "requirepass", ""]]
    {
        assert!(matches!(a.say(opening), Reply::Error(_)), "{opening:?}");
    }
}

#[test]
fn acl_log_lists_denied_commands() {
    let (server, mut operator) = start(1);
    operator.say(&["ACL", "SETUSER", "u", "on", ">pw", "+get", "+multi", "~a"]);
    let mut client = connect(&server);
    client.say(&["AUTH", "u", "wrong"]);
    client.say(&["AUTH", "u", "pw"]);
    client.say(&["SET", "a", "1"]);
    client.say(&["GET", "b"]);
    client.say(&["GET", "b"]);
    client.say(&["MULTI"]);
    client.say(&["GET", "c"]);
    let entries = operator.list(&["ACL", "LOG", "2"]);
    assert_eq!(entries.len(), 2);
    let entries = operator.list(&["ACL", "LOG"]);
    let shown: Vec<_> = entries
        .iter()
        .map(|entry| {
            let Reply::Array(fields) = entry else { panic!() };
            let at = |i: usize| match &fields[2 * i + 1] {
                Reply::Bulk(text) => String::from_utf8(text.clone()).unwrap(),
                Reply::Integer(number) => number.to_string(),
                other => panic!("{other:?}"),
            };
            [at(0), at(1), at(2), at(3), at(4)].join(" ")
        })
        .collect();
    let expected = ["1 key multi c u", "2 key toplevel b u", "1 command toplevel set u"];
    assert_eq!(shown, expected.into_iter().chain(["1 auth toplevel AUTH u"]).collect::<Vec<_>>());
    operator.say(&["CONFIG", "SET", "acllog-max-len", "1"]);
    client.say(&["GET", "d"]);
    assert!(matches!(operator.say(&["ACL", "LOG"]), Reply::Array(all) if all.len() == 1));
}

#[test]
fn generated_passwords_have_the_requested_bits() {
    let (_server, mut client) = start(1);
    let mut made = |bits: Option<&str>| {
        let words: Vec<&str> = ["ACL", "GENPASS"].into_iter().chain(bits).collect();
        let Reply::Bulk(text) = client.say(&words) else { panic!() };
        assert!(text.iter().all(u8::is_ascii_hexdigit));
        text
    };
    for (bits, digits) in
        [(None, 64), (Some("1"), 1), (Some("4"), 1), (Some("5"), 2), (Some("4096"), 1024)]
    {
        assert_eq!(made(bits).len(), digits, "{bits:?}");
    }
    assert_ne!(made(None), made(None));
}

#[test]
fn names_and_passwords_of_any_bytes_are_accepted_or_rejected_safely() {
    let (server, mut operator) = start(1);
    let long = vec![b'n'; 100_000];
    for name in
        [&b"\x1b[31m"[..], b"a\"b'c", "имя".as_bytes(), &[0xff, 0xfe], b"default2", b"%s%n", &long]
    {
        let words: [&[u8]; 6] = [b"ACL", b"SETUSER", name, b"on", b">p w\r\n\0", b"+@all"];
        assert_eq!(operator.say(&words), Reply::ok());
        let mut client = connect(&server);
        assert_eq!(client.say(&[&b"AUTH"[..], name, b"p w\r\n\0"]), Reply::ok());
        assert_eq!(client.say(&["ACL", "WHOAMI"]), Reply::bulk(name));
        client.say(&["CLIENT", "LIST"]);
        client.say(&["GET", "k"]);
        for wrong in [&b""[..], b"p", b"p w\r\n", b"p w\r\n\0\0"] {
            let refused = connect(&server).say(&[&b"AUTH"[..], name, wrong]);
            assert!(text(&refused).starts_with("WRONGPASS"));
        }
    }
    for name in ["", " ", "a b", "a\nuser b on nopass", "\0", "a\u{b}"] {
        assert!(
            matches!(operator.say(&["ACL", "SETUSER", name, "on"]), Reply::Error(_)),
            "{name:?}"
        );
    }
    assert_eq!(operator.say(&["PING"]), Reply::simple("PONG"));
}
