//! Tamis reads and changes the bitmap of a Java program; after each step it equals the bitmap of
//! the program.

use crate::golden_data::{hex, json, list, number};
use crate::support::{self, answers, assert_fails, encode};
use tamis::Order;
use tamis_formats::{ChangeError, Contents, Funnel, IntegerBitmap, java_bitmap, redis_bits};

/// Inserts items as text, through a funnel.
fn insert(
    contents: &mut Contents,
    funnel: Funnel,
    items: &[&str],
) -> Result<Vec<bool>, ChangeError> {
    let key = |item: &&str| funnel.key(item.as_bytes(), &mut Vec::new()).unwrap().to_vec();
    let keys: Vec<Vec<u8>> = items.iter().map(key).collect();
    support::insert(contents, &keys)
}

#[test]
fn each_step_has_the_bytes_and_the_failures_of_java() {
    let golden = &json("seeds_java/bitmap.json")["bitmap_000"];
    let mut bytes = vec![0; number(&golden["byte_length"]) as usize];
    for step in list(&golden["trace"]) {
        let item = step["num"].to_string();
        let mut contents = Contents::new(java_bitmap::decode(&bytes).unwrap());
        let fails = step.get("error").is_some();
        match step["op"].as_str().unwrap() {
            "add" => {
                let added = insert(&mut contents, Funnel::Int, &[&item]);
                assert_eq!(added.is_err(), fails, "{step}");
            }
            "clear" => {
                let set = contents.downcast_mut::<IntegerBitmap>().unwrap();
                set.remove(item.parse().unwrap_or(u64::MAX));
            }
            "contain" => {
                let key = number(&step["num"]) as i32;
                let expected = step.get("result").is_some_and(|result| result == true);
                assert_eq!(answers(&contents, &[key.to_le_bytes()]), [expected], "{step}");
            }
            other => panic!("{other}"),
        }
        bytes = encode("java-bitmap", &contents).unwrap();
        assert_eq!(bytes, hex(&step["bytes_after"]), "{step}");
        // The same set in the bit order of Redis, and converted back.
        let redis = encode("redis-bits", &contents).unwrap();
        assert!(redis.iter().zip(&bytes).all(|(redis, byte)| redis.reverse_bits() == *byte));
        let back = Contents::new(redis_bits::decode(&redis).unwrap());
        assert_eq!(encode("java-bitmap", &back).unwrap(), bytes);
    }
}

#[test]
fn a_string_of_redis_grows_and_an_array_does_not() {
    let mut redis = Contents::new(redis_bits::decode(&[0]).unwrap());
    let new = insert(&mut redis, Funnel::Int, &["9", "1", "9"]).unwrap();
    assert_eq!(new, [true, true, false]);
    assert_eq!(encode("redis-bits", &redis).unwrap(), [0b0100_0000, 0b0100_0000]);
    let error = insert(&mut redis, Funnel::Unsigned, &["3", "4294967296"]).unwrap_err().to_string();
    assert!(error.contains("4294967296") && error.contains("4294967295"), "{error}");
    assert_eq!(redis.info().items, 3.0, "those before the one that failed are in");

    let mut java = Contents::new(java_bitmap::decode(&[0; 2]).unwrap());
    assert_fails(insert(&mut java, Funnel::Int, &["15", "16", "2"]), "16 is outside 0..=15");
    assert_fails(insert(&mut java, Funnel::Int, &["-1"]), "negative");
    assert_eq!(encode("java-bitmap", &java).unwrap(), [0, 0x80]);
}

#[test]
fn sets_merge_if_the_values_fit() {
    let mut java = Contents::new(java_bitmap::decode(&[1, 0]).unwrap());
    let short = Contents::new(redis_bits::decode(&[0b0100_0000]).unwrap());
    java.merge(&short).unwrap();
    assert_eq!(encode("java-bitmap", &java).unwrap(), [3, 0]);
    let long = Contents::new(redis_bits::decode(&[0, 0, 1]).unwrap());
    assert!(java.merge(&long).unwrap_err().to_string().contains("23 is outside"));
    let mut redis = short.clone();
    redis.merge(&long).unwrap();
    assert_eq!(encode("redis-bits", &redis).unwrap(), [0b0100_0000, 0, 1]);
}

#[test]
fn values_above_a_java_int_are_refused() {
    let mut redis = Contents::new(redis_bits::decode(&[0]).unwrap());
    insert(&mut redis, Funnel::Unsigned, &["2147483648"]).unwrap();
    let error = encode("java-bitmap", &redis).unwrap_err();
    assert!(error.contains("2147483648") && error.contains("2147483647"), "{error}");
}

#[test]
fn the_same_set_is_in_both_orders() {
    let set = java_bitmap::decode(&[0x81, 0x0f]).unwrap();
    assert_eq!(set.values().to_bytes(Order::MsbFirst), [0x81, 0xf0]);
    assert!(java_bitmap::decode(&[]).is_err());
    assert_eq!(redis_bits::decode(&[]).unwrap().values().len(), 0);
}
