//! Parses the options of `TM.RESERVE key` and `TM.PLAN`, and plans a filter from the options.

use tamis::{Kind, Plan, PlanError, PlanInput, Span};
use tamis_resp::Reply;

use crate::command::argv::{Argv, is, parse_double, parse_integer};
use crate::command::run::error;
use crate::text::tm;

/// The values of `KIND`, in display order.
pub(super) const KINDS: [Kind; 6] =
    [Kind::SplitBlock, Kind::Classic, Kind::Growing, Kind::Cuckoo, Kind::Counting, Kind::Window];

/// The options of `TM.RESERVE` or `TM.PLAN`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FilterOptions {
    pub kind: Option<Kind>,
    pub items: Option<u64>,
    pub rate: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub counter_bits: Option<u32>,
    pub bucket: Option<u32>,
    pub window: Option<Span>,
    pub slices: Option<u32>,
    pub refreshes: bool,
}

/// The options of `TM.PLAN`.
const PLAN_OPTIONS: &str = "KIND, ITEMS, RATE and MEMORY";
/// The options of `TM.RESERVE`.
const ALL_OPTIONS: &str = "KIND, ITEMS, RATE, MEMORY, COUNTER, BUCKET, WINDOW, SLICES and REFRESH";

impl FilterOptions {
    /// Parses the options of `TM.PLAN`.
    pub fn of_plan(argv: Argv<'_>) -> Result<Self, Reply> {
        Self::parse(argv, true)
    }

    /// Parses the options of `TM.RESERVE`.
    pub fn of_filter(argv: Argv<'_>) -> Result<Self, Reply> {
        let mut options = Self::parse(argv, false)?;
        let Some(kind) = options.kind else { return Err(error(tm::NO_KIND)) };
        for (is_given, name, its_kind) in [
            (options.counter_bits.is_some(), "COUNTER", Kind::Counting),
            (options.bucket.is_some(), "BUCKET", Kind::Cuckoo),
            (options.window.is_some(), "WINDOW", Kind::Window),
            (options.slices.is_some(), "SLICES", Kind::Window),
            (options.refreshes, "REFRESH", Kind::Window),
        ] {
            if is_given && kind != its_kind {
                return Err(tm::other_kind(name, its_kind));
            }
        }
        if kind == Kind::Window {
            match options.window {
                None => return Err(error(tm::NO_WINDOW)),
                Some(Span::Items(_)) if options.items.is_some() => {
                    return Err(error(tm::WINDOW_ITEMS));
                }
                Some(Span::Items(items)) => {
                    if options.slices.is_some_and(|slices| u64::from(slices) > items) {
                        return Err(error(tm::SLICES));
                    }
                    options.items = Some(items);
                }
                // Items may arrive unevenly, so plan one slice for all items.
                Some(Span::Millis(_)) => options.slices = options.slices.or(Some(1)),
            }
        }
        Ok(options)
    }

    fn parse(argv: Argv<'_>, is_plan: bool) -> Result<Self, Reply> {
        let mut options = Self::default();
        let mut rest = argv;
        while let [word, behind @ ..] = rest {
            rest = behind;
            let mut next = || {
                let (value, behind) = rest.split_first()?;
                rest = behind;
                Some(*value)
            };
            if is(word, "KIND") {
                let word = next().ok_or_else(|| error(tm::NO_KIND))?;
                let kind = KINDS.into_iter().find(|kind| is(word, kind.name()));
                set(&mut options.kind, kind.ok_or_else(|| tm::unknown_kind(word))?, "KIND")?;
            } else if is(word, "ITEMS") {
                set(&mut options.items, number(next(), "ITEMS")?, "ITEMS")?;
            } else if is(word, "RATE") {
                let rate = next().and_then(parse_double).filter(|&rate| rate > 0.0 && rate < 1.0);
                set(&mut options.rate, rate.ok_or_else(|| error(tm::RATE))?, "RATE")?;
            } else if is(word, "MEMORY") {
                set(&mut options.memory_bytes, number(next(), "MEMORY")?, "MEMORY")?;
            } else if is_plan {
                return Err(tm::unknown_option(word, PLAN_OPTIONS));
            } else if is(word, "COUNTER") {
                let bits = small(next(), |bits| matches!(bits, 4 | 8 | 16));
                set(&mut options.counter_bits, bits.ok_or_else(|| error(tm::COUNTER))?, "COUNTER")?;
            } else if is(word, "BUCKET") {
                let slots = small(next(), |slots| (2..=4).contains(&slots));
                set(&mut options.bucket, slots.ok_or_else(|| error(tm::BUCKET))?, "BUCKET")?;
            } else if is(word, "WINDOW") {
                let span = number(next(), "WINDOW")?;
                // If a number follows the word `ITEMS`, the word is the option `ITEMS n`.
                let is_items = rest.first().is_some_and(|word| is(word, "ITEMS"))
                    && rest.get(1).is_none_or(|word| parse_integer(word).is_none());
                let span = if is_items { Span::Items(span) } else { Span::Millis(span) };
                rest = &rest[usize::from(is_items)..];
                set(&mut options.window, span, "WINDOW")?;
            } else if is(word, "SLICES") {
                let slices = small(next(), |slices| (1..=255).contains(&slices));
                set(&mut options.slices, slices.ok_or_else(|| error(tm::SLICES))?, "SLICES")?;
            } else if is(word, "LIKE") {
                return Err(error(tm::LIKE));
            } else if is(word, "REFRESH") {
                options.refreshes = true;
            } else {
                return Err(tm::unknown_option(word, ALL_OPTIONS));
            }
        }
        Ok(options)
    }

    /// Returns the two given numbers; `None` if the command gives fewer than two numbers.
    pub fn plan_input(&self) -> Result<Option<PlanInput>, Reply> {
        Ok(match (self.items, self.rate, self.memory_bytes) {
            (Some(_), Some(_), Some(_)) => return Err(error(tm::THREE)),
            (Some(items), Some(rate), None) => Some(PlanInput::ItemsAndRate { items, rate }),
            (None, Some(rate), Some(max_bytes)) => {
                Some(PlanInput::MemoryAndRate { max_bytes, rate })
            }
            (Some(items), None, Some(max_bytes)) => {
                Some(PlanInput::ItemsAndMemory { items, max_bytes })
            }
            _ => None,
        })
    }

    /// Plans a filter of the kind with the given size of counters, buckets or slices.
    pub fn plan(&self, kind: Kind, input: PlanInput) -> Result<Plan, PlanError> {
        match (self.counter_bits, self.bucket, self.slices) {
            (Some(bits), ..) => {
                plan_by(input, kind, |items, rate| Plan::counting(items, rate, bits))
            }
            (_, Some(slots), _) => {
                plan_by(input, kind, |items, rate| Plan::cuckoo(items, rate, slots))
            }
            (.., Some(slices)) => {
                plan_by(input, kind, |items, rate| Plan::window(items, rate, slices))
            }
            _ => input.plan(kind),
        }
    }
}

/// Plans a filter with `plan`, a function of items and rate. If the memory is given, searches for
/// the number of items or for the rate that fits the memory.
fn plan_by(
    input: PlanInput,
    kind: Kind,
    plan: impl Fn(u64, f64) -> Result<Plan, PlanError>,
) -> Result<Plan, PlanError> {
    let fits = |found: Result<Plan, PlanError>, max_bytes| {
        found.ok().filter(|plan| plan.bytes() <= max_bytes)
    };
    match input {
        PlanInput::ItemsAndRate { items, rate } => plan(items, rate),
        PlanInput::MemoryAndRate { max_bytes, rate } => {
            let too_small = PlanError::TooSmall { kind, max_bytes };
            let mut best = fits(plan(1, rate), max_bytes).ok_or(too_small)?;
            // Invariant: `least` items fit the memory, and `most` items do not fit the memory. Each item takes at least
            // one bit.
            let (mut least, mut most) = (1, max_bytes.saturating_mul(64));
            while most - least > 1 {
                let middle = least + (most - least) / 2;
                match fits(plan(middle, rate), max_bytes) {
                    Some(plan) => (best, least) = (plan, middle),
                    None => most = middle,
                }
            }
            Ok(best)
        }
        PlanInput::ItemsAndMemory { items, max_bytes } => {
            let too_small = PlanError::TooSmall { kind, max_bytes };
            // Search over logarithms, so that the relative precision is equal for low and high
            // rates.
            let (mut low, mut high) = (f64::MIN_POSITIVE.ln(), LEAST_USEFUL_RATE.ln());
            let mut best = fits(plan(items, high.exp()), max_bytes).ok_or(too_small)?;
            while high - low > RATE_STEP {
                let middle = f64::midpoint(low, high);
                match fits(plan(items, middle.exp()), max_bytes) {
                    Some(plan) => (best, high) = (plan, middle),
                    None => low = middle,
                }
            }
            Ok(best)
        }
    }
}

/// The highest rate that the search considers. A filter with a rate above `LEAST_USEFUL_RATE` is useless.
const LEAST_USEFUL_RATE: f64 = 0.99;

/// The relative precision of the rates that the search finds.
const RATE_STEP: f64 = 1e-4;

fn set<T>(slot: &mut Option<T>, value: T, name: &str) -> Result<(), Reply> {
    match slot.replace(value) {
        Some(_) => Err(tm::twice(name)),
        None => Ok(()),
    }
}

fn number(word: Option<&[u8]>, name: &str) -> Result<u64, Reply> {
    let number = word.and_then(parse_integer).filter(|&number| number >= 1);
    number.map(|number| number as u64).ok_or_else(|| tm::no_number(name))
}

fn small(word: Option<&[u8]>, is_one: impl Fn(i64) -> bool) -> Option<u32> {
    word.and_then(parse_integer).filter(|&number| is_one(number)).map(|number| number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<FilterOptions, Reply> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        FilterOptions::of_filter(&words)
    }

    #[test]
    fn items_behind_a_window_are_its_unit_or_the_option() {
        let by_time = parsed("KIND window WINDOW 1000 ITEMS 500").unwrap();
        assert_eq!((by_time.window, by_time.items), (Some(Span::Millis(1000)), Some(500)));
        assert_eq!(by_time.slices, Some(1));
        for line in ["KIND window WINDOW 1000 ITEMS", "kind WINDOW window 1000 items RATE 0.1"] {
            let by_items = parsed(line).unwrap();
            assert_eq!((by_items.window, by_items.items), (Some(Span::Items(1000)), Some(1000)));
            assert_eq!(by_items.slices, None);
        }
        assert_eq!(parsed("KIND window WINDOW 9 ITEMS ITEMS 5"), Err(error(tm::WINDOW_ITEMS)));
    }

    #[test]
    fn a_plan_for_a_memory_size_fits_for_every_geometry() {
        for line in [
            "KIND counting COUNTER 8",
            "KIND cuckoo BUCKET 4",
            "KIND window WINDOW 1000",
            "KIND window WINDOW 1000 SLICES 9",
        ] {
            let options = parsed(line).unwrap();
            let kind = options.kind.unwrap();
            for max_bytes in [4096, 100_000, 10_000_000] {
                let input = PlanInput::MemoryAndRate { max_bytes, rate: 0.01 };
                let plan = options.plan(kind, input).unwrap();
                let bytes = plan.bytes();
                assert!(bytes <= max_bytes && bytes * 2 > max_bytes, "{line}: {plan:?}");
                let input = PlanInput::ItemsAndMemory { items: plan.items(), max_bytes };
                let back = options.plan(kind, input).unwrap();
                assert!(back.bytes() <= max_bytes && back.rate() < 0.0102, "{line}: {back:?}");
                assert_eq!(back.geometry().to_number() >> 8, plan.geometry().to_number() >> 8);
            }
            let by_items = PlanInput::ItemsAndMemory { items: 1_000_000, max_bytes: 8 };
            let by_rate = PlanInput::MemoryAndRate { max_bytes: 8, rate: 0.1 };
            assert!(options.plan(kind, by_items).is_err() && options.plan(kind, by_rate).is_err());
        }
    }
}
