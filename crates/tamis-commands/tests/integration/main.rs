//! Tests of the commands through the public interface. They are one program because each test
//! program is linked separately.

mod batches;
mod bitmaps_like_bits;
mod categories;
mod docs;
mod exchanges;
mod host;
mod names;
mod redisbloom_golden;
#[path = "../../../../tests/exchanges/exchanges.rs"]
mod scenes;
mod tm;
