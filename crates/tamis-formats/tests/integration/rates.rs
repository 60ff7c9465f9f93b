//! The rate that a filter states is the rate that it has: a simulation of every format asks filters
//! for random absent items, and compares the share that is found with [`FilterInfo::rate_now`].
//!
//! [`FilterInfo::rate_now`]: tamis_formats::FilterInfo::rate_now

use crate::support::{encode_with, insert, planned};
use tamis::Answers;
use tamis_formats::{Contents, DecodeOptions, FORMATS, Format, ItemDomain};

/// How many absent items are asked for, and how many are enough to find.
struct Effort {
    asked: u64,
    found: f64,
}

/// A random item. The items of each number are different.
type Item = [u8; 16];

/// Returns random items. `stream` is 0 for the items of a filter and 1 for absent items.
fn items(stream: u64, from: u64, count: u64) -> Vec<Item> {
    let random = |number: u64| {
        let z = number.wrapping_add(stream << 56);
        let z = (z ^ z >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let item = |i: u64| u128::from(random(2 * i)) << 64 | u128::from(random(2 * i + 1));
    (from..from + count).map(|i| item(i).to_le_bytes()).collect()
}

/// Returns the items as the format holds them.
fn keys<'i>(format: &Format, items: &'i [Item]) -> Vec<&'i [u8]> {
    let len = match format.item_domain {
        ItemDomain::OrcHashes | ItemDomain::AbloomHashes => 8,
        ItemDomain::HashCodes => 4,
        _ => 16,
    };
    items.iter().map(|item| &item[..len]).collect()
}

/// Returns the versions of a format whose filters differ, as the user names them; one unnamed version for most
/// formats.
fn versions(format: &Format) -> &'static [Option<&'static str>] {
    match format.name {
        "cassandra" => &[Some("na"), Some("ic")],
        "spark" => &[Some("1"), Some("2")],
        _ => &[None],
    }
}

/// Returns a filter of the items of a cell, as its file stores it. `None` if the original system has no such
/// filter.
fn filled(format: &Format, version: Option<&str>, cell: Cell) -> Option<Contents> {
    let (version, block_hash) = (version.map(Into::into), Some(Default::default()));
    let options = DecodeOptions { version, block_hash, ..planned(cell.planned, cell.rate) };
    let mut filter = (format.create)(&options).ok()?;
    for from in (0..cell.count).step_by(4096) {
        let some = items(0, from, (cell.count - from).min(4096));
        insert(&mut filter, &keys(format, &some)).unwrap();
    }
    let bytes = encode_with(format.name, &filter, &options).unwrap();
    Some((format.decode)(&bytes, &options).unwrap())
}

/// Compares the stated rate of a filter with the share of absent items that it finds. Returns false if there is
/// no such filter.
fn check(
    format: &Format,
    version: Option<&str>,
    cell: Cell,
    effort: &Effort,
) -> Result<bool, String> {
    let Some(filter) = filled(format, version, cell) else { return Ok(false) };
    let stated = filter.info().rate_now;
    let (mut asked, mut found, mut answers) = (0, 0_u64, Answers::new());
    while asked < effort.asked && (found as f64) < effort.found {
        let some = items(1, asked, 4096);
        filter.contains_each(&keys(format, &some), &mut answers);
        asked += some.len() as u64;
        found += answers.count_ones() as u64;
    }
    let (found, expected) = (found as f64, stated * asked as f64);
    // Binomial bounds, and a tenth for the error of the formulas and measurements.
    let within = 0.1 * expected + 4.5 * expected.max(1.0).sqrt();
    let measured = found / asked as f64;
    let line = format!(
        "{} {version:?} {cell:?}: states {stated:.3e}, has {measured:.3e} ({found} of {asked})",
        format.name
    );
    if std::env::var_os("TAMIS_SHOW").is_some() {
        println!("{line}");
    }
    if (found - expected).abs() <= within { Ok(true) } else { Err(line) }
}

/// A filter of `count` items that was planned for `planned` items at `rate`.
#[derive(Clone, Copy, Debug)]
struct Cell {
    planned: u64,
    count: u64,
    rate: f64,
}

/// Returns a filter that holds as many items as it was planned for.
fn full((count, rate): (u64, f64)) -> Cell {
    Cell { planned: count, count, rate }
}

/// Checks the cells for every format. Each version of a format has filters for at least `least` of them.
fn check_all(cells: &[Cell], effort: &Effort, least: usize) {
    let mut failed = Vec::new();
    for format in FORMATS.iter().filter(|format| format.item_domain != ItemDomain::Integers) {
        for &version in versions(format) {
            let mut checked = 0;
            for &cell in cells {
                match check(format, version, cell, effort) {
                    Ok(has_filter) => checked += usize::from(has_filter),
                    Err(line) => failed.push(line),
                }
            }
            if checked < least {
                failed.push(format!("{} {version:?} has {checked} filters", format.name));
            }
        }
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

#[test]
fn every_format_states_the_rate_that_it_has() {
    let effort = Effort { asked: 400_000, found: 400.0 };
    let small = [1, 20, 300].map(|count| [(count, 1e-2), (count, 1e-4)].map(full));
    // The plan of stream-lib reaches no low rate.
    check_all(small.as_flattened(), &effort, 3);
    check_all(&[(5_000, 1e-4), (100_000, 1e-3)].map(full), &effort, 1);
    // A filter of BIP-37 has at most 36,000 bytes.
    check_all(&[(1_000_000, 1e-2)].map(full), &Effort { asked: 50_000, found: 400.0 }, 0);
}

/// The number of bits decides which probes repeat.
#[test]
fn every_size_of_a_filter_states_the_rate_that_it_has() {
    let effort = Effort { asked: 20_000, found: 400.0 };
    let sizes = (2..300).step_by(23).map(|count| full((count, 2e-2)));
    // The plans of most formulas have about 2¹⁶, 3 · 2¹⁵, 5 · 2¹⁴ and 2¹⁷ bits.
    let powers = [6_838, 10_256, 8_547, 13_675].map(|count| full((count, 1e-2)));
    check_all(&sizes.chain(powers).collect::<Vec<_>>(), &effort, 15);
}

#[test]
fn a_filter_with_few_of_its_items_states_a_low_rate() {
    // This plan of Redisson has 9,728 bits, 2⁹ · 19: many classes of positions are empty.
    let cells = [1, 3, 30].map(|count| Cell { planned: 1_015, count, rate: 1e-2 });
    check_all(&cells, &Effort { asked: 50_000, found: 400.0 }, 3);
}

/// Takes hours: most rates of 10⁻⁷ need 10⁹ absent items.
#[test]
#[ignore = "takes hours"]
fn every_format_states_the_low_rates_that_it_has() {
    let effort = Effort { asked: 2_000_000_000, found: 200.0 };
    for rate in [1e-3, 1e-4, 1e-5, 1e-6, 1e-7] {
        let counts = [1, 5, 20, 100, 1_000, 10_000, 100_000, 1_000_000];
        check_all(&counts.map(|count| full((count, rate))), &effort, 1);
    }
}
