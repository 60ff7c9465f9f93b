//! Draws a filter: the fill of its blocks, and its rate by the number of items.

use tamis::{AnyFilter, BitView, Bits as _};
use tamis_formats::TamisFile;

use crate::arguments::numbers::{HumanEstimate, Rate};
use crate::io::svg::{Axis, Chart, ChartLayer, Side};

/// The number of bars in the histogram.
const BARS: usize = 64;

/// Draws the charts for this kind of filter.
pub fn charts(name: &str, file: &TamisFile<BitView<'_>>) -> Vec<Chart> {
    let mut charts = Vec::new();
    charts.extend(pieces(&file.filter).map(|pieces| fill_by_piece(name, file, &pieces)));
    charts.push(rate_by_items(file));
    charts
}

/// Parts of a filter that fill independently.
struct Pieces {
    name: &'static str,
    fills: Vec<f64>,
}

/// Returns the fill of each part of the filter, if its kind has independent parts.
fn pieces(filter: &AnyFilter<BitView<'_>>) -> Option<Pieces> {
    let of = |name, words: &[u64], words_in_piece| {
        let fill = |piece: &[u64]| {
            let ones: u32 = piece.iter().map(|word| word.count_ones()).sum();
            f64::from(ones) / (piece.len() as f64 * 64.0)
        };
        Some(Pieces { name, fills: words.chunks(words_in_piece).map(fill).collect() })
    };
    match filter {
        AnyFilter::SplitBlock(bloom) => of("blocks of 512 bits", bloom.bits().words(), 8),
        AnyFilter::Parquet(bloom) => of("blocks of 256 bits", bloom.bits().words(), 4),
        AnyFilter::Classic(bloom) => of("pieces of 512 bits", bloom.bits().words(), 8),
        AnyFilter::Counting(counting) => {
            Some(Pieces { name: "blocks of 128 counters", fills: counting.fill_by_block() })
        }
        _ => None,
    }
}

/// Draws a histogram of the fraction of blocks in each range of fill.
fn fill_by_piece(name: &str, file: &TamisFile<BitView<'_>>, pieces: &Pieces) -> Chart {
    let mut counts = [0_u64; BARS];
    for fill in &pieces.fills {
        counts[((fill * BARS as f64) as usize).min(BARS - 1)] += 1;
    }
    let total = pieces.fills.len() as f64;
    let bar = |(i, &count): (usize, &u64)| {
        let at = |i: usize| i as f64 * 100.0 / BARS as f64;
        (at(i), at(i + 1), count as f64 * 100.0 / total)
    };
    let bars: Vec<_> = counts.iter().enumerate().map(bar).collect();
    let highest = bars.iter().map(|bar| bar.2).fold(1.0, f64::max);
    let step = nice_step(highest / 4.0);
    // The axis is longer than the highest bar, so that the label of the line fits.
    let highest = (highest * 1.1 / step).ceil() * step;
    let pieces = pieces.name;
    let fill = file.filter.fill() * 100.0;
    Chart {
        title: format!("{name}: how full its {pieces} are"),
        x: Axis::linear("bits set in a block, %", 100.0, 10.0, |at| at.to_string()),
        y: Axis::linear("share of the blocks, %", highest, step, |at| {
            ((at * 1000.0).round() / 1000.0).to_string()
        }),
        layers: vec![
            ChartLayer::Bars { bars },
            ChartLayer::Up { name: format!("all together {fill:.1} %"), at: fill },
        ],
    }
}

/// Draws the rate from zero to twice the capacity, and the current state of the filter.
fn rate_by_items(file: &TamisFile<BitView<'_>>) -> Chart {
    let plan = file.filter.plan();
    let (items, rate) = (file.filter.estimate_items(), file.filter.estimate_rate());
    let capacity = plan.items() as f64;
    let here = if items.is_finite() { items } else { 4.0 * capacity };
    let step = nice_step((2.0 * capacity).max(1.15 * here) / 6.0).max(1.0);
    let most = ((2.0 * capacity).max(1.15 * here) / step).ceil() * step;
    let decades = ((-plan.rate().log10()).ceil() as i32 + 2).clamp(3, 14);
    let lowest = 10_f64.powi(-decades);
    let points: Vec<(f64, f64)> = (1..=200)
        .map(|i| (most * f64::from(i) / 200.0).round().max(1.0))
        .map(|n| (n, plan.rate_at(n as u64)))
        .filter(|&(_, rate)| rate >= lowest)
        .collect();
    Chart {
        title: "rate by items".into(),
        x: Axis::linear("distinct items", most, step, short),
        y: Axis::rate(decades),
        layers: vec![
            ChartLayer::Across { name: format!("planned: {}", Rate(plan.rate())), at: plan.rate() },
            ChartLayer::Up { name: format!("capacity: {}", HumanEstimate(capacity)), at: capacity },
            ChartLayer::Line { name: plan.kind().to_string(), class: 1, points },
            ChartLayer::Mark {
                name: format!("now: {}, {}", HumanEstimate(items), Rate(rate)),
                at: (here, rate),
                side: Side::Left,
            },
        ],
    }
}

/// Returns the smallest number of the form 1, 2 or 5 times a power of ten that is at least `step`.
fn nice_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|m| m * power)
        .into_iter()
        .find(|&nice| nice >= step * 0.999)
        .unwrap_or(step)
}

/// Formats a number of items in few characters.
fn short(items: f64) -> String {
    for (unit, letter) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")] {
        if items >= unit {
            return format!("{}{letter}", (items / unit * 100.0).round() / 100.0);
        }
    }
    format!("{items}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_numbers() {
        assert_eq!([nice_step(0.9), nice_step(1.2), nice_step(23.0)], [1.0, 2.0, 50.0]);
        assert_eq!(nice_step(70.0), 100.0);
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!([short(0.0), short(500.0), short(1500.0)], ["0", "500", "1.5K"]);
        assert_eq!([short(2e7), short(1e12)], ["20M", "1T"]);
    }
}
