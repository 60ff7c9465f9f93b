//! `tamis plan`: computes the size of a filter before it is built.

mod chart;

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;
use tamis::{DigestSet, Kind, Plan, PlanInput, expected_collisions};

use crate::arguments::byte_size::ByteSize;
use crate::arguments::numbers::{self, HumanCount, Rate};
use crate::exit::{CommandResult, Exit, Failure};
use crate::io::output::write_whole;
use crate::io::table::align;
use crate::records::key::rate;

/// Compute memory, items or rate for each kind of filter
///
/// Give two of --items, --rate and --memory; the command computes the third value. Rates are exact:
/// a filter at capacity has the printed rate.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis plan --items 10M --rate 1%         the memory
  tamis plan --memory 512M --rate 0.001    the items
  tamis plan --items 1G --memory 1G        the rate
  tamis plan --items 10M --rate 1% --svg plan.svg")]
pub struct Args {
    /// Number of distinct items (such as 10M, in powers of 1000)
    #[arg(long, value_name = "N")]
    items: Option<HumanCount>,

    /// False positive rate at capacity: a probability such as 0.01, or 1%
    #[arg(long, value_name = "R", value_parser = rate)]
    rate: Option<f64>,

    /// Memory of the filter (such as 512M, in powers of 1024)
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Write a chart of the rate by memory to FILE
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let input = args.input()?;
    let plans: Vec<Plan> = Kind::ALL.iter().filter_map(|&kind| input.plan(kind).ok()).collect();
    let best = input.plan(input.default_kind()).map_err(Failure::new)?;
    let text = if args.json { machine(input, &plans, &best) } else { people(input, &plans, &best) };
    // The chart is written first, so that nothing is printed if the chart cannot be written.
    if let Some(path) = &args.svg {
        let chart = chart::rate_by_memory(&best);
        write_whole(Some(path), crate::io::svg::document(&[chart]).as_bytes())?;
    }
    write_whole(None, text.as_bytes())?;
    Ok(Exit::Yes)
}

impl Args {
    fn input(&self) -> Result<PlanInput, Failure> {
        match (self.items, self.rate, self.memory) {
            (Some(HumanCount(items)), Some(rate), None) => {
                Ok(PlanInput::ItemsAndRate { items, rate })
            }
            (None, Some(rate), Some(ByteSize { bytes })) => {
                Ok(PlanInput::MemoryAndRate { max_bytes: bytes, rate })
            }
            (Some(HumanCount(items)), None, Some(ByteSize { bytes })) => {
                Ok(PlanInput::ItemsAndMemory { items, max_bytes: bytes })
            }
            (Some(_), Some(_), Some(_)) => Err(Failure::new(
                "--items, --rate and --memory: give two, and the third follows from them",
            )),
            _ => Err(Failure::new(
                "give two of --items, --rate and --memory, such as --items 10M --rate 1%",
            )),
        }
    }
}

/// Returns the reason why `tamis build` would choose the plan `best`.
fn why(input: PlanInput, best: &Plan) -> String {
    match input.plan(Kind::SplitBlock) {
        Ok(_) => best.why(),
        Err(_) => "no other kind is that small".into(),
    }
}

fn people(input: PlanInput, plans: &[Plan], best: &Plan) -> String {
    let mut text = match input {
        PlanInput::ItemsAndRate { items, rate } => {
            format!("{} at a rate of {}\n\n", numbers::items(items), Rate(rate))
        }
        PlanInput::MemoryAndRate { max_bytes, rate } => {
            format!("a rate of {} in {}\n\n", Rate(rate), ByteSize { bytes: max_bytes })
        }
        PlanInput::ItemsAndMemory { items, max_bytes } => {
            format!("{} in {}\n\n", numbers::items(items), ByteSize { bytes: max_bytes })
        }
    };
    let header = ["kind", "items", "memory", "bits/item", "probes", "lines", "rate", ""];
    let mut rows = vec![header.map(String::from).to_vec()];
    for plan in plans {
        rows.push(vec![
            plan.kind().to_string(),
            HumanCount(plan.items()).to_string(),
            ByteSize { bytes: plan.bytes() }.to_string(),
            format!("{:.2}", plan.bits_per_item()),
            plan.probes().to_string(),
            plan.cache_lines().to_string(),
            Rate(plan.rate_at(plan.items())).to_string(),
            if plan.kind() == best.kind() { "<- best".into() } else { String::new() },
        ]);
    }
    let exact = Exact::of(best.items());
    rows.push(vec![
        "(exact)".into(),
        HumanCount(best.items()).to_string(),
        ByteSize { bytes: exact.bytes }.to_string(),
        format!("{:.2}", exact.bits_per_item()),
        String::new(),
        "1".into(),
        Rate(exact.rate()).to_string(),
    ]);
    text.push_str(&align(&rows, &[1, 2, 3, 4, 5, 6]));
    let _ = write!(
        text,
        "\nlines: cache lines that a lookup of a member reads. (exact): the set of 64-bit hashes \
         that `tamis dedup` keeps.\n{}: {}.\n",
        best.kind(),
        why(input, best)
    );
    text
}

fn machine(input: PlanInput, plans: &[Plan], best: &Plan) -> String {
    let rows: Vec<_> = plans
        .iter()
        .map(|plan| {
            json!({
                "kind": plan.kind().name(),
                "items": plan.items(),
                "bytes": plan.bytes(),
                "bits": plan.bits(),
                "bits_per_item": plan.bits_per_item(),
                "probes": plan.probes(),
                "cache_lines": plan.cache_lines(),
                "rate": plan.rate(),
                "rate_at_capacity": plan.rate_at(plan.items()),
            })
        })
        .collect();
    let exact = Exact::of(best.items());
    let value = json!({
        "best": best.kind().name(),
        "why": why(input, best),
        "plans": rows,
        "exact": {
            "items": exact.items,
            "bytes": exact.bytes,
            "bits_per_item": exact.bits_per_item(),
            "rate": exact.rate(),
        },
    });
    format!("{value:#}\n")
}

/// The size of an exact set of 64-bit hashes, for comparison. A filter is useful only if the filter
/// is smaller than the exact set.
struct Exact {
    items: u64,
    bytes: u64,
}

impl Exact {
    fn of(items: u64) -> Self {
        Self { items, bytes: DigestSet::<u64>::bytes_for(items) }
    }

    fn bits_per_item(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.items as f64
    }

    /// Returns the probability that an absent item has the same hash as an item of the set.
    fn rate(&self) -> f64 {
        // About n²/2^(w+1) pairs of n items collide, so an absent item collides with one of the n
        // items with probability n/2^w.
        2.0 * expected_collisions(self.items, 64) / self.items as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(input: PlanInput) -> Plan {
        input.plan(input.default_kind()).unwrap()
    }

    #[test]
    fn two_of_three_answer_the_third() {
        let memory = best(PlanInput::ItemsAndRate { items: 1_000_000, rate: 0.01 });
        let max_bytes = memory.bytes();
        let items = best(PlanInput::MemoryAndRate { max_bytes, rate: 0.01 });
        let rate = best(PlanInput::ItemsAndMemory { items: 1_000_000, max_bytes });
        assert_eq!([memory.kind(), items.kind(), rate.kind()], [Kind::SplitBlock; 3]);
        assert!(items.items() >= 1_000_000 && rate.rate() <= 0.01);
    }

    #[test]
    fn the_best_kind_is_that_of_build() {
        for rate in [0.3, 0.01, 0.001, 1e-5, 1e-9] {
            let best = best(PlanInput::ItemsAndRate { items: 100_000, rate });
            assert_eq!(best, Plan::new(100_000, rate).unwrap(), "{rate}");
        }
    }

    #[test]
    fn the_exact_set_errs_by_hash_alone() {
        let exact = Exact::of(1 << 32);
        assert!((exact.rate() * 2_f64.powi(32) - 1.0).abs() < 1e-6, "{}", exact.rate());
        assert!(exact.bits_per_item() > 64.0);
    }
}
