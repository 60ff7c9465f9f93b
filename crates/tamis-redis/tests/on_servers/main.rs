//! Tests filters in bitmaps on real Redis servers. All tests are in one program, because each test
//! program is linked separately.
//!
//! `cargo xtask setup` installs Redis.

mod article;
mod async_client;
mod async_shared_use;
mod cluster;
mod drafts;
mod generations;
mod growth;
mod java_layouts;
mod library_page;
mod merge;
mod no_false_negatives;
mod shared_use;
mod support;
mod tls;
