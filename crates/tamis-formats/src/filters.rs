//! The contents of a file: filters whose type is known only at run time.

mod answer_each;
mod contents;
pub(crate) mod filter_info;
pub(crate) mod foreign_bloom;
pub(crate) mod golomb_set;
mod integer_bitmap;
pub(crate) mod layers;
mod stored_filter;

pub(crate) use answer_each::{answer_each, hash_each, try_answer_each};
pub use contents::Contents;
pub use filter_info::{FilterInfo, ItemCount, LayerInfo, WindowInfo};
pub use foreign_bloom::ForeignBloom;
pub use golomb_set::{GolombError, GolombParams, GolombSet};
pub use integer_bitmap::IntegerBitmap;
pub use layers::{Growth, Layer, Layers};
pub use stored_filter::StoredFilter;
