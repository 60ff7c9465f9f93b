//! `Debug` shows the kind and the fill of a filter of any size, on one line.

use tamis::{AnyFilter, Bits, Hasher, Kind, Plan, SharedBloom};

fn shown_number(text: &str, field: &str) -> f64 {
    let start = text.find(&format!("{field}: ")).unwrap_or_else(|| panic!("no {field}: {text}"));
    let rest = &text[start + field.len() + 2..];
    rest[..rest.find([',', ' ']).unwrap()].parse().unwrap()
}

#[test]
fn every_kind_shows_its_numbers() {
    for kind in Kind::ALL {
        let plan = Plan::for_kind(kind, 400_000, 0.01).unwrap();
        let mut seen = AnyFilter::from_plan(&plan, Hasher::keyed([0x5eec, 0x5eed])).unwrap();
        let items: Vec<u64> = (0..200_000).collect();
        seen.try_insert_all(&items).unwrap();
        let mut shown = vec![format!("{seen:?}")];
        shown.extend(seen.as_view().map(|view| format!("{view:?}")));
        for text in shown {
            let capacity = if kind.grows() { "" } else { "capacity: 400000, " };
            assert!(text.contains(&format!("kind: {kind}, {capacity}planned_rate")), "{text}");
            let items = shown_number(&text, "estimated_items");
            assert!((190_000.0..210_000.0).contains(&items), "{text}");
            let rate = shown_number(&text, "estimated_rate");
            assert!((rate - seen.estimate_rate()).abs() < 0.1 * rate + 1e-4, "{text}");
            assert!((shown_number(&text, "fill") - seen.fill()).abs() < 0.02, "{text}");
            assert!(!text.contains("24300") && !text.contains("5eec"), "a key is secret: {text}");
        }
    }
}

#[test]
fn a_small_shared_filter_shows_all_of_its_bits() {
    let seen = SharedBloom::for_items(100, 0.01).unwrap();
    let empty = "Bloom { kind: split-block, capacity: 100, planned_rate: 0.01, estimated_items: 0, \
                 estimated_rate: 0.00e0, fill: 0.000, hasher: ";
    assert!(format!("{seen:?}").starts_with(empty), "{seen:?}");
    seen.insert("one");
    assert_eq!(seen.bits().count_ones(), 8);
    assert!(format!("{seen:?}").contains("estimated_items: 1, "), "{seen:?}");
}
