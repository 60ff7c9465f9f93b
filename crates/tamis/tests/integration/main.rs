//! Tests of the library through the public interface. All tests are in one program, because each
//! test program is linked separately.

mod articles_experiment;
mod crafted_words;
mod debug;
#[path = "../../../tamis-formats/tests/golden_data/json.rs"]
mod golden_json;
#[cfg(feature = "roaring")]
mod integer_sets;
mod java_bitmap;
mod key_families;
mod long_run;
mod methods;
mod no_false_negatives;
mod over_rate;
mod parquet_golden;
mod rate;
mod repeats;
mod support;
mod traits;
