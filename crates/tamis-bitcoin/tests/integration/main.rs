//! Tests of the crate through the public interface. They are one program because each test program
//! is linked separately.

mod block_filters;
mod blocks;
#[path = "../../../tamis-formats/tests/golden_data/json.rs"]
mod json;
mod matching;
mod merkle_block;
