//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tamis_commands::text::host;
use tamis_commands::{COMMANDS, Command, Env, Flag, Run, Words, find, text};
use tamis_resp::{Protocol, Reply};

use super::keys;
use crate::decoding::{Decoded, decode};
use crate::held_memory::Hold;
use crate::server::Shared;
use crate::session::{Keys, Session, at_present};
use crate::transaction::{Transaction, Watched};
use crate::users::{Refusal, User};

pub(super) fn multi(session: &mut Session) -> Reply {
    if session.transaction.is_some() {
        return Reply::error(host::NESTED_MULTI);
    }
    session.transaction = Some(Transaction::new(session.server.held.hold(0)));
    session.client.about.lock().queued = Some(0);
    Reply::ok()
}

pub(super) fn discard(session: &mut Session) -> Reply {
    if session.transaction.is_none() {
        return Reply::error(host::DISCARD_ALONE);
    }
    end(session);
    Reply::ok()
}

/// Ends the transaction, and forgets the watched keys.
pub(super) fn end(session: &mut Session) -> Option<Transaction> {
    session.client.about.lock().queued = None;
    session.watched.clear();
    session.transaction.take()
}

/// Runs the queued commands with no other command in between, and appends their replies to `out`. Replies that together
/// exceed the limit of one client are discarded and the connection ends, as in Redis; the effects of the commands stay.
///
/// # Errors
///
/// Returns the reply to a transaction that does not run.
pub(crate) async fn exec(
    session: &mut Session,
    env: &Env<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Reply> {
    if session.transaction.is_none() {
        return Err(Reply::error(host::EXEC_ALONE));
    }
    let none = Watched::new(session.server.held.hold(0));
    let watched = std::mem::replace(&mut session.watched, none);
    let transaction = end(session).expect("just seen");
    if transaction.is_broken {
        return Err(Reply::error(host::BROKEN_MULTI));
    }
    let prepared = Prepared::of(&transaction.queued).await;
    check_changes(session, &prepared)?;
    let allowed = allowed(session, &prepared).await;
    let server = session.server.clone();
    {
        // A transaction that will not run decodes no data.
        let (keys, now) = (server.keyspace.shared(), at_present(env).now_millis);
        if !watched.are_as_before(|key| keys.version(key, now)) {
            return Err(Reply::NullArray);
        }
    }
    let places = reserve_places(&server, &prepared).await;
    let decoded = match &allowed {
        Some(_) => decode_each(&server, &prepared, env, MAX_DECODED_BYTES).await,
        None => Vec::new(),
    };
    let mut decoded = decoded.into_iter().peekable();
    let is_meant = |lent: &[u8]| {
        prepared.iter().any(|(command, words)| {
            let changes = command.has(Flag::Write) || matches!(command.run, Run::Write(_));
            changes && (command.keys.first == 0 || command.keys.of(words).any(|key| key == lent))
        })
    };
    let alone = server.keyspace.exclusive_to_change(is_meant).await;
    let env = &at_present(env);
    if !watched.are_as_before(|key| alone.version(key, env.now_millis)) {
        return Err(Reply::NullArray);
    }
    // The log may have failed, or the memory been used up, while this waited for the keys.
    check_changes(session, &prepared)?;
    let mut group = None;
    if let Some(durable) = &server.durable {
        // All of it goes into one frame of the log.
        if durable.is_saving() {
            let bytes = prepared
                .iter()
                .map(|(command, words)| {
                    keys::image_bytes(command.name, words, env, Keys::Exclusive(&alone))
                })
                .fold(0, u64::saturating_add);
            if bytes > keys::MAX_IMAGE_BYTES {
                return Err(host::discarded(host::LARGE_WHILE_SAVING));
            }
        }
        group = Some(durable.log.begin_group());
    }
    let mut began = Instant::now();
    let mut config = session.server.config();
    // All replies are one, which `client-output-buffer-limit` lets be longer than the limit.
    let mut left_bytes = match config.output_limit.hard_bytes {
        0 => u64::MAX,
        bytes => bytes,
    };
    let memory_left = server.memory_left();
    let mut replies = Replies::new(
        left_bytes.min(memory_left.max(LEAST_KEPT_BYTES)),
        prepared.commands.len(),
        server.held.hold(0),
        out,
    );
    left_bytes = left_bytes.min(memory_left.max(LEAST_REPLY_BYTES) / 2);
    for (i, (command, words)) in prepared.iter().enumerate() {
        let decoded = decoded.next_if(|(of, _)| *of == i).map(|(_, decoded)| decoded);
        // It has no effect but a reply that nobody gets.
        if replies.are_discarded && command.has(Flag::ReadOnly) {
            continue;
        }
        let is_allowed = allowed.as_ref().is_some_and(|(user, version)| {
            Arc::ptr_eq(user, &session.user) && *version == server.users.version()
        });
        if !is_allowed && let Err(refusal) = check(session, command, words) {
            replies.push(&refusal, session.protocol);
            continue;
        }
        let keys = Keys::Exclusive(&alone);
        session.show(command, &[words], &config);
        let env = &Env {
            settings: &config.filters,
            max_reply_bytes: left_bytes.saturating_sub(replies.len()),
            ..*env
        };
        let reply = match (command.run, decoded) {
            (Run::Host, Some(decoded)) => {
                super::restore_decoded(&server, command, words, env, &alone, decoded)
            }
            (Run::Host, None) => super::run_with(session, command, words, env, keys),
            (_, decoded) => {
                let decoded = decoded.map(|decoded| decoded.map(Decoded::into_value));
                session.run_one_with(command, words, keys, env, decoded)
            }
        };
        if command.has(Flag::Admin) {
            // What it has set is for the commands behind it.
            config = session.server.config();
        }
        session.count_failure(command, &reply);
        replies.push(&reply, session.protocol);
        began = session.count(command, &[words], began, &config);
    }
    if replies.are_discarded {
        session.overflow();
    }
    drop(replies);
    // While nobody else has the keys.
    drop(group);
    drop(alone);
    drop(prepared);
    drop(places);
    if transaction.queued.len() > TURN_COMMANDS {
        // Giving the memory of a million commands back takes longer than others should wait.
        tokio::task::spawn_blocking(move || drop(transaction));
    }
    Ok(())
}

/// A transaction may have so many bytes of replies whatever memory is left.
const LEAST_REPLY_BYTES: u64 = 1 << 20;

/// Replies of a transaction are kept up to this many bytes whatever memory is left: those to short commands are not refused.
const LEAST_KEPT_BYTES: u64 = 16 << 20;

/// The replies of a transaction, encoded as they are made. Their memory is counted.
struct Replies<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    max_bytes: u64,
    held: Hold,
    /// They exceeded `max_bytes`: none of them are kept.
    are_discarded: bool,
}

impl<'o> Replies<'o> {
    fn new(max_bytes: u64, commands: usize, held: Hold, out: &'o mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(format!("*{commands}\r\n").as_bytes());
        Self { out, start, max_bytes, held, are_discarded: false }
    }

    fn len(&self) -> u64 {
        (self.out.len() - self.start) as u64
    }

    fn push(&mut self, reply: &Reply, protocol: Protocol) {
        if self.are_discarded {
            return;
        }
        reply.encode(protocol, self.out);
        if self.len() > self.max_bytes {
            self.are_discarded = true;
            self.out.truncate(self.start);
            self.out.shrink_to_fit();
        }
        self.held.set(self.out.capacity() as u64);
    }
}

/// Commands that are prepared before others have their turn.
const TURN_COMMANDS: usize = 4096;

/// The commands of a transaction, found in the table before the keys are locked.
struct Prepared<'t> {
    commands: Vec<(&'static Command, Range<usize>)>,
    words: Vec<&'t [u8]>,
    /// Each command once, in the order of their first use.
    distinct: Vec<&'static Command>,
}

impl<'t> Prepared<'t> {
    /// Prepares commands, with others in between.
    async fn of(queued: &'t [Vec<Vec<u8>>]) -> Self {
        let commands = Vec::with_capacity(queued.len());
        let mut prepared = Self { commands, words: Vec::new(), distinct: Vec::new() };
        let mut is_known = vec![false; COMMANDS.len()];
        for queued in queued.chunks(TURN_COMMANDS) {
            for words in queued {
                let command = find(&words[0]).expect("it was found when it was queued");
                if !std::mem::replace(&mut is_known[command.index()], true) {
                    prepared.distinct.push(command);
                }
                let start = prepared.words.len();
                prepared.words.extend(words.iter().map(Vec::as_slice));
                prepared.commands.push((command, start..prepared.words.len()));
            }
            if queued.len() == TURN_COMMANDS {
                tokio::task::yield_now().await;
            }
        }
        prepared
    }

    fn iter(&self) -> impl Iterator<Item = (&'static Command, Words<'_>)> {
        self.commands.iter().map(|(command, words)| (*command, &self.words[words.clone()]))
    }
}

/// Checks that the commands of a transaction may change something now.
fn check_changes(session: &Session, prepared: &Prepared<'_>) -> Result<(), Reply> {
    let config = session.server.config();
    for command in &prepared.distinct {
        session.check_change(command, &config).map_err(|why| host::discarded(&why))?;
    }
    Ok(())
}

/// Checks all commands of a transaction before the keys are locked, with others in between. Returns the user and the version
/// of the users for which all are allowed; `None` if one is not.
async fn allowed(session: &mut Session, prepared: &Prepared<'_>) -> Option<(Arc<User>, u64)> {
    let version = session.server.users.version();
    session.refresh_user().ok()?;
    let user = session.user.clone();
    for (i, (command, words)) in prepared.iter().enumerate() {
        user.check(command, words).ok()?;
        if (i + 1).is_multiple_of(TURN_COMMANDS) {
            tokio::task::yield_now().await;
        }
    }
    Some((user, version))
}

/// A transaction decodes data before it has the keys until the values take this many bytes: as much as the data of a
/// transaction, but compressed data becomes longer. Its commands decode the rest.
const MAX_DECODED_BYTES: u64 = 512 << 20;

/// Decodes the data of commands before the keys are locked, with others in between, until the values take `max_bytes`
/// bytes. Returns the values with the numbers of their commands.
///
/// Data is left to its command if the command is refused as the keys are now, and if there is no memory now: a command
/// before it may make room.
async fn decode_each(
    server: &Shared,
    prepared: &Prepared<'_>,
    env: &Env<'_>,
    max_bytes: u64,
) -> Vec<(usize, Result<Decoded, Reply>)> {
    let mut all = Vec::new();
    if !prepared.iter().any(|(command, words)| command.data(words).is_some()) {
        return all;
    }
    let mut left_bytes = max_bytes;
    let mut changed = Changed::new(server.held.hold(0));
    for (i, (command, words)) in prepared.iter().enumerate() {
        if (i + 1).is_multiple_of(TURN_COMMANDS) {
            tokio::task::yield_now().await;
        }
        if command.data(words).is_some() {
            // What a command before it leaves of the key is not known.
            if !changed.has(command, words)
                && super::refuses_data(command, words, &at_present(env), &server.keyspace.shared())
            {
                continue;
            }
            let decoded = decode(server, command, words, env).await.expect("it has data");
            if let Ok(decoded) = &decoded {
                left_bytes = left_bytes.saturating_sub(decoded.bytes());
            }
            if !matches!(&decoded, Err(refusal) if *refusal == Reply::error(host::MEMORY)) {
                all.push((i, decoded));
            }
            if left_bytes == 0 {
                break;
            }
            tokio::task::yield_now().await;
        }
        changed.note(command, words);
    }
    all
}

/// The keys that the first commands of a transaction may change.
struct Changed<'t> {
    keys: HashSet<&'t [u8]>,
    are_all: bool,
    held: Hold,
}

impl<'t> Changed<'t> {
    /// Returns none; what keys take is added to `held`.
    fn new(held: Hold) -> Self {
        Self { keys: HashSet::new(), are_all: false, held }
    }

    fn note(&mut self, command: &Command, words: Words<'t>) {
        if !command.may_change() {
            return;
        }
        match command.keys.first {
            0 => self.are_all = true,
            _ => self.keys.extend(command.keys.of(words)),
        }
        self.held.set((self.keys.capacity() * size_of::<&[u8]>()) as u64);
    }

    fn has(&self, command: &Command, words: Words<'_>) -> bool {
        self.are_all || command.keys.of(words).any(|key| self.keys.contains(key))
    }
}

/// Makes places for the new keys of a long transaction before the keys are locked, with others in between: a table that
/// grows moves all its keys.
async fn reserve_places(server: &Arc<Shared>, prepared: &Prepared<'_>) -> Option<Places> {
    if prepared.commands.len() <= TURN_COMMANDS {
        return None;
    }
    let mut hashes = Vec::new();
    for (i, (command, words)) in prepared.iter().enumerate() {
        if command.has(Flag::DenyOom) && command.keys.first != 0 {
            hashes.extend(server.keyspace.hash_of_new(words[command.keys.first]));
        }
        if (i + 1).is_multiple_of(TURN_COMMANDS) {
            tokio::task::yield_now().await;
        }
    }
    if hashes.len() <= TURN_COMMANDS {
        return None;
    }
    let places = Places(server.clone());
    let server = server.clone();
    let reserving = move || server.keyspace.reserve(hashes, server.memory_left());
    tokio::task::spawn_blocking(reserving).await.ok()?;
    Some(places)
}

/// Places that were made for new keys. Those that are not used are given back when this is dropped, which must not be while
/// the keys are locked.
struct Places(Arc<Shared>);

impl Drop for Places {
    fn drop(&mut self) {
        let server = self.0.clone();
        tokio::task::spawn_blocking(move || server.keyspace.shrink());
    }
}

/// Tells whether the user still may run what was queued: an operator, or a command before it, may have said otherwise.
fn check(session: &mut Session, command: &'static Command, words: Words<'_>) -> Result<(), Reply> {
    session.refresh_user()?;
    session.user.check(command, words).map_err(|refusal| {
        session.log_refusal(&refusal);
        text::acl::no_longer(matches!(refusal, Refusal::Key(_)))
    })
}

/// A client that watches more may watch no further key.
const MAX_WATCHED_BYTES: u64 = 512 << 20;

pub(super) fn watch(session: &mut Session, words: Words<'_>, env: &Env<'_>) -> Reply {
    if session.transaction.is_some() {
        return Reply::error(host::WATCH_IN_MULTI);
    }
    if session.server.memory_left() == 0 || session.watched.bytes() > MAX_WATCHED_BYTES {
        return Reply::error(host::MEMORY);
    }
    let server = session.server.clone();
    let keys = server.keyspace.shared();
    for key in &words[1..] {
        session.watched.watch(key, || keys.version(key, env.now_millis));
    }
    Reply::ok()
}

pub(super) fn unwatch(session: &mut Session) -> Reply {
    session.watched.clear();
    Reply::ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread::JoinHandle;
    use std::time::Duration;

    use tamis_commands::Value;
    use tamis_formats::RedisValue;

    use super::*;
    use crate::config::Config;
    use crate::server::Server;

    #[test]
    fn commands_without_keys_run_beside_a_transaction() {
        let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
        let server = Server::start(config).unwrap();
        let (shared, address) = (server.shared().clone(), server.addresses()[0]);
        let alone = server.shared().keyspace.exclusive();
        let (sender, replies) = mpsc::channel();
        std::thread::spawn(move || {
            let client = shared.clients.add(address, address, 0);
            let mut session = Session::new(shared.clone(), client.client.clone());
            for words in [&[&b"PING"[..]][..], &[b"CLIENT", b"ID"], &[b"TIME"], &[b"SELECT", b"0"]]
            {
                let mut out = Vec::new();
                crate::server::runtime().block_on(session.run(&[words], &mut out));
                sender.send(out).unwrap();
            }
        });
        for _ in 0..4 {
            let reply = replies.recv_timeout(Duration::from_secs(30)).expect("it waits");
            assert!(!reply.starts_with(b"-"));
        }
        drop(alone);
    }

    #[test]
    fn a_transaction_decodes_data_before_it_has_the_keys() {
        const LEN: usize = 300_000;
        let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
        let server = Server::start(config).unwrap();
        let (shared, address) = (server.shared().clone(), server.addresses()[0]);
        let payload = RedisValue::String(vec![b'x'; LEN]).to_payload();
        let held = server.shared().keyspace.shared();
        let running = std::thread::spawn(move || {
            let client = shared.clients.add(address, address, 0);
            let mut session = Session::new(shared.clone(), client.client.clone());
            let mut out = Vec::new();
            let commands: [&[&[u8]]; 7] = [
                &[b"MULTI"],
                &[b"RESTORE", b"a", b"0", &payload],
                &[b"RESTORE", b"a", b"0", &payload],
                &[b"TM.LOAD", b"b", b"no file"],
                &[b"RESTORE", b"a", b"0", b"no payload", b"REPLACE"],
                &[b"STRLEN", b"a"],
                &[b"EXEC"],
            ];
            crate::server::runtime().block_on(session.run(&commands, &mut out));
            String::from_utf8(out).unwrap()
        });
        let began = std::time::Instant::now();
        // The payloads that wait, and the values.
        while server.shared().held.bytes() < 4 * LEN as u64 {
            assert!(began.elapsed() < Duration::from_secs(30), "it waits for the keys");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(held);
        let replies = running.join().unwrap();
        let replies = replies.split_once("*5\r\n").unwrap().1;
        let lines: Vec<&str> = replies.lines().collect();
        assert_eq!((lines[0], lines[4]), ("+OK", format!(":{LEN}").as_str()), "{lines:?}");
        assert!(lines[1].starts_with("-BUSYKEY") && lines[2].starts_with("-ERR"), "{lines:?}");
        assert!(lines[3].starts_with("-ERR DUMP payload"), "{lines:?}");
        assert_eq!(server.shared().held.bytes(), 0);
    }

    /// Runs commands of a new client on another thread. Returns the replies.
    fn run_beside(server: &Server, commands: Vec<Vec<Vec<u8>>>) -> JoinHandle<String> {
        let (shared, address) = (server.shared().clone(), server.addresses()[0]);
        std::thread::spawn(move || {
            let client = shared.clients.add(address, address, 0);
            let mut session = Session::new(shared.clone(), client.client.clone());
            let words: Vec<Vec<&[u8]>> =
                commands.iter().map(|words| words.iter().map(Vec::as_slice).collect()).collect();
            let commands: Vec<&[&[u8]]> = words.iter().map(Vec::as_slice).collect();
            let mut out = Vec::new();
            crate::server::runtime().block_on(session.run(&commands, &mut out));
            String::from_utf8_lossy(&out).into_owned()
        })
    }

    fn words(words: &[&[u8]]) -> Vec<Vec<u8>> {
        words.iter().map(|word| word.to_vec()).collect()
    }

    /// Lends a key while `EXEC` of these commands waits for it; `meanwhile` runs then. Returns the replies.
    fn run_at_lent_key(
        server: &Server,
        key: &[u8],
        commands: Vec<Vec<Vec<u8>>>,
        meanwhile: impl FnOnce(),
    ) -> String {
        let shared = server.shared();
        let (begun, has_begun) = mpsc::channel();
        let (end, may_end) = mpsc::channel::<()>();
        std::thread::scope(|threads| {
            threads.spawn(move || {
                shared.keyspace.lend(key, 0, |_| {
                    begun.send(()).unwrap();
                    _ = may_end.recv();
                });
            });
            has_begun.recv().unwrap();
            let running = run_beside(server, commands);
            let began = std::time::Instant::now();
            while !shared.keyspace.is_awaited(key) {
                assert!(began.elapsed() < Duration::from_secs(60), "EXEC does not wait");
                std::thread::sleep(Duration::from_millis(1));
            }
            meanwhile();
            drop(end);
            running.join().unwrap()
        })
    }

    fn set_number(server: &Server, key: &[u8]) {
        server.shared().keyspace.shared().write(key, 0, |value| {
            *value = Some(Value::Bytes(b"1".to_vec().into()));
        });
    }

    fn number(server: &Server, key: &[u8]) -> String {
        run_beside(server, vec![words(&[b"GET", key])]).join().unwrap()
    }

    #[test]
    fn a_transaction_is_refused_if_memory_ends_while_it_waits() {
        let config = Config {
            port: 0,
            threads: 1,
            append_only: false,
            max_memory_bytes: 1 << 30,
            ..Config::default()
        };
        let server = Server::start(config).unwrap();
        set_number(&server, b"a");
        let commands = vec![words(&[b"MULTI"]), words(&[b"APPEND", b"a", b"2"]), words(&[b"EXEC"])];
        let mut hold = None;
        let replies = run_at_lent_key(&server, b"a", commands, || {
            hold = Some(server.shared().held.hold(2 << 30));
        });
        drop(hold);
        assert!(replies.contains("-EXECABORT") && replies.contains("OOM"), "{replies}");
        assert_eq!(number(&server, b"a"), "$1\r\n1\r\n");
    }

    #[test]
    fn a_transaction_is_refused_if_the_log_fails_while_it_waits() {
        let dir = tempfile::tempdir().unwrap();
        let config =
            Config { port: 0, threads: 1, dir: dir.path().to_owned(), ..Config::default() };
        let server = Server::start(config).unwrap();
        set_number(&server, b"a");
        let commands = vec![words(&[b"MULTI"]), words(&[b"INCR", b"a"]), words(&[b"EXEC"])];
        let replies = run_at_lent_key(&server, b"a", commands, || {
            for file in std::fs::read_dir(dir.path()).unwrap() {
                _ = std::fs::remove_file(file.unwrap().path());
            }
            let began = std::time::Instant::now();
            while server.shared().log_failure().is_none() {
                assert!(began.elapsed() < Duration::from_secs(60), "the log does not fail");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        assert!(replies.contains("-EXECABORT") && replies.contains("MISCONF"), "{replies}");
        assert_eq!(number(&server, b"a"), "$1\r\n1\r\n");
    }

    #[test]
    fn a_transaction_decodes_nothing_that_is_refused_anyway() {
        const LEN: usize = 1 << 20;
        let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
        let server = Server::start(config).unwrap();
        for key in [b"a", b"b", b"c"] {
            set_number(&server, key);
        }
        let payload = RedisValue::String(vec![b'x'; LEN]).to_payload();
        let mut commands = vec![words(&[b"MULTI"])];
        for _ in 0..50 {
            commands.push(words(&[b"RESTORE", b"a", b"0", &payload]));
        }
        commands.push(words(&[b"TM.LOAD", b"c", b"no file"]));
        // Here the key is free when its turn comes.
        commands.push(words(&[b"DEL", b"b"]));
        commands.push(words(&[b"RESTORE", b"b", b"0", &payload]));
        commands.push(words(&[b"EXEC"]));
        let queue_bytes = 51 * tamis_commands::allocation_bytes(payload.len());
        let mut held = 0;
        let replies =
            run_at_lent_key(&server, b"a", commands, || held = server.shared().held.bytes());
        assert!(held > queue_bytes + LEN as u64 - 1, "the last one is not decoded: {held}");
        assert!(held < queue_bytes + 3 * LEN as u64, "{held}");
        let replies = replies.split_once("*53\r\n").unwrap().1;
        let lines: Vec<&str> = replies.lines().collect();
        assert!(lines[..50].iter().all(|line| line.starts_with("-BUSYKEY")), "{lines:?}");
        assert!(lines[50].starts_with("-ERR"), "{lines:?}");
        assert_eq!(lines[51..], [":1", "+OK"]);
    }

    #[test]
    fn a_transaction_decodes_nothing_if_a_watched_key_has_changed() {
        let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
        let server = Server::start(config).unwrap();
        let payload = RedisValue::String(vec![b'x'; 1 << 20]).to_payload();
        // Long data waits for this to be decoded.
        let copies = &server.shared().copies;
        let all = copies.try_acquire_many(copies.available_permits() as u32).unwrap();
        let running = run_beside(
            &server,
            vec![
                words(&[b"WATCH", b"w"]),
                words(&[b"SET", b"w", b"1"]),
                words(&[b"MULTI"]),
                words(&[b"RESTORE", b"a", b"0", &payload]),
                words(&[b"EXEC"]),
            ],
        );
        let began = std::time::Instant::now();
        while !running.is_finished() && began.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(running.is_finished(), "it decodes the payload");
        drop(all);
        let replies = running.join().unwrap();
        assert!(replies.ends_with("+QUEUED\r\n*-1\r\n"), "{replies}");
    }

    #[test]
    fn data_beyond_a_limit_is_left_to_its_command() {
        const LEN: u64 = 100_000;
        let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
        let server = Server::start(config).unwrap();
        let payload = RedisValue::String(vec![b'x'; LEN as usize]).to_payload();
        let queued: Vec<_> =
            (0..4).map(|_| words(&[b"RESTORE", b"a", b"0", &payload, b"REPLACE"])).collect();
        let config = server.shared().config();
        let env = Env::new(&config.filters, Protocol::Resp2, 0);
        let decoded = crate::server::runtime().block_on(async {
            let prepared = Prepared::of(&queued).await;
            decode_each(server.shared(), &prepared, &env, LEN * 3 / 2).await
        });
        let places: Vec<usize> = decoded.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [0, 1]);
    }
}
