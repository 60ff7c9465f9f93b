//! Checks the promise of sources while a writer changes the ids.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tamis_sources::{
    IdSet, IdSetOptions, IdType, IntegerForm, Source, SourceOptions, SourceStatus, SyncState,
};
use tamis_testing::{DEADLINE, SetOnDrop};
use tempfile::TempDir;

pub const INTERVAL: Duration = Duration::from_millis(10);

/// Returns short times, and a sync delay that a busy machine keeps.
pub fn options() -> SourceOptions {
    SourceOptions {
        interval: INTERVAL,
        stale_after: Duration::from_secs(1),
        max_pause: Duration::from_millis(50),
        ..SourceOptions::default()
    }
}

pub fn integers() -> IdType {
    IdType::Integer { min: 1, max: i64::MAX.into(), form: IntegerForm::default() }
}

/// Returns the type of text ids of at most 100 bytes.
pub fn text() -> IdType {
    IdType::Text { max_bytes: 100 }
}

/// Returns an empty set. Its rate is low, so that no test sees a false positive.
pub fn id_set(id: IdType) -> Arc<IdSet> {
    let options =
        IdSetOptions { rate: 1e-7, items: 1000, is_trusted: true, ..IdSetOptions::new(id) };
    Arc::new(IdSet::new(options).unwrap())
}

pub fn knows(ids: &IdSet, id: impl Display) -> bool {
    ids.decide(id.to_string().as_bytes()).passes()
}

/// Tests whether an id is in the set, in any state. A stale set lets all ids pass.
pub fn has(ids: &IdSet, id: impl Display) -> bool {
    let id = ids.options().id.canonical(id.to_string().as_bytes()).map(Vec::from);
    id.is_ok_and(|id| ids.generations().contains(&id))
}

/// Waits until the status of a source satisfies a condition.
pub fn wait(source: &Source, what: &str, is_done: impl Fn(&SourceStatus) -> bool) -> SourceStatus {
    wait_until(source, what, || is_done(&source.status()));
    source.status()
}

pub fn wait_until(source: &Source, what: &str, is_done: impl FnMut() -> bool) {
    let what = std::fmt::from_fn(|f| write!(f, "{what}: {:?}", source.status()));
    tamis_testing::wait_until(what, is_done);
}

/// Runs a change, and waits until a source has read all ids after it.
#[allow(dead_code, reason = "not every test that includes this calls it")]
pub fn read_again(source: &Source, change: impl FnOnce()) {
    let before = source.status().generations;
    change();
    wait(source, "read again", |status| status.generations > before);
    wait_synced(source);
}

pub fn wait_synced(source: &Source) -> SourceStatus {
    wait(source, "synced", |status| status.state == SyncState::Synced)
}

/// Waits until the last error of a source contains a text.
pub fn wait_error(source: &Source, part: &str) -> SourceStatus {
    wait(source, part, |status| has_error(status, part))
}

/// Waits until a set is stale, and the last error of its source contains a text.
pub fn wait_broken(source: &Source, part: &str) -> SourceStatus {
    wait(source, part, |status| status.state == SyncState::Stale && has_error(status, part))
}

fn has_error(status: &SourceStatus, part: &str) -> bool {
    status.last_error.as_deref().is_some_and(|error| error.contains(part))
}

pub fn wait_stale(source: &Source) -> SourceStatus {
    wait(source, "stale", |status| status.state == SyncState::Stale)
}

/// Starts a source with an empty set, and waits until the set is synced.
pub fn synced(id: IdType, start: impl FnOnce(&Arc<IdSet>) -> Source) -> (Arc<IdSet>, Source) {
    let ids = id_set(id);
    let source = start(&ids);
    wait_synced(&source);
    (ids, source)
}

/// Waits for the reply of a database.
#[allow(dead_code, reason = "not every test that includes this calls it")]
pub fn limited<T>(runtime: &tokio::runtime::Runtime, reply: impl Future<Output = T>) -> T {
    let limited = runtime.block_on(async { tokio::time::timeout(DEADLINE, reply).await });
    limited.expect("the database answers")
}

/// A directory of a test. The process is in its name, so that a later run can remove it.
pub struct Dir(TempDir);

impl Dir {
    pub fn new() -> Self {
        let prefix = format!("sources-{}-", std::process::id());
        let mut builder = tempfile::Builder::new();
        Self(builder.prefix(&prefix).tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Removes the directories of earlier runs: nothing drops a static.
    #[allow(dead_code, reason = "not every test that includes this calls it")]
    pub fn remove_old() {
        let entries = std::fs::read_dir(env!("CARGO_TARGET_TMPDIR"));
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let process = name.strip_prefix("sources-").and_then(|rest| rest.split('-').next());
            if process.is_some_and(|process| !PathBuf::from(format!("/proc/{process}")).exists()) {
                _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Pseudorandom numbers (xorshift64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// The ids that a writer has committed, with the time after the commit.
#[derive(Default)]
pub struct Committed(pub Arc<Mutex<BTreeMap<u64, Instant>>>);

impl Committed {
    /// Records ids that exist already.
    #[allow(dead_code, reason = "not every test that includes this calls it")]
    pub fn of(ids: impl IntoIterator<Item = u64>) -> Self {
        let committed = Self::default();
        committed.insert(ids);
        committed
    }

    /// Records a commit that has ended. An id that exists keeps its time.
    pub fn insert(&self, ids: impl IntoIterator<Item = u64>) {
        let mut committed = self.0.lock();
        let now = Instant::now();
        for id in ids {
            committed.entry(id).or_insert(now);
        }
    }

    /// Records that ids will be deleted.
    pub fn remove(&self, ids: impl IntoIterator<Item = u64>) {
        let mut committed = self.0.lock();
        for id in ids {
            committed.remove(&id);
        }
    }

    pub fn ids(&self) -> Vec<u64> {
        self.0.lock().keys().copied().collect()
    }

    pub fn pick(&self, random: &mut Random) -> Option<u64> {
        let ids = self.ids();
        (!ids.is_empty()).then(|| ids[random.below(ids.len() as u64) as usize])
    }
}

/// Runs `write`, and checks the promise meanwhile.
pub fn check(source: &Source, ids: &IdSet, committed: &Committed, write: impl FnOnce()) {
    let is_done = AtomicBool::new(false);
    let synced = AtomicU64::new(0);
    std::thread::scope(|threads| {
        let checker = threads.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                synced.fetch_add(check_once(source, ids, committed), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let end = SetOnDrop(&is_done);
        write();
        drop(end);
        checker.join().unwrap();
    });
    let synced = synced.into_inner() + check_once(source, ids, committed);
    assert!(synced > 0, "the set was synced: {:?}", source.status());
}

/// Checks all committed ids. Returns the number of checks in the state synced.
fn check_once(source: &Source, ids: &IdSet, committed: &Committed) -> u64 {
    // Beyond the delay of a thread on a busy machine.
    let margin = Duration::from_millis(700);
    let mut synced = 0;
    // Under the lock, so that no id is deleted meanwhile.
    let committed = committed.0.lock();
    for (id, &at) in &*committed {
        let now = Instant::now();
        let status = source.status();
        // The source says what it knows. This test does not depend on the speed of the machine.
        let is_claimed = status.lag.is_some_and(|lag| at + lag < now);
        let is_old = now.duration_since(at) > options().stale_after + margin;
        if is_claimed || is_old {
            let verdict = ids.decide(id.to_string().as_bytes());
            assert!(verdict.passes(), "{id}, {:?} after its commit: {status:?}", now - at);
            synced += u64::from(status.state == SyncState::Synced);
        }
    }
    synced
}
