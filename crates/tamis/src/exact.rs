//! Exact sets, which return no false answers: sets of hashes and sets of integers.

pub(crate) mod digest_set;
pub(crate) mod integer_set;
