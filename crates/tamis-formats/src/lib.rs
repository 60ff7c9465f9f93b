//! Bytes to filters and back: one format a file.
#![forbid(unsafe_code)]
