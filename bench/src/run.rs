//! Runs a case: its entries in turn, round after round, so that a noisy minute hits them all.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// One run of an entry's loop.
pub struct Sample {
    pub elapsed: Duration,
    /// The yes answers, the new items or the lines kept: what proves that the work was done.
    pub yes: u64,
}

/// Times `work` and keeps its count of yes answers.
pub fn time(work: impl FnOnce() -> u64) -> Sample {
    let start = Instant::now();
    let yes = std::hint::black_box(work());
    Sample { elapsed: start.elapsed(), yes }
}

/// One contender in one case.
pub struct Entry<'a> {
    pub name: String,
    /// How many items one run of the loop takes.
    pub items: u64,
    pub bits_per_item: Option<f64>,
    /// The measured rate of false positives.
    pub rate: Option<f64>,
    /// The answers that are right.
    pub expect: RangeInclusive<u64>,
    pub work: Box<dyn FnMut() -> Sample + 'a>,
}

/// What was measured of one contender in one case.
pub struct Row {
    pub case: String,
    pub name: String,
    pub bits_per_item: Option<f64>,
    pub rate: Option<f64>,
    /// Nanoseconds an item, one for each round.
    pub rounds: Vec<f64>,
}

impl Row {
    pub fn median(&self) -> f64 {
        median(self.rounds.clone())
    }

    pub fn min(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// How many times as long as `other`, taken round by round.
    pub fn ratio(&self, other: &Row) -> f64 {
        median(self.rounds.iter().zip(&other.rounds).map(|(a, b)| a / b).collect())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        (values[middle - 1] + values[middle]) / 2.0
    } else {
        values[middle]
    }
}

/// The run as a whole: which cases are asked for, and what came of them.
pub struct Bench {
    pub filter: Option<String>,
    pub quick: bool,
    pub rounds: usize,
    pub rows: Vec<Row>,
    pub wrong: Vec<String>,
}

/// A loop is repeated within a round until it took so long.
const ROUND: Duration = Duration::from_millis(25);

impl Bench {
    /// Tells whether this case was asked for.
    pub fn wants(&self, case: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| case.contains(filter.as_str()))
    }

    /// Runs the entries of one case in turn.
    pub fn case(&mut self, case: &str, mut entries: Vec<Entry<'_>>) {
        if !self.wants(case) {
            return;
        }
        println!("\n{case}");
        // The first run warms caches, proves the answers and finds how often to repeat.
        let mut repeats = Vec::new();
        for entry in &mut entries {
            let sample = (entry.work)();
            if !entry.expect.contains(&sample.yes) {
                let (name, yes, expect) = (&entry.name, sample.yes, &entry.expect);
                self.wrong.push(format!("{case}: {name} answered {yes}, right is {expect:?}"));
            }
            repeats.push((ROUND.as_nanos() / sample.elapsed.as_nanos().max(1)).clamp(0, 9999) + 1);
        }
        let mut rounds = vec![Vec::new(); entries.len()];
        for _ in 0..self.rounds {
            for ((entry, &repeats), rounds) in entries.iter_mut().zip(&repeats).zip(&mut rounds) {
                let spent: Duration = (0..repeats).map(|_| (entry.work)().elapsed).sum();
                rounds.push(spent.as_nanos() as f64 / (repeats as u64 * entry.items) as f64);
            }
        }
        for (entry, rounds) in entries.into_iter().zip(rounds) {
            let Entry { name, bits_per_item, rate, .. } = entry;
            let row = Row { case: case.to_owned(), name, bits_per_item, rate, rounds };
            println!("{}", line(&row));
            self.rows.push(row);
        }
    }
}

/// Draws a row for people who watch.
fn line(row: &Row) -> String {
    let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    format!(
        "  {:<24} {:>9.2} ns  (min {:>8.2})  {:>7} bits/item  rate {}",
        row.name,
        row.median(),
        row.min(),
        optional(row.bits_per_item.map(|bits| format!("{bits:.2}"))),
        optional(row.rate.map(|rate| format!("{rate:.5}"))),
    )
}
