//! The filter of the C article sets the recorded positions, and a warning says that it uses only
//! half of its bits.

use crate::golden_data::{json, list, number, units};
use tamis_formats::{Contents, DecodeOptions, Format, c_hashcode};

#[test]
fn every_recorded_text_has_its_positions() {
    let golden = json("seeds_java/c_hashcode.json");
    for case in list(&golden["positions"]) {
        let key: Vec<u8> = units(&case["key"]).iter().flat_map(|unit| unit.to_le_bytes()).collect();
        for cap in [125_829_120, 1_048_576_usize] {
            let mut filter = c_hashcode::decode(&vec![0; cap / 8]).unwrap();
            filter.insert(&key);
            let mut expected: Vec<_> =
                list(&case[format!("cap_{cap}")]).iter().map(number).collect();
            for &bit in &expected {
                assert_eq!(filter.words()[bit as usize / 64] >> (bit % 64) & 1, 1, "{case}");
            }
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(filter.count_ones(), expected.len() as u64, "{case}");
        }
    }
}

#[test]
fn a_new_one_has_the_size_of_the_article_and_says_what_is_wrong_with_it() {
    let create = Format::named("c-hashcode").unwrap().create;
    let info = create(&DecodeOptions::default()).unwrap().info();
    assert_eq!(info.bits, 125_829_120);
    assert!(info.warnings.iter().any(|it| it.contains("only 53 %")), "{:?}", info.warnings);
    let whole = Contents::new(c_hashcode::decode(&[0; 64]).unwrap()).info();
    assert!(!whole.warnings.iter().any(|it| it.contains("only")), "{:?}", whole.warnings);
}

#[test]
fn its_rate_counts_the_bits_that_can_be_set() {
    // The filter has 120 bits. The mask 0111_0111 selects 64 of them.
    let mut filter = c_hashcode::decode(&[0; 15]).unwrap();
    for i in 0..10_000_u32 {
        filter.insert(&i.wrapping_mul(0x9e37_79b1).to_le_bytes());
    }
    assert_eq!(filter.count_ones(), 64);
    assert_eq!(filter.estimate_rate(), 1.0);
    assert_eq!(filter.estimate_items(), f64::INFINITY);
    assert!(c_hashcode::decode(&[]).is_err());
}
