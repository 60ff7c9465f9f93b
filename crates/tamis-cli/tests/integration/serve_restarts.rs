//! A model test of the whole server. It sends random commands from the rows of the table to a
//! server that is stopped and killed repeatedly, and to a server without a log that never stops.
//! Both must give equal replies, and must have equal values after each start.
//!
//! Values that depend on the time are compared as follows. Expiry times are far in the future and
//! may differ by minutes. A time window stores when its slices began, so its bytes differ: the test
//! compares its parameters and its answers. Replies that depend on the time or on the random order
//! of the keys are not compared (see [`is_comparable`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::program::tamis;
use crate::random_commands::{Argv, Generator, ITEMS, is_random, item, make_each};
use crate::server::Program;
use tamis_commands::{COMMANDS, Settings};
use tamis_resp::Reply;
use tamis_testing::{CommandExt as _, Random};

/// The unit that a client sends: a command, or a transaction.
#[derive(Clone)]
enum Unit {
    One(Argv),
    Group(Vec<Argv>),
}

impl std::fmt::Debug for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let commands: Vec<String> = self.commands().iter().map(shown).collect();
        match self {
            Unit::One(_) => f.write_str(&commands[0]),
            Unit::Group(_) => write!(f, "MULTI; {}; EXEC", commands.join("; ")),
        }
    }
}

/// Formats a command for a message.
fn shown(argv: &Argv) -> String {
    let word = |word: &Vec<u8>| match word.len() {
        0 => "\"\"".to_owned(),
        1..100 => word.escape_ascii().to_string(),
        len => format!("{} ... ({len} bytes)", word[..60].escape_ascii()),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

impl Unit {
    fn commands(&self) -> &[Argv] {
        match self {
            Unit::One(argv) => std::slice::from_ref(argv),
            Unit::Group(all) => all,
        }
    }

    fn send(&self, client: &mut Client) -> std::io::Result<()> {
        match self {
            Unit::One(argv) => client.try_send(argv),
            Unit::Group(all) => {
                client.try_send(&["MULTI"])?;
                all.iter().try_for_each(|argv| client.try_send(argv))?;
                client.try_send(&["EXEC"])
            }
        }
    }

    /// Waits for the replies to the commands. Returns `None` if the server ends before the last
    /// reply.
    fn receive(&self, client: &mut Client) -> Option<Vec<Reply>> {
        let Unit::Group(all) = self else { return Some(vec![client.try_receive()?]) };
        for _ in 0..=all.len() {
            client.try_receive()?;
        }
        // If the server rejects a command before queueing it, EXEC aborts the transaction.
        match client.try_receive()? {
            Reply::Array(replies) => Some(replies),
            other => Some(vec![other; all.len()]),
        }
    }

    fn run(&self, client: &mut Client) -> Vec<Reply> {
        self.send(client).unwrap();
        self.receive(client).expect("the server ended")
    }
}

/// The state of a key as the server reports it.
#[derive(Debug)]
struct Found {
    kind: Reply,
    /// The reply to `DUMP`; for a time window, its parameters and answers.
    value: Vec<Reply>,
    expires_millis: i64,
}

impl PartialEq for Found {
    fn eq(&self, other: &Self) -> bool {
        let has_time = |it: &Self| it.expires_millis >= 0;
        self.kind == other.kind
            && self.value == other.value
            && has_time(self) == has_time(other)
            && self.expires_millis.abs_diff(other.expires_millis) < TIMES_DIFFER_MILLIS
    }
}

/// The maximum difference between the times at which the two servers run a command.
const TIMES_DIFFER_MILLIS: u64 = 600_000;

/// Reads all keys and their values.
fn found(client: &mut Client) -> BTreeMap<Vec<u8>, Found> {
    let Reply::Array(keys) = client.say(&["KEYS", "*"]) else { panic!("KEYS") };
    let keys = keys.into_iter().map(|key| match key {
        Reply::Bulk(key) => key,
        other => panic!("{other:?}"),
    });
    let mut of_key = |key: Vec<u8>| {
        let kind = client.say(&[b"TYPE", &key[..]]);
        let Reply::Integer(expires_millis) = client.say(&[b"PEXPIRETIME", &key[..]]) else {
            panic!("PEXPIRETIME")
        };
        let value = value_of(client, &key);
        (key, Found { kind, value, expires_millis })
    };
    keys.map(&mut of_key).collect()
}

/// Reads the parts of a value that the test compares.
fn value_of(client: &mut Client, key: &[u8]) -> Vec<Reply> {
    if !is_timed_window(client, key) {
        return vec![client.say(&[b"DUMP", key])];
    }
    let mut words = vec![b"TM.MEXISTS".to_vec(), key.to_vec()];
    words.extend((0..ITEMS).map(item));
    let info = client.say(&[b"TM.INFO", key]);
    vec![client.say(&words), comparable_info(info)]
}

fn is_timed_window(client: &mut Client, key: &[u8]) -> bool {
    let Reply::Array(fields) = client.say(&[b"TM.INFO", key]) else { return false };
    fields.contains(&Reply::simple("span_millis"))
}

/// Removes the fields of a `TM.INFO` reply that depend on the time, or on memory that is allocated
/// in advance.
fn comparable_info(info: Reply) -> Reply {
    without(info, &["items_per_second", "forecast", "forecast_days", "bytes", "bits_per_item"])
}

/// Removes fields from a reply of names and values.
fn without(info: Reply, names: &[&'static str]) -> Reply {
    let Reply::Array(mut fields) = info else { return info };
    for name in names {
        if let Some(at) = fields.iter().position(|it| *it == Reply::simple(*name)) {
            fields.drain(at..(at + 2).min(fields.len()));
        }
    }
    Reply::Array(fields)
}

/// Returns true if two equal servers must give equal replies to a command.
fn is_comparable(argv: &Argv) -> bool {
    let is_size = argv.get(2).is_some_and(|word| word.eq_ignore_ascii_case(b"SIZE"));
    match &argv[0][..] {
        // These replies depend on the order of keys in their table, or on memory that is allocated
        // in advance.
        b"SCAN" | b"RANDOMKEY" | b"MEMORY" | b"BF.DEBUG" => false,
        b"BF.INFO" => !is_size,
        // An expired key counts until the server deletes it.
        b"DBSIZE" => false,
        _ => true,
    }
}

/// Returns true if two equal servers may give these two replies to a command.
fn are_alike(argv: &Argv, one: &Reply, other: &Reply) -> bool {
    match (&argv[0][..], one, other) {
        (
            b"TTL" | b"PTTL" | b"EXPIRETIME" | b"PEXPIRETIME",
            Reply::Integer(a),
            Reply::Integer(b),
        ) => (*a < 0) == (*b < 0) && a.abs_diff(*b) < TIMES_DIFFER_MILLIS,
        (b"KEYS", Reply::Array(a), Reply::Array(b)) => {
            let sorted = |keys: &[Reply]| -> BTreeSet<String> {
                keys.iter().map(|key| format!("{key:?}")).collect()
            };
            sorted(a) == sorted(b)
        }
        (b"TM.INFO", ..) => comparable_info(one.clone()) == comparable_info(other.clone()),
        (b"BF.INFO", ..) if argv.len() == 2 => {
            without(one.clone(), &["Size"]) == without(other.clone(), &["Size"])
        }
        // The dump of a time window contains times. Values are compared after each start.
        (b"DUMP" | b"TM.DUMP", Reply::Bulk(a), Reply::Bulk(b)) => a.len() == b.len(),
        (b"BF.SCANDUMP", Reply::Array(a), Reply::Array(b)) => a.len() == b.len(),
        _ => !is_comparable(argv) || one == other,
    }
}

/// The server that is stopped and killed repeatedly, and the server that never stops.
struct World<'d> {
    dir: &'d Path,
    random: Random,
    generator: Generator,
    program: Option<Program>,
    client: Client,
    steady: Client,
    steady_program: Program,
    /// The settings that both servers have. A server loses them when it stops.
    settings: BTreeMap<&'static str, String>,
    /// Names of commands that succeeded.
    succeeded: BTreeSet<Vec<u8>>,
    /// The steps so far, for the message of a failure.
    done: Vec<String>,
}

const HASH_KEY: &str = "000102030405060708090a0b0c0d0e0f";

impl<'d> World<'d> {
    fn new(dir: &'d Path, seed: u64) -> Self {
        let steady = Program::start(dir, &["--appendonly", "no", "--hash-key", HASH_KEY]);
        let mut random = Random(seed);
        let program = start(dir, &mut random);
        Self {
            dir,
            random,
            generator: Generator::new(),
            client: program.client(),
            program: Some(program),
            steady: steady.client(),
            steady_program: steady,
            settings: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            done: Vec::new(),
        }
    }

    fn units(&mut self) -> Vec<Unit> {
        let count = 1 + self.random.below(12);
        let mut unit = || {
            if self.random.one_in(6) {
                let count = self.random.below(6);
                Unit::Group((0..count).map(|_| self.generator.command(&mut self.random)).collect())
            } else {
                Unit::One(self.generator.command(&mut self.random))
            }
        };
        (0..count).map(|_| unit()).collect()
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..70 => {
                let units = self.units();
                units.iter().try_for_each(|unit| unit.send(&mut self.client)).expect("it runs");
                for unit in units {
                    let replies = unit.receive(&mut self.client);
                    self.follow(&unit, replies.as_deref())?;
                }
            }
            70..78 => self.copy_by_chunks()?,
            78..84 => self.change_setting(),
            84..92 => {
                let save = self.random.pick(&["SAVE", "BGSAVE", "BGREWRITEAOF"]);
                self.done.push(save.to_owned());
                // The server may reject it because it is writing a snapshot.
                self.client.say(&[save]);
            }
            92..95 => {
                let sync = self.random.pick(&["always", "everysec", "no"]);
                assert_eq!(self.client.say(&["CONFIG", "SET", "appendfsync", sync]), Reply::ok());
            }
            _ => self.restart()?,
        }
        Ok(())
    }

    /// Sends the same commands to the server that never stops, and compares the replies, if any.
    fn follow(&mut self, unit: &Unit, replies: Option<&[Reply]>) -> Result<(), String> {
        let mut text = format!("{unit:?}");
        text.truncate(text.floor_char_boundary(600));
        self.done.push(text);
        let expected = unit.run(&mut self.steady);
        let replies = replies.unwrap_or(&expected);
        if expected.len() != replies.len() {
            return Err(format!("{unit:?} has {replies:?} instead of {expected:?}"));
        }
        for ((argv, reply), expected) in unit.commands().iter().zip(replies).zip(&expected) {
            if !are_alike(argv, reply, expected) {
                return Err(format!(
                    "{} has the reply {reply:?}\ninstead of {expected:?}",
                    shown(argv)
                ));
            }
            self.generator.note(argv, reply);
            if !matches!(reply, Reply::Error(_)) {
                self.succeeded.insert(argv[0].clone());
            }
        }
        Ok(())
    }

    /// Copies a filter as RedisBloom's clients do.
    fn copy_by_chunks(&mut self) -> Result<(), String> {
        let family = self.random.pick(&["bf", "cf"]);
        let key = |random: &mut Random| {
            format!("{family}:{}", random.pick(&["a", "b", "c"])).into_bytes()
        };
        let (from, to) = (key(&mut self.random), key(&mut self.random));
        if self.random.one_in(2) {
            self.say(vec![b"DEL".to_vec(), to.clone()])?;
        }
        let name = |name: &str| format!("{}.{name}", family.to_uppercase()).into_bytes();
        let mut number = 0;
        loop {
            let text = number.to_string().into_bytes();
            let reply = self.say(vec![name("SCANDUMP"), from.clone(), text])?;
            let Reply::Array(parts) = reply else { return Ok(()) };
            let [Reply::Integer(next), Reply::Bulk(chunk)] = &parts[..] else { return Ok(()) };
            if *next == 0 || self.random.one_in(10) {
                return Ok(());
            }
            number = *next;
            let text = number.to_string().into_bytes();
            self.say(vec![name("LOADCHUNK"), to.clone(), text, chunk.clone()])?;
        }
    }

    fn say(&mut self, argv: Argv) -> Result<Reply, String> {
        let unit = Unit::One(argv);
        let replies = unit.run(&mut self.client);
        self.follow(&unit, Some(&replies))?;
        Ok(replies.into_iter().next().expect("one"))
    }

    fn change_setting(&mut self) {
        let name = Settings::ALL[self.random.below(Settings::ALL.len())].name;
        let value = value_of_setting(name, &mut self.random);
        self.done.push(format!("CONFIG SET {name} {value}"));
        for client in [&mut self.client, &mut self.steady] {
            assert_eq!(client.say(&["CONFIG", "SET", name, &value]), Reply::ok(), "{name} {value}");
        }
        self.settings.insert(name, value);
    }

    /// Ends the server in some way, starts it again, and compares all values.
    fn restart(&mut self) -> Result<(), String> {
        let mut program = self.program.take().expect("it runs");
        let mut unanswered = Vec::new();
        let how = self.random.below(4);
        self.done.push(["SHUTDOWN", "SIGTERM", "kill -9", "kill -9 amid commands"][how].to_owned());
        match how {
            0 => {
                self.client.send(&["SHUTDOWN"]);
                program.process.wait();
            }
            1 => {
                program.process.signal("TERM");
                program.process.wait();
            }
            2 => drop(program),
            _ => {
                let units = self.units();
                let sent = units.iter().try_for_each(|unit| unit.send(&mut self.client));
                sent.expect("it runs");
                std::thread::sleep(Duration::from_micros(self.random.below(3000) as u64));
                drop(program);
                let mut units = units.into_iter();
                for unit in units.by_ref() {
                    let Some(replies) = unit.receive(&mut self.client) else {
                        unanswered.push(unit);
                        break;
                    };
                    self.follow(&unit, Some(&replies))?;
                }
                unanswered.extend(units);
            }
        }
        while self.random.one_in(4) {
            let _killed = command(self.dir, &mut self.random).start();
            std::thread::sleep(Duration::from_millis(self.random.below(40) as u64));
        }
        let program = start(self.dir, &mut self.random);
        self.client = program.client();
        self.program = Some(program);
        for (name, value) in &self.settings {
            assert_eq!(self.client.say(&["CONFIG", "SET", name, value]), Reply::ok());
        }
        self.compare(unanswered)
    }

    /// Compares all values. Any number of the unanswered commands, in order, may have taken effect.
    fn compare(&mut self, unanswered: Vec<Unit>) -> Result<(), String> {
        let recovered = found(&mut self.client);
        let mut unanswered = unanswered.into_iter();
        loop {
            let expected = found(&mut self.steady);
            if recovered == expected {
                return Ok(());
            }
            let Some(unit) = unanswered.next() else {
                return Err(difference(&recovered, &expected));
            };
            self.follow(&unit, None)?;
        }
    }
}

fn command(dir: &Path, random: &mut Random) -> std::process::Command {
    let sync = random.pick(&["always", "everysec", "no"]);
    let mut command = tamis("serve --port 0 --http-port no");
    command.args(["--hash-key", HASH_KEY]);
    command.args(["--appendfsync", sync, "--dir"]).arg(dir).stderr(std::process::Stdio::null());
    command
}

fn start(dir: &Path, random: &mut Random) -> Program {
    let sync = random.pick(&["always", "everysec", "no"]);
    Program::start(dir, &["--appendfsync", sync, "--hash-key", HASH_KEY])
}

fn value_of_setting(name: &str, random: &mut Random) -> String {
    let number = match name {
        "bf-layout" => return random.pick(&["tamis", "redisbloom"]).to_owned(),
        "bf-error-rate" => return random.pick(&["0.1", "0.01", "0.0001"]).to_owned(),
        "bf-initial-size" | "cf-initial-size" => 8 + random.below(100),
        "bf-expansion-factor" | "cf-expansion-factor" => random.below(4),
        "cf-bucket-size" => 1 + random.below(4),
        "cf-max-iterations" => 1 + random.below(30),
        "cf-max-expansions" => 1 + random.below(6),
        _ => panic!("no values for {name}"),
    };
    number.to_string()
}

/// Describes the differences in a few lines.
fn difference(found: &BTreeMap<Vec<u8>, Found>, expected: &BTreeMap<Vec<u8>, Found>) -> String {
    let keys: BTreeSet<&Vec<u8>> = found.keys().chain(expected.keys()).collect();
    let differing = keys.into_iter().filter(|key| found.get(*key) != expected.get(*key));
    let lines = differing.map(|key| {
        let text = |all: &BTreeMap<Vec<u8>, Found>| match all.get(key) {
            None => "nothing".to_owned(),
            Some(Found { kind, value, expires_millis }) => {
                let value: Vec<String> = value.iter().map(shown_reply).collect();
                format!("{kind:?} that expires at {expires_millis}, {}", value.join(", "))
            }
        };
        let name = key.escape_ascii();
        format!("\"{name}\" is {}\ninstead of {}", text(found), text(expected))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats a reply for a message. For bytes, lists at most 400 that are not zero.
fn shown_reply(reply: &Reply) -> String {
    let Reply::Bulk(bytes) = reply else { return format!("{reply:?}") };
    let bytes = bytes.iter().enumerate().filter(|(_, byte)| **byte != 0).take(400);
    let bytes: Vec<String> = bytes.map(|(at, byte)| format!("{at}:{byte:02x}")).collect();
    bytes.join(" ")
}

/// Runs random steps, and returns the commands that succeeded.
fn explore(seed: u64, steps: usize) -> BTreeSet<Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new(dir.path(), seed);
    let mut run = || -> Result<(), String> {
        (0..steps).try_for_each(|_| world.step())?;
        world.restart()
    };
    let why = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut run)) {
        Ok(Ok(())) => return world.succeeded,
        Ok(Err(why)) => why,
        Err(_) => "a server gave no answer, or the test failed".to_owned(),
    };
    let last = world.done.len().saturating_sub(60);
    let logs: Vec<String> =
        world.program.into_iter().chain([world.steady_program]).map(end_of_log).collect();
    let (done, logs) = (world.done[last..].join("\n"), logs.join("\n"));
    panic!("seed {seed}: {why}\nafter\n{done}\nand the servers logged\n{logs}");
}

/// Stops a server, and returns its stderr.
fn end_of_log(mut program: Program) -> String {
    program.process.kill();
    program.stderr.rest()
}

#[test]
fn a_server_that_restarts_again_and_again_is_like_one_that_never_ended() {
    // A seed from the environment repeats a failure that a search found.
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("TAMIS_MODEL_SEED") {
        explore(seed, STEPS);
        return;
    }
    // `cargo xtask soak` sets the duration of the search. Each search starts from another seed.
    if let Some(seconds) = number("TAMIS_MODEL_SECONDS") {
        let first = u64::from(std::process::id()) * 1_000_003;
        let started = Instant::now();
        for seed in first.. {
            explore(seed, STEPS);
            if started.elapsed().as_secs() >= seconds {
                return;
            }
        }
    }
    let mut never: BTreeSet<&[u8]> =
        COMMANDS.iter().filter(|row| is_random(row)).map(|row| row.name.as_bytes()).collect();
    for seed in 0..MOST_SEEDS {
        if seed >= SEEDS && never.is_empty() {
            return;
        }
        for name in explore(seed, STEPS) {
            never.remove(&name[..]);
        }
    }
    let never: Vec<_> = never.into_iter().map(String::from_utf8_lossy).collect();
    assert!(never.is_empty(), "never without an error: {never:?}");
}

/// The number of steps of a run.
const STEPS: usize = 150;

/// The number of runs of the test.
const SEEDS: u64 = 4;

/// The maximum number of runs. Further runs follow until each command has succeeded once: the
/// moment of a kill decides which commands a server answers, and which random commands follow.
const MOST_SEEDS: u64 = 40;

#[test]
fn each_command_about_keys_can_be_made_from_its_row() {
    make_each();
    for setting in Settings::ALL {
        value_of_setting(setting.name, &mut Random(0));
    }
}
