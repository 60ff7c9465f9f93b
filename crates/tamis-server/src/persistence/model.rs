//! The model test: runs clients, the log, a snapshot and crashes in every order, on a simulated
//! disk.
//!
//! The state machine, the file jobs, the snapshot writer, the recovery and the keyspace are the
//! real code. The test models only the threads. Each step is the work of one thread between two
//! points at which another thread may run.
//!
//! After each crash, the test compares the recovered keys with the history of the log:
//!
//! * The recovered state is the state after a prefix of the history (the first changes up to some
//!   change). Each change of the prefix is applied exactly once, and each transaction is applied
//!   atomically.
//! * The prefix contains every change whose reply was sent, and every change that a sent reply
//!   depends on. An example is a reply that an item is already present. With
//!   [`FsyncPolicy::Always`], the prefix contains the changes of all sent replies after a power
//!   loss. With every other policy, the prefix contains the changes of all sent replies after a
//!   process is killed.
//! * The prefix contains every synced change, with each sync policy.

mod oracle;
mod saver;
mod search;

use std::collections::BTreeSet;
use std::sync::Arc;

use tamis_commands::{Batch, Command, Env, Handler, ScalableBloom, Settings, Value, find};
use tamis_resp::Protocol;

use crate::keyspace::Keyspace;
use crate::persistence::error::DurabilityError;
use crate::persistence::log::log_core::{LogCore, SyncJob};
use crate::persistence::log::log_file::LogFile;
use crate::persistence::log::record::Record;
use crate::persistence::log::state::answers::{Needs, Readiness};
use crate::persistence::log::state::{FileJob, FsyncPolicy, LogState, Refusal};
use crate::persistence::recover::recover;
use crate::persistence::sim_disk::SimDisk;
use crate::system::held_memory::Hold;
use oracle::{KeyChange, Logged};
use saver::Saver;

/// The next operation of a client.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// The client runs `BF.MADD filter item item`.
    Insert([u32; 2]),
    /// The client runs `INCR key`.
    Increment(&'static str),
    /// The client runs `DEL key`.
    Remove(&'static str),
    /// The client runs `MULTI`, `INCR one`, `INCR other`, `EXEC`.
    Transaction,
    /// The client runs `MULTI`, `FLUSHALL`, `BF.RESERVE filter …`, `EXEC`.
    Flush,
}

/// The progress of a client in its next operation.
#[derive(Debug)]
enum Caller {
    Idle,
    /// The change of the client has a reservation of disk space.
    Admitted(Op),
    /// The client has begun an insert and holds the ticket of the insert.
    Begun {
        ticket: u64,
        items: [u32; 2],
    },
    /// The client has set the bits of its items. The listed items were new to the filter.
    Set {
        ticket: u64,
        items: [u32; 2],
        hashes: Vec<u64>,
        new: Vec<u32>,
    },
    /// The client is inside a transaction. `left` is the number of remaining changes of the
    /// transaction.
    InTransaction {
        left: usize,
    },
    /// The client waits until its reply may be sent.
    Answers {
        needs: Needs,
        items: Vec<u32>,
        end: u64,
    },
}

/// A step that a thread can take now.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Client(usize),
    TakeFileJob,
    DoFileJob,
    TakeSync,
    DoSync,
    Saver,
}

/// An upper bound of the bytes that an operation writes to the log.
const OP_BYTES: u64 = 400;

const KEYS: [&str; 4] = ["filter", "one", "other", "alone"];

/// A process with its clients, on a disk.
struct World {
    disk: SimDisk,
    keyspace: Keyspace,
    core: LogCore,
    now_millis: u64,
    clients: Vec<(Caller, Vec<Op>)>,
    /// The reservation of disk space that each client keeps for its next change.
    admitted: Vec<Option<Hold>>,
    /// True if other threads may run after a change is admitted and before the change is applied.
    admits_apart: bool,
    saves: usize,
    saver: Saver,
    file_job: Option<(Arc<LogFile>, FileJob)>,
    sync_job: Option<SyncJob>,
    history: Vec<Logged>,
    /// The items and the log position that sent replies depend on.
    promised_items: BTreeSet<u32>,
    promised_end: u64,
    group: Vec<KeyChange>,
}

fn item(number: u32) -> Vec<u8> {
    format!("item:{number}").into_bytes()
}

/// Tests which items the filter contains.
fn contains(keyspace: &Keyspace, items: &[u32]) -> Vec<bool> {
    let items: Vec<Vec<u8>> = items.iter().map(|number| item(*number)).collect();
    let row = find(b"BF.EXISTS").and_then(Command::batch_items).expect("it has items");
    keyspace.shared().read(b"filter", 0, |value| {
        let mut batch = Batch::default();
        let argv: Vec<[&[u8]; 3]> =
            items.iter().map(|item| [&b"BF.EXISTS"[..], b"filter", item]).collect();
        argv.iter().for_each(|argv| batch.push(argv));
        let answers = batch.run(row, value, 0).expect("a read");
        answers.map(|answer| answer.reply == tamis_resp::Reply::Bool(true)).collect()
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
    fn start(
        disk: SimDisk,
        sync: FsyncPolicy,
        history: Vec<Logged>,
    ) -> Result<Self, DurabilityError> {
        let keyspace = Keyspace::new();
        let found = recover(&disk, &keyspace)?;
        let core = LogCore::new(Arc::new(disk.clone()), found.file, found.end, sync);
        Ok(Self {
            disk,
            keyspace,
            core,
            now_millis: 0,
            clients: Vec::new(),
            admitted: Vec::new(),
            admits_apart: false,
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

    /// Starts the first process, creates the filter and makes the filter durable.
    fn first(sync: FsyncPolicy) -> Self {
        let mut world = Self::start(SimDisk::default(), sync, Vec::new()).expect("an empty disk");
        world.reserve();
        world.core.with(|state| _ = state.want_sync());
        while world.core.run_file_job(0) || world.core.run_sync(0) {}
        assert_eq!(
            world.core.with(|state| (state.synced, state.failure().is_some())),
            (world.core.end(), false)
        );
        world
    }

    /// Creates the filter and logs its creation.
    fn reserve(&mut self) {
        let filter = ScalableBloom::reserve(1000, 1e-9, None).expect("a filter");
        let value = Value::Bloom(Box::new(filter));
        let serialization = value.new_image();
        self.keyspace.shared().put(b"filter", 0, value, None);
        let record =
            Record::Value { key: b"filter", expires_millis: None, serialization: &serialization };
        self.append(&record, None);
    }

    fn append(&mut self, record: &Record<'_>, changes: Option<KeyChange>) {
        self.core.with(|state| state.append(|out| record.encode(out)));
        self.group.extend(changes);
        if self.core.group_bytes().is_none() {
            self.end_frame();
        }
    }

    /// Adds the changes of a frame to the history.
    fn end_frame(&mut self) {
        let (changes, end) = (std::mem::take(&mut self.group), self.core.end());
        self.history.push(Logged { changes, end });
    }

    /// Tests whether a thread has exclusive access to the keys.
    fn is_exclusive(&self) -> bool {
        self.clients.iter().any(|(client, _)| matches!(client, Caller::InTransaction { .. }))
    }

    /// Tests whether an insert holds the shared lock of the filter.
    fn is_inserting(&self) -> bool {
        let inserts = |client: &Caller| matches!(client, Caller::Begun { .. } | Caller::Set { .. });
        self.clients.iter().any(|(client, _)| inserts(client))
    }

    /// Tests whether a client can take the locks for an operation now.
    fn may_run(&self, op: &Op) -> bool {
        let is_alone = matches!(op, Op::Transaction | Op::Flush);
        !(self.is_exclusive() || is_alone && self.is_inserting())
    }

    /// Returns the steps that threads can take now.
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let may_change = !self.is_exclusive();
        for (i, (client, ops)) in self.clients.iter().enumerate() {
            let can = match client {
                Caller::Idle => {
                    ops.last().is_some_and(|op| self.admits_apart || self.may_run(op))
                        && self.core.with(|state| state.admit(OP_BYTES)).err()
                            != Some(Refusal::Busy)
                }
                Caller::Admitted(op) => self.may_run(op),
                Caller::Begun { .. } | Caller::Set { .. } | Caller::InTransaction { .. } => true,
                Caller::Answers { needs, .. } => {
                    let readiness = |state: &mut LogState| {
                        state.readiness(&mut needs.clone(), true, self.now_millis)
                    };
                    self.core.with(readiness) != Readiness::Waits
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
        let has_failed = || self.core.failure().is_some();
        let can_save = match &self.saver {
            Saver::Idle => self.saves > 0 && is_alone,
            Saver::Rotates { .. } => {
                self.core.with(|state| state.rotated().is_some()) || has_failed()
            }
            // The snapshot reads a small value under the lock of the value, and never during a
            // transaction.
            Saver::Writes { left, observed, .. } => {
                left.is_empty() || observed.is_some() || is_alone
            }
            Saver::Syncs { until, .. } => {
                self.core.with(|state| state.is_durable(*until)) || has_failed()
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
        let client = std::mem::replace(&mut self.clients[i].0, Caller::Idle);
        let next = match client {
            Caller::Idle => {
                let op = self.clients[i].1.pop().expect("an op");
                self.admitted.resize_with(self.clients.len(), || None);
                match self.core.admit(OP_BYTES) {
                    Ok(admitted) => {
                        self.admitted[i] = Some(admitted);
                        if self.admits_apart { Caller::Admitted(op) } else { self.run(op) }
                    }
                    // The client gets an error, and the change of the client is not applied.
                    Err(_) => Caller::Idle,
                }
            }
            Caller::Admitted(op) => self.run(op),
            Caller::Begun { ticket, items } => {
                let words: Vec<Vec<u8>> = items.iter().map(|number| item(*number)).collect();
                let argv: [&[u8]; 4] = [b"BF.MADD", b"filter", &words[0], &words[1]];
                let row = find(b"BF.MADD").and_then(Command::batch_items).expect("it has items");
                let before = contains(&self.keyspace, &items);
                let mut batch = Batch::default();
                batch.push(&argv);
                self.keyspace.shared().insert(b"filter", 0, |value| {
                    batch.run(row, value, 0).expect("the filter has room").count_ones() > 0
                });
                let new = items.iter().zip(before).filter(|(_, was)| !was);
                let mut new: Vec<u32> = new.map(|(item, _)| *item).collect();
                new.dedup();
                Caller::Set { ticket, items, hashes: batch.new_hashes(), new }
            }
            Caller::Set { ticket, items, hashes, new } => {
                assert_eq!(hashes.len(), new.len());
                if !hashes.is_empty() {
                    let record = Record::Inserted { now_millis: 0, key: b"filter", hashes };
                    self.append(&record, Some(KeyChange::Inserted(new)));
                }
                self.core.with(|state| state.end_insert(ticket));
                self.answers(items.to_vec())
            }
            Caller::InTransaction { left: 0 } => {
                self.end_group();
                self.answers(Vec::new())
            }
            Caller::InTransaction { left } => {
                let key = ["one", "other"][left - 1];
                self.change(&[b"INCR", key.as_bytes()], KeyChange::Incremented(key));
                Caller::InTransaction { left: left - 1 }
            }
            Caller::Answers { mut needs, items, end } => {
                // Drop the reservation of disk space, because the log contains the change of the
                // client.
                self.admitted[i] = None;
                let now = self.now_millis;
                if self.core.with(|state| state.readiness(&mut needs, true, now))
                    == Readiness::Ready
                {
                    self.promised_items.extend(items);
                    self.promised_end = self.promised_end.max(end);
                }
                Caller::Idle
            }
        };
        self.clients[i].0 = next;
    }

    /// Begins an operation. Returns the progress of the client.
    fn run(&mut self, op: Op) -> Caller {
        match op {
            Op::Insert(items) => {
                Caller::Begun { ticket: self.core.with(LogState::begin_insert), items }
            }
            Op::Increment(key) => {
                self.change(&[b"INCR", key.as_bytes()], KeyChange::Incremented(key));
                self.answers(Vec::new())
            }
            Op::Remove(key) => {
                if counter(&self.keyspace, key) > 0 {
                    self.change(&[b"DEL", key.as_bytes()], KeyChange::Removed(key));
                }
                self.answers(Vec::new())
            }
            Op::Transaction => {
                self.core.with(|state| state.begin_group(None));
                Caller::InTransaction { left: 2 }
            }
            Op::Flush => {
                self.flush();
                self.answers(Vec::new())
            }
        }
    }

    /// Removes all keys and creates the filter again in one step, because the client has exclusive
    /// access to the keys.
    fn flush(&mut self) {
        self.save_before_flush();
        // The promised position covers all changes whose replies were sent, because the log
        // contains these changes.
        self.promised_items.clear();
        for (client, _) in &mut self.clients {
            if let Caller::Answers { items, .. } = client {
                items.clear();
            }
        }
        self.core.with(|state| state.begin_group(None));
        drop(self.keyspace.exclusive().clear());
        let record = Record::Command { now_millis: 0, argv: vec![b"FLUSHALL"] };
        self.append(&record, Some(KeyChange::Flushed));
        self.reserve();
        self.end_group();
    }

    fn end_group(&mut self) {
        self.core.with(LogState::end_group);
        self.end_frame();
    }

    /// Runs a command under the lock of its key, and logs the command.
    fn change(&mut self, argv: &[&[u8]], change: KeyChange) {
        let keys = self.keyspace.shared();
        let settings = Settings::default();
        let env = Env::new(&settings, Protocol::Resp2, 0);
        match find(argv[0]).expect("a command").handler {
            Handler::Key(handler) => {
                _ = keys.change(argv[1], 0, |value| handler.run(value, argv, &env));
            }
            _ => _ = keys.remove(argv[1], 0),
        }
        drop(keys);
        let record = Record::Command { now_millis: 0, argv: argv.to_vec() };
        self.append(&record, Some(change));
    }

    fn answers(&self, items: Vec<u32>) -> Caller {
        Caller::Answers {
            needs: self.core.with(|state| state.needs()),
            items,
            end: self.core.end(),
        }
    }
}
