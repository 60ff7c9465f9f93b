//! The model test: clients, the log, a snapshot and crashes in every order, on a simulated disk.
//!
//! The state machine, the file jobs, the snapshot's writer, recovery and the keyspace are the real ones. Only what threads
//! do is modelled: each step below is what one of them does between two moments at which another may come in between.
//!
//! After each crash the oracle compares the recovered keys with the history of the log:
//!
//! * The state is that after some prefix of the history, each change in it exactly once, transactions whole.
//! * The prefix has everything that was answered, and everything that an answer rests on, such as "already present". With
//!   [`Sync::Always`] this holds for a power loss, with the other modes for a process that is killed.
//! * The prefix has everything that was synced, whatever the mode.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tamis_commands::{Batch, Env, Expandable, Run, Settings, Value, find};
use tamis_resp::Protocol;

use super::disk::Disk;
use super::error::DurabilityError;
use super::log::{LogCore, SyncJob};
use super::log_file::LogFile;
use super::record::Record;
use super::recover::{forget, recover};
use super::sim_disk::{Fault, Random, SimDisk};
use super::snapshot::SnapshotWriter;
use super::state::{FileJob, LogState, Needs, Settled, Sync};
use crate::keyspace::Keyspace;

const DIR: &str = "/data";

/// A change of the history, with the position behind its frame.
#[derive(Clone, Debug)]
struct Logged {
    changes: Vec<Change>,
    end: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Change {
    Inserted(Vec<u32>),
    Incremented(&'static str),
    Removed(&'static str),
}

/// What a client does next.
#[derive(Clone, Debug)]
enum Op {
    /// `BF.MADD filter item item`
    Insert([u32; 2]),
    /// `INCR key`
    Increment(&'static str),
    /// `DEL key`
    Remove(&'static str),
    /// `MULTI`, `INCR one`, `INCR other`, `EXEC`
    Transaction,
}

/// Where a client is.
#[derive(Debug)]
enum Client {
    Idle,
    /// An insert has a ticket.
    Begun {
        ticket: u64,
        items: [u32; 2],
    },
    /// It has set its bits; these items were new.
    Set {
        ticket: u64,
        items: [u32; 2],
        hashes: Vec<u64>,
        new: Vec<u32>,
    },
    /// It is inside of a transaction, with so many changes to come.
    InTransaction {
        left: usize,
    },
    /// It waits to answer.
    Answers {
        needs: Needs,
        items: Vec<u32>,
        end: u64,
    },
}

/// Where a snapshot is.
enum Saver {
    Idle,
    /// The log goes on in another file from this position on, once that exists.
    Rotates {
        number: u64,
        position: u64,
    },
    /// These keys are written.
    Writes {
        number: u64,
        writer: SnapshotWriter<'static>,
        left: Vec<&'static str>,
    },
    /// The moment is noted at which a filter is read that others change meanwhile.
    Reads {
        number: u64,
        writer: SnapshotWriter<'static>,
        left: Vec<&'static str>,
        noted: (u64, Option<u64>),
    },
    /// The log is synced up to here.
    Syncs {
        number: u64,
        writer: SnapshotWriter<'static>,
        until: u64,
    },
}

/// A step that some thread can do now.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Client(usize),
    TakeFileJob,
    DoFileJob,
    TakeSync,
    DoSync,
    Saver,
}

const KEYS: [&str; 4] = ["filter", "one", "other", "alone"];

/// A process on a disk, with its clients.
struct World {
    disk: SimDisk,
    keyspace: Keyspace,
    core: LogCore,
    now_millis: u64,
    clients: Vec<(Client, Vec<Op>)>,
    saves: usize,
    saver: Saver,
    file_job: Option<(Arc<LogFile>, FileJob)>,
    sync_job: Option<SyncJob>,
    history: Vec<Logged>,
    /// What answers rest on: items, and positions of the log.
    promised_items: BTreeSet<u32>,
    promised_end: u64,
    group: Vec<Change>,
}

fn item(number: u32) -> Vec<u8> {
    format!("item:{number}").into_bytes()
}

/// Runs a command on its key as the server does.
fn run(keyspace: &Keyspace, words: &[&[u8]]) {
    let settings = Settings::default();
    let (protocol, now_millis, items_per_second) = (Protocol::Resp2, 0, None);
    let env = Env { settings: &settings, protocol, now_millis, items_per_second };
    let keys = keyspace.shared();
    match find(words[0]).expect("a command").run {
        Run::Write(run) => _ = keys.change(words[1], 0, |value| run(value, words, &env)),
        _ => _ = keys.remove(words[1], 0),
    }
}

/// Tells which items are in the filter.
fn contains(keyspace: &Keyspace, items: &[u32]) -> Vec<bool> {
    let items: Vec<Vec<u8>> = items.iter().map(|number| item(*number)).collect();
    let row = find(b"BF.EXISTS").and_then(|row| row.items).expect("it has items");
    keyspace.shared().read(b"filter", 0, |value| {
        let mut batch = Batch::default();
        let words: Vec<[&[u8]; 3]> =
            items.iter().map(|item| [&b"BF.EXISTS"[..], b"filter", item]).collect();
        words.iter().for_each(|words| batch.push(words));
        let mut answers = batch.run(row, value, 0).expect("a read");
        let replies = words.iter().map(|words| answers.next_reply(row, words.len()));
        replies.map(|reply| reply == tamis_resp::Reply::Bool(true)).collect()
    })
}

fn counter(keyspace: &Keyspace, key: &str) -> i64 {
    keyspace.shared().read(key.as_bytes(), 0, |value| match value {
        Some(Value::Bytes(bytes)) => {
            let text = String::from_utf8(bytes.to_vec(0..bytes.len())).expect("a number");
            text.parse().expect("a number")
        }
        _ => 0,
    })
}

impl World {
    /// Starts a process on a disk.
    fn start(disk: SimDisk, sync: Sync, history: Vec<Logged>) -> Result<Self, DurabilityError> {
        let keyspace = Keyspace::new();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let found = recover(&shared, Path::new(DIR), &keyspace)?;
        let core = LogCore::new(shared, Path::new(DIR), found.file, found.end, sync);
        Ok(Self {
            disk,
            keyspace,
            core,
            now_millis: 0,
            clients: Vec::new(),
            saves: 0,
            saver: Saver::Idle,
            file_job: None,
            sync_job: None,
            history,
            promised_items: BTreeSet::new(),
            promised_end: 0,
            group: Vec::new(),
        })
    }

    /// Starts the first process, creates the filter, and makes that durable.
    fn first(sync: Sync) -> Self {
        let mut world = Self::start(SimDisk::default(), sync, Vec::new()).expect("an empty disk");
        let filter = Expandable::reserve(1000, 1e-9, None).expect("a filter");
        let value = Value::Bloom(Box::new(filter));
        let image = value.new_image();
        world.keyspace.shared().replace(b"filter", value, None);
        let record = Record::Image { key: b"filter", expires_millis: None, image: &image };
        world.append(&record, Vec::new());
        world.core.with(|state| _ = state.want_sync());
        while world.core.run_file_job(0) || world.core.run_sync(0) {}
        assert_eq!(
            world.core.with(|state| (state.synced(), state.failure().is_some())),
            (world.end(), false)
        );
        world
    }

    fn end(&self) -> u64 {
        self.core.with(|state| state.end())
    }

    fn append(&mut self, record: &Record<'_>, changes: Vec<Change>) {
        self.core.with(|state| state.append(|out| record.encode(out)));
        if self.core.with(|state| state.group_bytes().is_some()) {
            self.group.extend(changes);
        } else {
            let end = self.end();
            self.history.push(Logged { changes, end });
        }
    }

    /// Tells whether a thread is alone with the keys.
    fn is_exclusive(&self) -> bool {
        self.clients.iter().any(|(client, _)| matches!(client, Client::InTransaction { .. }))
    }

    /// Tells whether an insert holds the lock of the filter, shared.
    fn is_inserting(&self) -> bool {
        let inserts = |client: &Client| matches!(client, Client::Begun { .. } | Client::Set { .. });
        self.clients.iter().any(|(client, _)| inserts(client))
    }

    /// Returns the steps that can be done now.
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let may_change = !self.is_exclusive();
        for (i, (client, ops)) in self.clients.iter().enumerate() {
            let can = match client {
                Client::Idle => match ops.last() {
                    Some(Op::Transaction) => may_change && !self.is_inserting(),
                    Some(_) => may_change,
                    None => false,
                },
                Client::Begun { .. } | Client::Set { .. } | Client::InTransaction { .. } => true,
                Client::Answers { needs, .. } => {
                    let settled = |state: &mut LogState| {
                        state.settle(&mut needs.clone(), true, self.now_millis)
                    };
                    self.core.with(settled) != Settled::Waits
                }
            };
            steps.extend(can.then_some(Step::Client(i)));
        }
        if self.file_job.is_some() {
            steps.push(Step::DoFileJob);
        } else if self.core.with(|state| state.has_file_job()) {
            steps.push(Step::TakeFileJob);
        }
        if self.sync_job.is_some() {
            steps.push(Step::DoSync);
        } else if self.core.with(|state| state.has_sync(self.now_millis)) {
            steps.push(Step::TakeSync);
        }
        let is_alone = may_change && !self.is_inserting();
        let can_save = match &self.saver {
            Saver::Idle => self.saves > 0 && is_alone,
            Saver::Rotates { .. } => {
                self.core.with(|state| state.rotated().is_some() || state.failure().is_some())
            }
            // A small value is read with its lock, and not within a transaction.
            Saver::Writes { left, .. } => left.is_empty() || is_alone,
            Saver::Reads { .. } => true,
            Saver::Syncs { until, .. } => {
                self.core.with(|state| state.is_durable(*until) || state.failure().is_some())
            }
        };
        steps.extend(can_save.then_some(Step::Saver));
        steps
    }

    fn do_step(&mut self, step: Step) {
        self.now_millis += 300;
        match step {
            Step::Client(i) => self.client(i),
            Step::TakeFileJob => self.file_job = self.core.take_file_job(),
            Step::DoFileJob => {
                let (file, job) = self.file_job.take().expect("taken before");
                self.core.do_file_job(&file, job, self.now_millis);
            }
            Step::TakeSync => self.sync_job = self.core.take_sync(self.now_millis),
            Step::DoSync => self.core.do_sync(self.sync_job.take().expect("taken before")),
            Step::Saver => self.save(),
        }
    }

    fn client(&mut self, i: usize) {
        let client = std::mem::replace(&mut self.clients[i].0, Client::Idle);
        let next = match client {
            Client::Idle => match self.clients[i].1.pop().expect("an op") {
                Op::Insert(items) => {
                    Client::Begun { ticket: self.core.with(LogState::begin_insert), items }
                }
                Op::Increment(key) => {
                    self.change(&[b"INCR", key.as_bytes()], Change::Incremented(key));
                    self.answers(Vec::new())
                }
                Op::Remove(key) => {
                    if counter(&self.keyspace, key) > 0 {
                        self.change(&[b"DEL", key.as_bytes()], Change::Removed(key));
                    }
                    self.answers(Vec::new())
                }
                Op::Transaction => {
                    self.core.with(LogState::begin_group);
                    Client::InTransaction { left: 2 }
                }
            },
            Client::Begun { ticket, items } => {
                let words: Vec<Vec<u8>> = items.iter().map(|number| item(*number)).collect();
                let words: [&[u8]; 4] = [b"BF.MADD", b"filter", &words[0], &words[1]];
                let row = find(b"BF.MADD").and_then(|row| row.items).expect("it has items");
                let before = contains(&self.keyspace, &items);
                let mut batch = Batch::default();
                batch.push(&words);
                self.keyspace.shared().insert(b"filter", 0, |value| {
                    batch.run(row, value, 0).expect("the filter has room").count_ones() > 0
                });
                let new = items.iter().zip(before).filter(|(_, was)| !was);
                let mut new: Vec<u32> = new.map(|(item, _)| *item).collect();
                new.dedup();
                Client::Set { ticket, items, hashes: batch.new_hashes(), new }
            }
            Client::Set { ticket, items, hashes, new } => {
                assert_eq!(hashes.len(), new.len());
                if !hashes.is_empty() {
                    let record = Record::Inserted { now_millis: 0, key: b"filter", hashes };
                    self.append(&record, vec![Change::Inserted(new)]);
                }
                self.core.with(|state| state.end_insert(ticket));
                self.answers(items.to_vec())
            }
            Client::InTransaction { left: 0 } => {
                self.core.with(LogState::end_group);
                let (changes, end) = (std::mem::take(&mut self.group), self.end());
                self.history.push(Logged { changes, end });
                self.answers(Vec::new())
            }
            Client::InTransaction { left } => {
                let key = ["one", "other"][left - 1];
                self.change(&[b"INCR", key.as_bytes()], Change::Incremented(key));
                Client::InTransaction { left: left - 1 }
            }
            Client::Answers { mut needs, items, end } => {
                let now = self.now_millis;
                if self.core.with(|state| state.settle(&mut needs, true, now)) == Settled::Ready {
                    self.promised_items.extend(items);
                    self.promised_end = self.promised_end.max(end);
                }
                Client::Idle
            }
        };
        self.clients[i].0 = next;
    }

    /// Runs a command with the lock of its key, and logs it.
    fn change(&mut self, words: &[&[u8]], change: Change) {
        run(&self.keyspace, words);
        let record = Record::Command { now_millis: 0, words: words.to_vec() };
        self.append(&record, vec![change]);
    }

    fn answers(&self, items: Vec<u32>) -> Client {
        Client::Answers { needs: self.core.with(|state| state.needs()), items, end: self.end() }
    }

    fn save(&mut self) {
        let saver = std::mem::replace(&mut self.saver, Saver::Idle);
        self.saver = match saver {
            Saver::Idle => {
                self.saves -= 1;
                match self.core.rotate() {
                    Ok((number, position)) => Saver::Rotates { number, position },
                    Err(_) => Saver::Idle,
                }
            }
            Saver::Rotates { number, position } => {
                // While the log cannot be written, the snapshot is given up. The rotation may happen later.
                match self.core.with(|state| state.rotated()).unwrap_or(Err(String::new())) {
                    Ok(()) => {
                        // The disk lives as long as the test.
                        let disk: &'static SimDisk = Box::leak(Box::new(self.disk.clone()));
                        match SnapshotWriter::new(disk, Path::new(DIR), number, position) {
                            Ok(writer) => Saver::Writes { number, writer, left: KEYS.to_vec() },
                            Err(_) => Saver::Idle,
                        }
                    }
                    Err(_) => Saver::Idle,
                }
            }
            Saver::Writes { number, mut writer, mut left } => match left.pop() {
                None => {
                    let until = self.core.with(LogState::want_sync);
                    Saver::Syncs { number, writer, until }
                }
                Some(key) => {
                    let noted = self.keyspace.shared().read(key.as_bytes(), 0, |value| {
                        value.map(|value| (self.end(), value.counted_items()))
                    });
                    match noted {
                        Some(noted) if key == "filter" => {
                            Saver::Reads { number, writer, left, noted }
                        }
                        Some(noted) => {
                            let written = self.write_entry(&mut writer, key, noted);
                            if written {
                                Saver::Writes { number, writer, left }
                            } else {
                                Saver::Idle
                            }
                        }
                        None => Saver::Writes { number, writer, left },
                    }
                }
            },
            Saver::Reads { number, mut writer, left, noted } => {
                let written = self.write_entry(&mut writer, "filter", noted);
                if written { Saver::Writes { number, writer, left } } else { Saver::Idle }
            }
            Saver::Syncs { number, writer, until } => {
                if self.core.with(|state| state.is_durable(until)) && writer.finish(until).is_ok() {
                    _ = forget(&self.disk, Path::new(DIR), number);
                }
                Saver::Idle
            }
        };
    }

    fn write_entry(
        &self,
        writer: &mut SnapshotWriter<'_>,
        key: &str,
        noted: (u64, Option<u64>),
    ) -> bool {
        self.keyspace.shared().read(key.as_bytes(), 0, |value| {
            writer.entry(key.as_bytes(), value.expect("the filter stays"), None, noted).is_ok()
        })
    }

    /// Crashes and starts again; checks that nothing is lost.
    fn crash(self, is_power_loss: bool, random: &mut Random) -> Result<Self, String> {
        let sync = self.core.with(|state| state.sync);
        let synced = self.core.with(|state| state.synced());
        let mut disk = self.disk.after_crash(is_power_loss.then_some(&mut *random));
        if random.one_in(3) {
            // It crashes again while it starts, or an operation fails.
            let at = random.below(12);
            if random.one_in(2) {
                disk.end_at(at);
            } else {
                disk.fail_at(at, if random.one_in(2) { Fault::Io } else { Fault::Full });
            }
            _ = Self::start(disk.clone(), sync, Vec::new());
            // What was lost in the first crash was never promised. With a kill everything must be there still.
            disk = disk.after_crash(is_power_loss.then_some(&mut *random));
        }
        let mut next = Self::start(disk, sync, self.history)
            .map_err(|error| format!("it does not start: {error}"))?;
        let is_kept = sync == Sync::Always || !is_power_loss;
        let least = if is_kept { synced.max(self.promised_end) } else { synced };
        next.check(least, if is_kept { &self.promised_items } else { &NONE })?;
        // What may be there or not is history only as far as it is.
        Ok(next)
    }

    /// Finds the prefix of the history that the keys are the state of, and cuts the history there.
    fn check(&mut self, least: u64, promised: &BTreeSet<u32>) -> Result<(), String> {
        let counters = ["one", "other", "alone"].map(|key| counter(&self.keyspace, key));
        let counted = self
            .keyspace
            .shared()
            .read(b"filter", 0, |value| value.and_then(Value::counted_items).unwrap_or(0));
        let promised: Vec<u32> = promised.iter().copied().collect();
        let found = contains(&self.keyspace, &promised);
        if let Some((lost, _)) = promised.iter().zip(found).find(|(_, is_there)| !is_there) {
            return Err(format!("item {lost} is lost"));
        }
        let mut state = ([0; 3], BTreeSet::new());
        let mut fits = Vec::new();
        for n in 0..=self.history.len() {
            if let Some(logged) = n.checked_sub(1).map(|last| &self.history[last]) {
                for change in &logged.changes {
                    let place =
                        |key: &str| ["one", "other", "alone"].iter().position(|it| *it == key);
                    match change {
                        Change::Inserted(items) => state.1.extend(items.iter().copied()),
                        Change::Incremented(key) => state.0[place(key).expect("a counter")] += 1,
                        Change::Removed(key) => state.0[place(key).expect("a counter")] = 0,
                    }
                }
            }
            let items: Vec<u32> = state.1.iter().copied().collect();
            let has_all = contains(&self.keyspace, &items).iter().all(|is_there| *is_there);
            if state.0 == counters && items.len() as u64 == counted && has_all {
                fits.push(n);
            }
        }
        let end_of = |n: usize| n.checked_sub(1).map_or(0, |last| self.history[last].end);
        let end = self.end();
        let Some(&n) = fits.iter().find(|n| end_of(**n) == end) else {
            return Err(format!(
                "{counters:?} and {counted} items are not the state at position {end}: fits {fits:?} of {:?}",
                self.history
            ));
        };
        if end < least {
            return Err(format!("the log ends at {end}, and {least} was promised"));
        }
        self.history.truncate(n);
        Ok(())
    }
}

static NONE: BTreeSet<u32> = BTreeSet::new();

fn random_op(random: &mut Random) -> Op {
    match random.below(6) {
        0..3 => Op::Insert([random.below(6) as u32, random.below(6) as u32]),
        3 => Op::Increment("alone"),
        4 => Op::Remove("alone"),
        _ => Op::Transaction,
    }
}

/// Runs several processes one after the other, each with its clients, snapshots, faults and a crash.
fn explore(seed: u64) -> Result<(), String> {
    let mut random = Random(seed);
    let sync = [Sync::Always, Sync::EverySecond, Sync::Never][random.below(3)];
    let mut world = World::first(sync);
    for _ in 0..1 + random.below(3) {
        for _ in 0..1 + random.below(3) {
            let ops = (0..1 + random.below(4)).map(|_| random_op(&mut random)).collect();
            world.clients.push((Client::Idle, ops));
        }
        world.saves = random.below(3);
        let start = world.disk.operations();
        if random.one_in(3) {
            let fault = if random.one_in(2) { Fault::Io } else { Fault::Full };
            world.disk.fail_at(start + random.below(40), fault);
        }
        if !random.one_in(3) {
            world.disk.end_at(start + random.below(60));
        }
        for _ in 0..400 {
            let steps = world.steps();
            if steps.is_empty() || world.disk.has_ended() {
                break;
            }
            world.do_step(steps[random.below(steps.len())]);
        }
        let is_power_loss = random.one_in(2);
        world = world.crash(is_power_loss, &mut random)?;
    }
    Ok(())
}

/// Does every sequence of steps of a small world, and crashes before every operation of the disk.
fn explore_all(sync: Sync, clients: &[&[Op]], saves: usize, limit: usize) -> usize {
    let mut choices: Vec<(usize, usize)> = Vec::new();
    let mut runs = 0;
    loop {
        // The sequence to its end, to count its operations; then again with a crash before each of them.
        let mut crash_at = None;
        loop {
            let mut world = World::first(sync);
            let start = world.disk.operations();
            world.clients = clients.iter().map(|ops| (Client::Idle, ops.to_vec())).collect();
            world.saves = saves;
            if let Some(at) = crash_at {
                world.disk.end_at(start + at);
            }
            let mut depth = 0;
            loop {
                let steps = world.steps();
                if steps.is_empty() || world.disk.has_ended() {
                    break;
                }
                if depth == choices.len() {
                    choices.push((0, steps.len()));
                }
                world.do_step(steps[choices[depth].0]);
                depth += 1;
            }
            let operations = world.disk.operations() - start;
            runs += 1;
            let mut random = Random(runs as u64);
            let is_power_loss = sync == Sync::Always;
            if let Err(why) = world.crash(is_power_loss, &mut random) {
                panic!("{why}; choices {choices:?}, crash at {crash_at:?}, {sync:?}");
            }
            crash_at = Some(crash_at.map_or(0, |at| at + 1));
            if crash_at > Some(operations) || runs >= limit {
                break;
            }
        }
        // The next sequence.
        while choices.last().is_some_and(|(choice, count)| choice + 1 == *count) {
            choices.pop();
        }
        match choices.last_mut() {
            Some((choice, _)) if runs < limit => *choice += 1,
            _ => return runs,
        }
    }
}

#[test]
fn nothing_promised_is_lost_in_any_order_of_steps_faults_and_crashes() {
    // To repeat what a search has found.
    let seed = std::env::var("TAMIS_MODEL_SEED").ok().and_then(|text| text.parse().ok());
    if let Some(seed) = seed {
        return explore(seed).unwrap();
    }
    // `cargo xtask soak` sets how long it searches, from another seed each time.
    let seconds = std::env::var("TAMIS_MODEL_SECONDS").ok().and_then(|text| text.parse().ok());
    let (first, count) = match seconds {
        Some(_) => (u64::from(std::process::id()) * 1_000_003, u64::MAX),
        None => (0, 3000),
    };
    let (started, seconds) = (std::time::Instant::now(), seconds.unwrap_or(u64::MAX));
    for seed in (first..).take(usize::try_from(count).unwrap_or(usize::MAX)) {
        if started.elapsed().as_secs() >= seconds {
            break;
        }
        if let Err(why) = explore(seed) {
            panic!("seed {seed}: {why}");
        }
    }
}

#[test]
fn every_order_of_two_inserts_of_one_item_keeps_it() {
    let insert = || vec![Op::Insert([1, 2])];
    let (one, other) = (insert(), insert());
    for sync in [Sync::Always, Sync::EverySecond] {
        assert!(explore_all(sync, &[&one, &other], 0, 5_000) > 1000);
    }
}

#[test]
fn every_order_of_a_rotation_and_a_transaction_keeps_it_whole() {
    let transaction = vec![Op::Transaction, Op::Increment("alone")];
    for sync in [Sync::Always, Sync::EverySecond] {
        assert!(explore_all(sync, &[&transaction], 1, 5_000) > 1000);
    }
}
