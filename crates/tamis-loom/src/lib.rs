//! The model tests of the filters that threads share are in `tests/shared_filters.rs`.
