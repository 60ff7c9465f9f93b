//! The output of the demo. On a terminal, the demo redraws a table each second. To a file or a
//! pipe, the demo writes one line per second. At the end, the demo writes a summary.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use crate::commands::guard::demo::recorder::{Created, Recorder, Sample, SideRecord};
use crate::io::table;

/// The standard output of the demo.
#[derive(Debug)]
pub struct Screen {
    is_terminal: bool,
    /// The number of terminal lines that the current table takes.
    lines: usize,
    last_created: Option<u64>,
}

impl Screen {
    pub fn new() -> Self {
        Self { is_terminal: io::stdout().is_terminal(), lines: 0, last_created: None }
    }

    /// Shows the measurements of the last second.
    pub fn show(&mut self, recorder: &Recorder) -> io::Result<()> {
        if !self.is_terminal {
            return self.print_line(recorder);
        }
        let text = live_table(recorder);
        let mut out = io::stdout().lock();
        if self.lines > 0 {
            // Move the cursor up to the first line of the table.
            write!(out, "\x1b[{}A", self.lines)?;
        }
        for line in text.lines() {
            // Erase the rest of the previous line.
            writeln!(out, "{line}\x1b[K")?;
        }
        self.lines = text.lines().count();
        out.flush()
    }

    fn print_line(&mut self, recorder: &Recorder) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let (without, with) = (recorder.without.last(), recorder.with.last());
        writeln!(
            out,
            "{:.0} s: database queries a second: {:.0} without guard, {:.0} with; \
             customers' p99: {} without, {} with",
            recorder.elapsed().as_secs_f64(),
            without.queries,
            with.queries,
            time(without.p99_micros),
            time(with.p99_micros),
        )?;
        if let Some(created) = recorder.last_created()
            && self.last_created != Some(created.id)
        {
            self.last_created = Some(created.id);
            writeln!(out, "{}", sentence(created))?;
        }
        out.flush()
    }
}

fn live_table(recorder: &Recorder) -> String {
    let (without, with) = (&recorder.without, &recorder.with);
    let head = format!("{:.0} s", recorder.elapsed().as_secs_f64());
    let mut rows = vec![row(&head, "without guard", "with guard")];
    let mut add = |name: &str, value: fn(Sample) -> String| {
        rows.push(row(name, &value(without.last()), &value(with.last())));
    };
    add("database queries a second", |sample| format!("{:.0}", sample.queries));
    add("  for products that do not exist", |sample| format!("{:.0}", sample.absent_queries));
    add("customers' p99", |sample| time(sample.p99_micros));
    add("attack requests a second", |sample| format!("{:.0}", sample.attack));
    rows.push(row("wrong 404 for customers", &wrong(without), &wrong(with)));
    let mut text = format!("\n{}", table::align(&rows, &[1, 2]));
    let created = recorder.last_created().map(sentence).unwrap_or_default();
    _ = writeln!(text, "{created}\nCtrl-C ends the demo.");
    text
}

/// Returns the table of the whole demo.
pub fn summary(recorder: &Recorder) -> String {
    let (without, with) = (&recorder.without, &recorder.with);
    let seconds = recorder.elapsed().as_secs_f64();
    let head = format!("in {seconds:.0} s");
    let mut rows = vec![row(&head, "without guard", "with guard")];
    let mut add = |name: &str, value: &dyn Fn(&SideRecord) -> String| {
        rows.push(row(name, &value(without), &value(with)));
    };
    add("attack requests", &|side| side.totals().attack.to_string());
    add("  of these reached the database", &|side| side.totals().absent_queries.to_string());
    add("customer requests", &|side| side.totals().customers.to_string());
    add("  p99", &|side| time(side.p99_micros()));
    add("  wrong 404", &wrong);
    add("database queries", &|side| side.totals().queries.to_string());
    add("  a second", &|side| format!("{:.0}", side.totals().queries as f64 / seconds.max(1e-3)));
    add("failed requests", &|side| side.totals().failed.to_string());
    let mut text = format!("\n{}", table::align(&rows, &[1, 2]));
    let (created, passed) = recorder.created();
    _ = writeln!(text, "new products: {created} created, {passed} passed the guard at once");
    text
}

fn row(name: &str, without: &str, with: &str) -> Vec<String> {
    [name, without, with].map(String::from).to_vec()
}

fn wrong(side: &SideRecord) -> String {
    side.totals().wrong_404.to_string()
}

fn sentence(created: Created) -> String {
    let verb = if created.has_passed { "passed the guard" } else { "was refused" };
    let time = time(Some(created.time.as_secs_f64() * 1e6));
    format!("product {} was created and {verb} {time} later", created.id)
}

/// Formats a time in microseconds with a suitable unit.
fn time(micros: Option<f64>) -> String {
    match micros {
        None => "-".to_owned(),
        Some(micros) if micros < 1000.0 => format!("{micros:.0} µs"),
        Some(micros) if micros < 100_000.0 => format!("{:.1} ms", micros / 1000.0),
        Some(micros) => format!("{:.0} ms", micros / 1000.0),
    }
}
