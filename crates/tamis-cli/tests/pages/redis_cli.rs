//! The part of `redis-cli` that the pages use, for machines without `redis-cli`.

#[path = "../../../../tests/exchanges/client.rs"]
mod client;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::Command;

use client::Client;
use tamis_resp::Reply;

/// Finds the machine's `redis-cli`, if it is of Redis 7 or newer, which has `-D` and `-X`.
pub fn of_the_machine() -> Option<PathBuf> {
    let output = Command::new("redis-cli").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let major: u32 = text.trim().strip_prefix("redis-cli ")?.split('.').next()?.parse().ok()?;
    (major >= 7).then(|| "redis-cli".into())
}

/// The format of replies.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// The format for a terminal.
    Shown,
    Raw,
    Json,
}

/// Runs the command in the arguments after `--`.
#[test]
#[ignore = "the pages call it in place of redis-cli"]
fn stand_in() {
    let mut words = std::env::args().skip_while(|word| word != "--").skip(1);
    let (mut port, mut user, mut password) = (0, None, std::env::var("REDISCLI_AUTH").ok());
    let (mut form, mut end) = (Form::Shown, "\n".to_owned());
    // The argument that is read from stdin: the last one, or the one that `-X` names.
    let (mut last_is_stdin, mut stdin_name) = (false, None);
    let mut command: Vec<Vec<u8>> = Vec::new();
    while let Some(word) = words.next() {
        let mut next = || words.next().expect("an option has a value");
        match &*word {
            _ if !command.is_empty() => command.push(word.into()),
            "--no-raw" => form = Form::Shown,
            "--raw" => form = Form::Raw,
            "--json" => form = Form::Json,
            "-p" => port = next().parse().expect("a port"),
            "-D" => end = next(),
            "-x" => last_is_stdin = true,
            "-X" => stdin_name = Some(next()),
            "--user" => user = Some(next()),
            "--pass" | "-a" => password = Some(next()),
            "--no-auth-warning" => {}
            option if option.starts_with('-') => panic!("the stand-in does not know {option}"),
            _ => command.push(word.into()),
        }
    }
    if last_is_stdin || stdin_name.is_some() {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).unwrap();
        match stdin_name {
            None => command.push(bytes),
            Some(name) => {
                let place = command.iter().position(|word| *word == name.as_bytes());
                command[place.expect("the word for stdin")] = bytes;
            }
        }
    }
    let mut client = Client::connect(([127, 0, 0, 1], port).into());
    if let Some(password) = password {
        let user = user.unwrap_or_else(|| "default".into());
        assert_eq!(client.say(&["AUTH", &user, &password]), Reply::ok());
    }
    if form == Form::Json {
        client.say(&["HELLO", "3"]);
    }
    let reply = client.say(&command);
    let mut bytes = match form {
        Form::Shown => shown(&reply, "").into_bytes(),
        Form::Raw => raw(&reply),
        Form::Json => json(&reply).into_bytes(),
    };
    if form == Form::Raw {
        bytes.extend(end.as_bytes());
    } else if !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    // Stdout belongs to the test harness.
    let mut output = File::options().append(true).open("/dev/fd/3").unwrap();
    output.write_all(&bytes).unwrap();
}

/// Writes a reply in the format for a terminal. `indent` is the text before each line of an array
/// except the first.
fn shown(reply: &Reply, indent: &str) -> String {
    match reply {
        Reply::Simple(text) => text.to_string(),
        Reply::Error(text) => format!("(error) {text}"),
        Reply::Integer(number) => format!("(integer) {number}"),
        Reply::Bulk(bytes) => quoted(bytes),
        Reply::Null | Reply::NullArray => "(nil)".into(),
        Reply::Array(replies) if replies.is_empty() => "(empty array)".into(),
        Reply::Array(replies) => {
            let width = replies.len().to_string().len();
            let inner = format!("{indent}{}", " ".repeat(width + 2));
            let lines = (1..).zip(replies).map(|(number, reply)| {
                let before = if number == 1 { "" } else { indent };
                format!("{before}{number:width$}) {}", shown(reply, &inner))
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        other => panic!("the stand-in does not show {other:?}"),
    }
}

fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', byte.into()]),
            b' '..=b'~' => text.push(byte.into()),
            b'\n' => text += "\\n",
            b'\r' => text += "\\r",
            b'\t' => text += "\\t",
            _ => text += &format!("\\x{byte:02x}"),
        }
    }
    text + "\""
}

fn raw(reply: &Reply) -> Vec<u8> {
    match reply {
        Reply::Simple(text) | Reply::Error(text) => text.as_bytes().to_vec(),
        Reply::Integer(number) => number.to_string().into(),
        Reply::Bulk(bytes) => bytes.clone(),
        Reply::Null | Reply::NullArray => Vec::new(),
        Reply::Array(replies) => replies.iter().map(raw).collect::<Vec<_>>().join(&b'\n'),
        other => panic!("the stand-in does not print {other:?}"),
    }
}

fn json(reply: &Reply) -> String {
    match reply {
        Reply::Simple(text) => format!("{text:?}"),
        Reply::Bulk(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        Reply::Integer(number) => number.to_string(),
        Reply::Double(number) => number.to_string(),
        Reply::Bool(value) => value.to_string(),
        Reply::Null | Reply::NullArray => "null".into(),
        Reply::Array(replies) => {
            format!("[{}]", replies.iter().map(json).collect::<Vec<_>>().join(","))
        }
        Reply::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("{}:{}", json(key), json(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
        }
        other => panic!("the stand-in has no JSON for {other:?}"),
    }
}
