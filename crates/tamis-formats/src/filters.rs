//! What a file contains: filters whose type is known only at run time.

pub(crate) mod answer_each;
pub(crate) mod contents;
pub(crate) mod filter_info;
pub(crate) mod foreign_bloom;
pub(crate) mod golomb_set;
pub(crate) mod integer_bitmap;
pub(crate) mod layers;
pub(crate) mod stored_filter;
