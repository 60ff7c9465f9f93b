//! Draws the rate by memory, with a curve for each kind of filter.

use tamis::{Kind, Plan};

use crate::arguments::numbers::{self, Rate};
use crate::io::svg::{Axis, Chart, ChartLayer, Side};

/// The upper end of the curves in bits per item. If the plan has more bits per item
/// than `BITS_PER_ITEM`, the axis is longer.
const BITS_PER_ITEM: f64 = 32.0;

/// Draws the rate of each kind at each size, for the capacity of `best`.
pub fn rate_by_memory(best: &Plan) -> Chart {
    let most = BITS_PER_ITEM.max((best.bits_per_item() * 1.2 / 8.0).ceil() * 8.0);
    // Small filters grow in steps of whole blocks. The curves are smooth from 10,000 items on.
    let items = best.items().clamp(10_000, 1_000_000);
    let mut lowest: f64 = best.rate();
    let mut curves = Vec::new();
    for (kind, class) in Kind::ALL.into_iter().zip(1..) {
        let mut points = Vec::new();
        for step in 4..=(most * 2.0) as u64 {
            let bits_per_item = step as f64 / 2.0;
            let bytes = (items as f64 * bits_per_item / 8.0) as u64;
            if let Ok(plan) = Plan::for_items_in(kind, items, bytes) {
                points.push((bits_per_item, plan.rate()));
                lowest = lowest.min(plan.rate());
            }
        }
        curves.push((kind, class, points));
    }
    // The curve with the highest end comes first, so that the labels of the curves keep their order
    // when the drawing moves overlapping labels apart.
    let end = |points: &[(f64, f64)]| points.last().map_or(0.0, |&(_, rate)| rate);
    curves.sort_by(|(.., one), (.., other)| end(other).total_cmp(&end(one)));
    let mut layers: Vec<ChartLayer> = curves
        .into_iter()
        .map(|(kind, class, points)| ChartLayer::Line { name: kind.to_string(), class, points })
        .collect();
    layers.push(ChartLayer::Mark {
        name: format!("{:.1} bits, {}", best.bits_per_item(), Rate(best.rate())),
        at: (best.bits_per_item(), best.rate()),
        side: Side::Right,
    });
    let decades = (-lowest.log10()).ceil().clamp(3.0, 12.0) as i32;
    Chart {
        title: format!("{}: rate by memory", numbers::items(best.items())),
        x: Axis::linear("bits an item", most, most / 8.0, |at| at.to_string()),
        y: Axis::rate(decades),
        layers,
    }
}
