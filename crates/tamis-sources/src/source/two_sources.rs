//! Tests two sources of one set: each order of the steps of both sources, with the real set and the real state
//! machines.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ids::change_kind::ChangeKind;
use crate::ids::generation::Generation;
use crate::ids::id::IdType;
use crate::ids::id_set::IdSet;
use crate::ids::id_set_options::IdSetOptions;
use crate::source::follow::{Effect, Event, Follow};
use crate::source::run::{Run, SourceOptions};

/// A step of a table or of its source.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The table commits an insert.
    Insert(u32),
    /// The table commits a deletion.
    Delete(u32),
    /// The source applies the next commit of the log.
    Deliver,
    /// The source begins a full read.
    Begin,
    /// The full read ends. Each row was read at the start of the full read.
    End,
    /// The source queries the end of the log.
    Ask,
    /// The source reports that a newer generation is due.
    Renew,
    /// The log of the table is lost, and the source connects again.
    Lose,
}

/// A table, and the state of its source.
struct Table {
    run: Run,
    follow: Follow<u8, Instant>,
    /// The rows after each number of commits.
    history: Vec<BTreeSet<u32>>,
    log: Vec<(ChangeKind, u32)>,
    position: u8,
    full_read: Option<(Arc<Generation>, BTreeSet<u32>)>,
    /// The number of commits at the pending query for the end of the log.
    asked: Option<usize>,
    /// The ids of the source are complete up to this number of commits.
    known: Option<usize>,
}

impl Table {
    fn new(ids: &Arc<IdSet>, number: usize, rows: &[u32]) -> Self {
        let options = SourceOptions { stale_after: Duration::MAX, ..SourceOptions::default() };
        let run = Run::new(Arc::clone(ids), number, options);
        Self {
            run,
            follow: Follow::default(),
            history: vec![rows.iter().copied().collect()],
            log: Vec::new(),
            position: 0,
            full_read: None,
            asked: None,
            known: None,
        }
    }

    fn rows(&self) -> &BTreeSet<u32> {
        self.history.last().unwrap()
    }

    fn commit(&mut self, kind: ChangeKind, id: u32) {
        let mut rows = self.rows().clone();
        match kind {
            ChangeKind::Delete => _ = rows.remove(&id),
            _ => _ = rows.insert(id),
        }
        self.history.push(rows);
        self.log.push((kind, id));
    }

    fn report(&mut self, event: Event<u8, Instant>) {
        for effect in self.run.step(&mut self.follow, event, &self.position) {
            match effect {
                Effect::Publish => {}
                Effect::KnownUntil(_) => self.known = self.asked.take(),
                Effect::MakeStale => self.known = None,
            }
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Insert(id) => self.commit(ChangeKind::Insert, id),
            Step::Delete(id) => self.commit(ChangeKind::Delete, id),
            Step::Deliver => {
                let (kind, id) = self.log[usize::from(self.position)];
                self.run.apply_change(kind, id.to_string().as_bytes()).unwrap();
                self.position += 1;
                self.report(Event::Reached);
            }
            Step::Begin => {
                let generation = self.run.start_generation(1).unwrap();
                self.full_read = Some((generation, self.rows().clone()));
                self.report(Event::ReadBegun);
            }
            Step::End => {
                let (generation, rows) = self.full_read.take().unwrap();
                for id in rows {
                    generation.load_key(id.to_string().as_bytes(), None).unwrap();
                }
                let end = self.log.len() as u8;
                self.report(Event::ReadEnded(end));
            }
            Step::Ask => {
                self.asked.get_or_insert(self.log.len());
                let end = self.log.len() as u8;
                self.report(Event::LogEnd(Instant::now(), end));
            }
            Step::Renew => self.report(Event::RebuildDue),
            Step::Lose => {
                (self.full_read, self.asked) = (None, None);
                self.report(Event::Lost);
                self.position = self.log.len() as u8;
                self.report(Event::Connected { continues: false });
            }
        }
    }

    /// Tests whether an id has existed in the table since the time up to which the source knows all commits.
    fn must_have(&self, id: u32) -> bool {
        self.known.is_some_and(|known| self.history[known..].iter().all(|it| it.contains(&id)))
    }
}

const IDS: std::ops::RangeInclusive<u32> = 1..=9;

fn passes(ids: &IdSet, id: u32) -> bool {
    ids.decide(id.to_string().as_bytes()).passes()
}

/// Checks the promise of a set: an id that its sources must have is not refused, and no id is refused while a source
/// does not know all commits.
fn check(ids: &IdSet, tables: &[Table; 2], path: &[(usize, Step)]) {
    let is_synced = tables.iter().all(|table| table.known.is_some());
    for id in IDS {
        if !is_synced || tables.iter().any(|table| table.must_have(id)) {
            assert!(passes(ids, id), "{id} is refused after {path:?}");
        }
    }
}

/// Calls `each` with every order of `left` and `right` steps: true stands for a step of the first script.
fn orders(left: usize, right: usize, order: &mut Vec<bool>, each: &mut dyn FnMut(&[bool])) {
    if left + right == 0 {
        return each(order);
    }
    for (is_first, left, right) in
        [(true, left.checked_sub(1), Some(right)), (false, Some(left), right.checked_sub(1))]
    {
        let Some((left, right)) = left.zip(right) else { continue };
        order.push(is_first);
        orders(left, right, order, each);
        order.pop();
    }
}

/// Runs two scripts in each order, after the steps `before`. Both tables begin with the id 7. At the end, the sources
/// know all commits, so the set has exactly the ids of both tables. Returns the number of orders.
fn run(before: &[(usize, Step)], first: &[Step], second: &[Step]) -> usize {
    let mut count = 0;
    orders(first.len(), second.len(), &mut Vec::new(), &mut |order| {
        let options = IdSetOptions {
            rate: 1e-9,
            items: 0,
            negative_requests: 0,
            ..IdSetOptions::new(IdType::integer())
        };
        let ids = Arc::new(IdSet::with_sources(options, 2).unwrap());
        let mut tables = [Table::new(&ids, 0, &[1, 7]), Table::new(&ids, 1, &[2, 7])];
        let mut scripts = [first.iter(), second.iter()];
        let steps = order.iter().map(|&is_first| {
            let number = usize::from(!is_first);
            (number, *scripts[number].next().unwrap())
        });
        let mut path = Vec::new();
        for (number, step) in before.iter().copied().chain(steps) {
            tables[number].take(step);
            path.push((number, step));
            check(&ids, &tables, &path);
        }
        for id in IDS {
            let exists = tables.iter().any(|table| table.rows().contains(&id));
            assert_eq!(passes(&ids, id), exists, "{id} after {path:?}");
        }
        count += 1;
    });
    count
}

#[test]
fn no_order_of_the_steps_of_two_sources_refuses_an_id_of_either_table() {
    use Step::{Ask, Begin, Delete, Deliver, End, Insert, Lose, Renew};
    // The first table deletes the id 7 and renews its generation. The second table keeps the id 7, and loses its log
    // and an insert. One of the two sources is synced before.
    let synced = |number| [(number, Begin), (number, End), (number, Ask)];
    let renewed = [Begin, End, Delete(7), Renew, Begin, Deliver, End, Ask];
    let lost = [Begin, End, Insert(3), Lose, Begin, End, Ask];
    assert_eq!(run(&synced(1), &renewed, &lost[2..]), 1287);
    assert_eq!(run(&synced(0), &renewed[2..], &lost), 1716);
    // Both tables delete the id 7. The first table creates the id 7 again.
    let again = [Delete(7), Deliver, Insert(7), Deliver, Ask];
    let deleted = [Begin, End, Ask, Delete(7), Deliver, Ask];
    assert_eq!(run(&synced(0), &again, &deleted), 462);
    assert_eq!(run(&[], &deleted, &deleted), 924);
}
