//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.

use std::ops::Range;
use std::time::Instant;

use tamis_commands::text::host;
use tamis_commands::{Command, Env, Flag, Run, Words, find, text};
use tamis_resp::Reply;

use super::keys;
use crate::session::{Keys, Session, at_present};
use crate::transaction::Transaction;
use crate::users::Refusal;

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

/// Runs what waits, with no other command in between.
pub(super) async fn exec(session: &mut Session, env: &Env<'_>) -> Reply {
    if session.transaction.is_none() {
        return Reply::error(host::EXEC_ALONE);
    }
    let watched = std::mem::take(&mut session.watched);
    let transaction = end(session).expect("just seen");
    if transaction.is_broken {
        return Reply::error(host::BROKEN_MULTI);
    }
    let config = session.server.config();
    let prepared = Prepared::of(&transaction.queued).await;
    let mut checked: Option<&'static Command> = None;
    for &(command, _) in &prepared.commands {
        // Neighbours are mostly of one command.
        if checked.is_some_and(|it| std::ptr::eq(it, command)) {
            continue;
        }
        checked = Some(command);
        if let Err(why) = session.check_change(command, &config) {
            return host::discarded(&why);
        }
    }
    let server = session.server.clone();
    let is_meant = |lent: &[u8]| {
        prepared.iter().any(|(command, words)| {
            let changes = command.has(Flag::Write) || matches!(command.run, Run::Write(_));
            changes && (command.keys.first == 0 || command.keys.of(words).any(|key| key == lent))
        })
    };
    let alone = server.keyspace.exclusive_to_change(is_meant).await;
    let env = &at_present(env);
    let is_as_watched =
        watched.iter().all(|(key, version)| alone.version(key, env.now_millis) == *version);
    if !is_as_watched {
        return Reply::NullArray;
    }
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
                return host::discarded(host::LARGE_WHILE_SAVING.trim_start_matches("ERR "));
            }
        }
        group = Some(durable.log.begin_group());
    }
    let mut began = Instant::now();
    let mut config = session.server.config();
    let replies = prepared.iter().map(|(command, words)| {
        if let Err(refusal) = check(session, command, words) {
            return refusal;
        }
        let keys = Keys::Exclusive(&alone);
        session.show(command, &[words], &config);
        let env = &Env { settings: &config.filters, ..*env };
        let reply = match command.run {
            Run::Host => super::run_with(session, command, words, env, keys),
            _ => session.run_one(command, words, keys, env),
        };
        if command.name == "CONFIG" {
            // What it has set is for the commands behind it.
            config = session.server.config();
        }
        session.count_failure(command, &reply);
        began = session.count(command, &[words], began, &config);
        reply
    });
    let replies = Reply::Array(replies.collect());
    // While nobody else has the keys.
    drop(group);
    drop(alone);
    drop(prepared);
    if transaction.queued.len() > TURN_COMMANDS {
        // Giving the memory of a million commands back takes longer than others should wait.
        tokio::task::spawn_blocking(move || drop(transaction));
    }
    replies
}

/// Commands that are prepared before others have their turn.
const TURN_COMMANDS: usize = 4096;

/// The commands of a transaction, found in the table before the keys are locked.
struct Prepared<'t> {
    commands: Vec<(&'static Command, Range<usize>)>,
    words: Vec<&'t [u8]>,
}

impl<'t> Prepared<'t> {
    /// Prepares commands, with others in between.
    async fn of(queued: &'t [Vec<Vec<u8>>]) -> Self {
        let commands = Vec::with_capacity(queued.len());
        let mut prepared = Self { commands, words: Vec::new() };
        for queued in queued.chunks(TURN_COMMANDS) {
            for words in queued {
                let command = find(&words[0]).expect("it was found when it was queued");
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

/// Tells whether the user still may run what was queued: an operator, or a command before it, may have said otherwise.
fn check(session: &mut Session, command: &'static Command, words: Words<'_>) -> Result<(), Reply> {
    session.refresh_user()?;
    session.user.check(command, words).map_err(|refusal| {
        session.log_refusal(&refusal);
        text::acl::no_longer(matches!(refusal, Refusal::Key(_)))
    })
}

pub(super) fn watch(session: &mut Session, words: Words<'_>, env: &Env<'_>) -> Reply {
    if session.transaction.is_some() {
        return Reply::error(host::WATCH_IN_MULTI);
    }
    let server = session.server.clone();
    let keys = server.keyspace.shared();
    for key in &words[1..] {
        let version = || keys.version(key, env.now_millis);
        session.watched.entry(key.to_vec()).or_insert_with(version);
    }
    Reply::ok()
}

pub(super) fn unwatch(session: &mut Session) -> Reply {
    session.watched.clear();
    Reply::ok()
}
