//! Runs the entries of a case in turn, for several rounds, so that noise on the machine affects all
//! entries.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

/// One run of an entry's loop.
pub struct Sample {
    pub elapsed: Duration,
    /// The number of yes answers, new items or output lines. The number proves that the loop did
    /// its work.
    pub yes: u64,
}

/// Measures the time of `work`. Keeps its number of yes answers.
pub fn time(work: impl FnOnce() -> u64) -> Sample {
    let start = Instant::now();
    let yes = std::hint::black_box(work());
    Sample { elapsed: start.elapsed(), yes }
}

/// Runs `run` on all parts at the same time, each part on its own thread and core. Measures the
/// total time.
///
/// The time begins when all threads have started and ends when the last thread has ended. So the
/// time does not include the start of threads.
pub fn time_threads<P: Send>(
    parts: impl ExactSizeIterator<Item = P>,
    run: impl Fn(P) + Sync,
) -> Sample {
    let (run, barrier) = (&run, &Barrier::new(parts.len()));
    let spans = std::thread::scope(|scope| {
        let start_thread = |(core, part)| {
            scope.spawn(move || {
                // Without this call, the system may start both threads on one core, and take
                // milliseconds to move a thread.
                let mut cores = CpuSet::new();
                cores.set(core);
                // If the core does not exist, the system chooses one.
                _ = sched_setaffinity(None, &cores);
                barrier.wait();
                // Each thread reads the clock itself, because the calling thread may get a core
                // only after another thread has ended.
                let began = Instant::now();
                run(part);
                (began, Instant::now())
            })
        };
        let running: Vec<_> = parts.enumerate().map(start_thread).collect();
        running.into_iter().map(|it| it.join().expect("no panic")).collect::<Vec<_>>()
    });
    let began = spans.iter().map(|(began, _)| *began).min();
    let ended = spans.iter().map(|(_, ended)| *ended).max();
    let elapsed = ended.zip(began).map_or(Duration::ZERO, |(ended, began)| ended - began);
    Sample { elapsed, yes: 0 }
}

/// The loop of an entry, which may run any number of times.
pub type Work<'a> = Box<dyn FnMut() -> Sample + 'a>;

/// One contender in one case.
pub struct Entry<'a> {
    pub name: String,
    /// The number of items in one run of the loop.
    pub items: u64,
    pub bits_per_item: Option<f64>,
    /// The measured false positive rate.
    pub rate: Option<f64>,
    /// The correct numbers of yes answers.
    pub expect: RangeInclusive<u64>,
    pub work: Work<'a>,
}

impl<'a> Entry<'a> {
    /// Creates an entry for a loop without a filter. The entry has no size and no rate.
    pub fn new(
        name: impl Into<String>,
        items: u64,
        expect: RangeInclusive<u64>,
        work: impl FnMut() -> Sample + 'a,
    ) -> Self {
        let (name, work) = (name.into(), Box::new(work));
        Self { name, items, bits_per_item: None, rate: None, expect, work }
    }
}

/// The measurements of one contender in one case.
pub struct Row {
    pub case: String,
    pub name: String,
    pub bits_per_item: Option<f64>,
    pub rate: Option<f64>,
    /// The peak memory of a whole program.
    pub peak_mib: Option<f64>,
    /// The number of output lines of a whole program.
    pub lines: Option<u64>,
    /// The time of each round: per item in nanoseconds, or of a whole program in seconds.
    pub rounds: Vec<f64>,
}

impl Row {
    /// Creates a row without measurements.
    pub fn new(case: &str, name: &str) -> Self {
        Self {
            case: case.to_owned(),
            name: name.to_owned(),
            bits_per_item: None,
            rate: None,
            peak_mib: None,
            lines: None,
            rounds: Vec::new(),
        }
    }

    pub fn median(&self) -> f64 {
        median(self.rounds.clone())
    }

    pub fn min(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the time relative to the time of `other`. Compares the best rounds, because other
    /// programs on the machine only add time.
    pub fn ratio(&self, other: &Row) -> f64 {
        self.min() / other.min()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        (values[middle - 1] + values[middle]) / 2.0
    } else {
        values[middle]
    }
}

/// The whole run: the selected cases and their results.
pub struct Bench {
    pub filter: Option<String>,
    pub quick: bool,
    pub rounds: usize,
    pub rows: Vec<Row>,
    pub wrong: Vec<String>,
}

/// Within a round, a loop is repeated for at least this time.
const ROUND: Duration = Duration::from_millis(15);

/// If an entry takes at least this time, its case has at most three rounds.
const SLOW: Duration = Duration::from_secs(2);

impl Bench {
    /// Prints rows, and keeps them for the report.
    pub fn keep(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            println!("{row}");
            self.rows.push(row);
        }
    }

    /// Tests whether the user selected this case.
    pub fn wants(&self, case: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| case.contains(filter.as_str()))
    }

    /// Runs the entries of one case in turn.
    pub fn case(&mut self, case: &str, mut entries: Vec<Entry<'_>>) {
        if !self.wants(case) {
            return;
        }
        println!("\n{case}");
        let mut count = self.rounds;
        // The first run warms the caches, verifies the answers and determines the number of
        // repetitions.
        let mut repeats = Vec::new();
        for entry in &mut entries {
            let sample = (entry.work)();
            if !entry.expect.contains(&sample.yes) {
                let (name, yes, expect) = (&entry.name, sample.yes, &entry.expect);
                self.wrong.push(format!("{case}: {name} answered {yes}, right is {expect:?}"));
            }
            if sample.elapsed > SLOW {
                count = count.min(3);
            }
            repeats.push((ROUND.as_nanos() / sample.elapsed.as_nanos().max(1)).clamp(0, 9999) + 1);
        }
        let mut rounds = vec![Vec::new(); entries.len()];
        for _ in 0..count {
            for ((entry, &repeats), rounds) in entries.iter_mut().zip(&repeats).zip(&mut rounds) {
                let spent: Duration = (0..repeats).map(|_| (entry.work)().elapsed).sum();
                rounds.push(spent.as_nanos() as f64 / (repeats as u64 * entry.items) as f64);
            }
        }
        for (entry, rounds) in entries.into_iter().zip(rounds) {
            let Entry { name, bits_per_item, rate, .. } = entry;
            self.keep([Row { bits_per_item, rate, rounds, ..Row::new(case, &name) }]);
        }
    }
}

impl fmt::Display for Row {
    /// Formats the row for the terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.lines.is_some() { "s" } else { "ns" };
        let (median, min) = (self.median(), self.min());
        match self.rounds.is_empty() {
            true => write!(f, "  {:<44}", self.name)?,
            false => write!(f, "  {:<28} {median:>9.2} {unit:<2} (min {min:>8.2})", self.name)?,
        }
        if let Some(bits) = self.bits_per_item {
            write!(f, "  {bits:>7.2} bits/item")?;
        }
        if let Some(rate) = self.rate {
            write!(f, "  rate {rate:.5}")?;
        }
        if let Some(peak) = self.peak_mib {
            write!(f, "  {peak:>7.1} MiB")?;
        }
        if let Some(lines) = self.lines {
            write!(f, "  {lines} lines")?;
        }
        Ok(())
    }
}
