//! Stores the recent changes of a set for followers.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tamis_sources::{ChangeKind, ChangeListener};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::fleet::delta::{Delta, Knowledge, MAX_CHANGE_BYTES, MAX_ID, push_change, split_change};
use crate::fleet::position::FeedPosition;

/// The number of bytes in a block of changes. The feed drops its oldest changes in whole blocks.
const BLOCK_BYTES: usize = 64 << 10;

/// The recent changes of a set, for followers. The feed and the set have the changes of an id in the same order,
/// because each change is applied and recorded under one lock.
#[derive(Debug)]
pub(crate) struct Feed {
    epoch: u64,
    max_bytes: usize,
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    blocks: VecDeque<Block>,
    /// The number of bytes in all blocks.
    bytes: usize,
    /// The number of the first change that the feed still contains.
    first: u64,
    /// The number of the next change.
    next: u64,
    /// True if a generation was published.
    is_complete: bool,
    /// The set contains all ids that were committed before `known_until`.
    known_until: Option<Instant>,
}

#[derive(Debug)]
struct Block {
    first: u64,
    count: u64,
    changes: Vec<u8>,
}

/// The reason why a follower cannot get changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoChanges {
    /// No generation was published yet.
    Warming,
    /// The feed has dropped the changes, or the position belongs to another generation or another leader.
    Gone,
}

impl ChangeListener for Feed {
    fn record(&self, kind: ChangeKind, id: &[u8], apply: &mut dyn FnMut()) {
        let mut state = self.state.lock();
        apply();
        if id.len() > MAX_ID {
            // An id of more than `MAX_ID` bytes fits neither in a delta nor in a snapshot. The followers load a new
            // snapshot, and report the error.
            state.forget();
        } else {
            state.push(kind, id, self.max_bytes);
        }
        self.notify(state);
    }

    /// Replaces all ids of the set. After `replace` has replaced the ids, followers need a new snapshot.
    fn replace(&self, swap: &mut dyn FnMut()) {
        let mut state = self.state.lock();
        swap();
        state.forget();
        state.is_complete = true;
        self.notify(state);
    }

    fn set_known_until(&self, moment: Option<Instant>) {
        let mut state = self.state.lock();
        let was_known = state.known_until.is_some();
        state.known_until = moment;
        if was_known != moment.is_some() {
            self.notify(state);
        }
    }
}

impl Feed {
    /// Creates an empty feed that keeps at most `max_bytes` of changes.
    pub(crate) fn new(max_bytes: usize) -> Self {
        let mut epoch = [0; 8];
        getrandom::fill(&mut epoch).expect("the system has random bytes");
        let max_bytes = max_bytes.max(2 * BLOCK_BYTES);
        let epoch = u64::from_le_bytes(epoch);
        Self { epoch, max_bytes, state: Mutex::default(), news: Notify::new() }
    }

    /// Returns the current position and the result of `read`. The feed is locked during `read`, so no change happens
    /// between the position and the result. Returns `None` before the first generation.
    pub(crate) fn at_position<R>(&self, read: impl FnOnce() -> R) -> Option<(FeedPosition, R)> {
        let state = self.state.lock();
        state.is_complete.then(|| (self.position(state.next), read()))
    }

    /// Tests whether the feed contains all changes after `position`, and whether these changes fill at most half of the
    /// feed.
    pub(crate) fn is_recent(&self, position: FeedPosition) -> bool {
        let state = self.state.lock();
        let after: usize = state
            .blocks
            .iter()
            .rev()
            .map_while(|block| (block.first >= position.number).then_some(block.changes.len()))
            .sum();
        self.is_kept(&state, position) && 2 * after <= self.max_bytes
    }

    /// Waits for at most `limit`, until the feed contains changes after `since`. The wait also ends when the set
    /// becomes complete or incomplete. Returns the changes after `since`. `asked` is the time at which the request
    /// arrived.
    pub(crate) async fn changes_after(
        &self,
        since: FeedPosition,
        asked: Instant,
        limit: Duration,
    ) -> Result<Delta, NoChanges> {
        let news = self.news.notified();
        let mut news = std::pin::pin!(news);
        // The notification is enabled before the first test, so that no change between test and wait is missed.
        news.as_mut().enable();
        let delta = self.delta(since, asked)?;
        if delta.position() != since || limit.is_zero() {
            return Ok(delta);
        }
        // An error means that the time limit has passed.
        _ = timeout(limit, news).await;
        self.delta(since, asked)
    }

    /// Returns the changes after a position.
    fn delta(&self, since: FeedPosition, asked: Instant) -> Result<Delta, NoChanges> {
        let state = self.state.lock();
        if !state.is_complete {
            return Err(NoChanges::Warming);
        }
        if !self.is_kept(&state, since) {
            return Err(NoChanges::Gone);
        }
        let (count, changes) = state.changes_after(since.number);
        let is_all = since.number + u64::from(count) == state.next;
        // The completeness and the changes are read under one lock. The source applies all changes before it calls
        // `set_known_until`. Therefore, after applying the delta, a follower has all ids that were committed before
        // `known_until`.
        let now = Instant::now();
        let knowledge = match state.known_until {
            _ if !is_all => Knowledge::More,
            None => Knowledge::Unknown,
            Some(moment) => Knowledge::Age(now.duration_since(moment)),
        };
        Ok(Delta::new(since, knowledge, now.duration_since(asked), count, changes))
    }

    fn is_kept(&self, state: &State, position: FeedPosition) -> bool {
        position.epoch == self.epoch && (state.first..=state.next).contains(&position.number)
    }

    fn position(&self, number: u64) -> FeedPosition {
        FeedPosition { epoch: self.epoch, number }
    }

    fn notify(&self, state: MutexGuard<'_, State>) {
        drop(state);
        self.news.notify_waiters();
    }
}

impl State {
    fn push(&mut self, kind: ChangeKind, id: &[u8], max_bytes: usize) {
        let needed = id.len() + 3;
        let fits = |block: &&mut Block| block.changes.len() + needed <= BLOCK_BYTES;
        if self.blocks.back_mut().filter(fits).is_none() {
            let block = Block { first: self.next, count: 0, changes: Vec::new() };
            self.blocks.push_back(block);
        }
        let block = self.blocks.back_mut().expect("a block was pushed");
        let before = block.changes.len();
        push_change(&mut block.changes, kind, id);
        block.count += 1;
        self.bytes += block.changes.len() - before;
        self.next += 1;
        while self.bytes > max_bytes {
            let Some(oldest) = self.blocks.pop_front() else { break };
            self.bytes -= oldest.changes.len();
            self.first = oldest.first + oldest.count;
        }
    }

    /// Drops all changes. After this call, every earlier position is invalid.
    fn forget(&mut self) {
        self.blocks.clear();
        self.bytes = 0;
        self.next += 1;
        self.first = self.next;
    }

    /// Returns the number and the bytes of the changes after a number, up to the size limit of a delta.
    fn changes_after(&self, number: u64) -> (u32, Vec<u8>) {
        let (mut count, mut changes) = (0, Vec::new());
        let start = self.blocks.partition_point(|block| block.first + block.count <= number);
        for block in self.blocks.range(start..) {
            let mut left = &block.changes[..];
            let mut in_block = block.count;
            for _ in block.first..number.max(block.first) {
                let (_, rest) = split_change(left).expect("a block has valid changes");
                left = rest;
                in_block -= 1;
            }
            if changes.len() + left.len() > MAX_CHANGE_BYTES {
                break;
            }
            changes.extend(left);
            count += in_block as u32;
        }
        (count, changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(feed: &Feed, id: u64) {
        feed.record(ChangeKind::Insert, id.to_string().as_bytes(), &mut || ());
    }

    fn start(feed: &Feed) -> FeedPosition {
        feed.replace(&mut || ());
        feed.at_position(|| ()).unwrap().0
    }

    /// Returns the ids that a follower receives from a position to the present, and the last delta.
    fn follow(feed: &Feed, mut at: FeedPosition) -> (Vec<Vec<u8>>, Delta) {
        let mut ids = Vec::new();
        loop {
            let delta = feed.delta(at, Instant::now()).unwrap();
            let delta = Delta::decode(&delta.encode()).unwrap();
            at = delta.position();
            ids.extend(delta.changes().map(|it| it.id.to_vec()));
            if delta.knowledge != Knowledge::More {
                return (ids, delta);
            }
        }
    }

    #[test]
    fn a_follower_gets_each_change_once_and_in_order_from_each_position() {
        let feed = Feed::new(64 << 20);
        let start = start(&feed);
        for id in 0..100_000 {
            insert(&feed, id);
        }
        for skipped in [0, 1, 7000, 50_000, 99_999, 100_000] {
            let at = FeedPosition { number: start.number + skipped, ..start };
            let (ids, last) = follow(&feed, at);
            let expected = (skipped..100_000).map(|id| id.to_string().into_bytes());
            assert!(ids.into_iter().eq(expected), "{skipped}");
            assert_eq!(last.position().number, start.number + 100_000);
            assert_eq!(last.knowledge, Knowledge::Unknown);
        }
    }

    #[test]
    fn a_delta_that_is_too_large_is_split_without_a_claim() {
        let feed = Feed::new(64 << 20);
        let start = start(&feed);
        feed.set_known_until(Some(Instant::now()));
        let id = vec![b'7'; 1000];
        for _ in 0..10_000 {
            feed.record(ChangeKind::Insert, &id, &mut || ());
        }
        let first = feed.delta(start, Instant::now()).unwrap();
        assert_eq!(first.knowledge, Knowledge::More);
        assert!(first.encode().len() <= 4 << 20 && first.changes().count() > 3000);
        let (ids, last) = follow(&feed, start);
        assert!(matches!(last.knowledge, Knowledge::Age(_)));
        assert_eq!(ids, vec![id; 10_000]);
    }

    #[test]
    fn forgotten_changes_other_generations_and_other_leaders_are_gone() {
        let feed = Feed::new(0);
        let early = FeedPosition { epoch: feed.epoch, number: 0 };
        assert_eq!(feed.delta(early, Instant::now()), Err(NoChanges::Warming));
        assert!(feed.at_position(|| ()).is_none());
        let start = start(&feed);
        assert!(feed.is_recent(start));
        for id in 0..100_000 {
            insert(&feed, id);
        }
        let state = feed.state.lock();
        assert!(state.bytes <= feed.max_bytes && state.first > start.number);
        let (first, next) = (state.first, state.next);
        drop(state);
        assert_eq!(feed.delta(start, Instant::now()), Err(NoChanges::Gone));
        assert!(!feed.is_recent(start));
        let kept = FeedPosition { number: first, ..start };
        assert_eq!(follow(&feed, kept).0.len() as u64, next - first);
        let present = feed.at_position(|| ()).unwrap().0;
        let other = FeedPosition { epoch: !present.epoch, ..present };
        assert_eq!(feed.delta(other, Instant::now()), Err(NoChanges::Gone));
        let future = FeedPosition { number: present.number + 1, ..present };
        assert_eq!(feed.delta(future, Instant::now()), Err(NoChanges::Gone));
        // A follower with all changes still lacks the new generation.
        feed.replace(&mut || ());
        assert_eq!(feed.delta(present, Instant::now()), Err(NoChanges::Gone));
    }

    #[tokio::test]
    async fn a_change_and_the_end_of_the_knowledge_wake_those_who_wait() {
        let feed = Feed::new(0);
        let start = start(&feed);
        feed.set_known_until(Some(Instant::now()));
        let asked = Instant::now();
        let wait = feed.changes_after(start, asked, Duration::from_secs(60));
        let change = async { insert(&feed, 1) };
        let (delta, ()) = tokio::join!(wait, change);
        let delta = delta.unwrap();
        assert_eq!(delta.changes().count(), 1);
        let at = delta.position();
        let wait = feed.changes_after(at, asked, Duration::from_secs(60));
        let (delta, ()) = tokio::join!(wait, async { feed.set_known_until(None) });
        assert_eq!(delta.unwrap().knowledge, Knowledge::Unknown);
        assert!(asked.elapsed() < Duration::from_secs(30));
        // The wait ends after the time limit.
        let limit = Duration::from_millis(5);
        let delta = feed.changes_after(at, Instant::now(), limit).await.unwrap();
        assert_eq!(delta.changes().count(), 0);
        assert!(delta.held >= limit);
    }
}
