//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.

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
    session.transaction = Some(Transaction::default());
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
    for words in &transaction.queued {
        let command = find(&words[0]).expect("it was found when it was queued");
        if let Err(why) = session.check_change(command, &config) {
            return host::discarded(&why);
        }
    }
    let server = session.server.clone();
    let is_meant = |lent: &[u8]| {
        transaction.queued.iter().any(|words| {
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let command = find(words[0]).expect("it was found when it was queued");
            let mut keys = command.keys.of(&words);
            let changes = command.has(Flag::Write) || matches!(command.run, Run::Write(_));
            changes && (command.keys.first == 0 || keys.any(|key| key == lent))
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
        let bytes: u64 = transaction
            .queued
            .iter()
            .map(|words| {
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                let name = find(words[0]).expect("it was found when it was queued").name;
                keys::image_bytes(name, &words, env, Keys::Exclusive(&alone))
            })
            .fold(0, u64::saturating_add);
        if durable.is_saving() && bytes > keys::MAX_IMAGE_BYTES {
            return host::discarded(host::LARGE_WHILE_SAVING.trim_start_matches("ERR "));
        }
        group = Some(durable.log.begin_group());
    }
    let replies = transaction.queued.iter().map(|words| {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let command = find(words[0]).expect("it was found when it was queued");
        if let Err(refusal) = check(session, command, &words) {
            return refusal;
        }
        let keys = Keys::Exclusive(&alone);
        let began = Instant::now();
        // With what a CONFIG SET before it has set.
        let config = session.server.config();
        session.show(command, &[&words], &config);
        let env = &Env { settings: &config.filters, ..*env };
        let reply = match command.run {
            Run::Host => super::run_with(session, command, &words, env, keys),
            _ => session.run_one(command, &words, keys, env),
        };
        session.count_failure(command, &reply);
        session.count(command, &[&words], began, &config);
        reply
    });
    let replies = Reply::Array(replies.collect());
    // While nobody else has the keys.
    drop(group);
    replies
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
