//! Draws the rate by memory, with a curve for each kind of filter.

use tamis::{Kind, Plan};

use crate::numbers::{Count, Rate};
use crate::svg::{Axis, Chart, Layer, Scale, Side};

/// Upper end of the curves in bits per item. The axis is longer if the plan has more bits per item.
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
    // The curve with the highest end comes first, so that labels that must move apart keep their
    // order.
    let end = |points: &[(f64, f64)]| points.last().map_or(0.0, |&(_, rate)| rate);
    curves.sort_by(|(.., one), (.., other)| end(other).total_cmp(&end(one)));
    let mut layers: Vec<Layer> = curves
        .into_iter()
        .map(|(kind, class, points)| Layer::Line { name: kind.to_string(), class, points })
        .collect();
    layers.push(Layer::Mark {
        name: format!("{:.1} bits, {}", best.bits_per_item(), Rate(best.rate())),
        at: (best.bits_per_item(), best.rate()),
        side: Side::Right,
    });
    let decades = (-lowest.log10()).ceil().clamp(3.0, 12.0) as i32;
    Chart {
        title: format!("{} items: rate by memory", Count(best.items())),
        x: Axis {
            title: "bits an item".into(),
            from: 0.0,
            to: most,
            scale: Scale::Linear,
            ticks: (0..=8)
                .map(|i| f64::from(i) * most / 8.0)
                .map(|at| (at, format!("{at}")))
                .collect(),
        },
        y: Axis {
            title: "false positive rate".into(),
            from: 10_f64.powi(-decades),
            to: 1.0,
            scale: Scale::Log,
            ticks: (0..=decades).map(|d| (10_f64.powi(-d), power_of_ten(d))).collect(),
        },
        layers,
    }
}

/// Formats 10⁻ᵈ: as a percentage down to 0.1 %, then as a power of ten.
pub fn power_of_ten(d: i32) -> String {
    match d {
        0 => "100 %".into(),
        1 => "10 %".into(),
        2 => "1 %".into(),
        3 => "0.1 %".into(),
        _ => {
            let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
            let power: String =
                d.to_string().bytes().map(|digit| digits[usize::from(digit - b'0')]).collect();
            format!("10⁻{power}")
        }
    }
}
