//! Tests the guard through its public interface. All tests are in one program, because each test
//! program is linked separately.

mod admin;
mod authorize;
mod axum_router;
#[path = "../../../tamis-sources/tests/support/checker.rs"]
#[allow(dead_code, reason = "the tests of the sources use the rest")]
mod checker;
mod config;
#[path = "../../../tamis-sources/tests/support/filter_file.rs"]
mod filter_file;
mod fleet;
mod layer;
mod learn;
mod nested_router;
mod proxy;
#[path = "../../../../tests/exchanges/recorder.rs"]
mod recorder;
mod routes;
mod service;
mod several_sources;
mod single_flight;
#[path = "../../../tamis-sources/tests/support/sqlite_shop.rs"]
#[allow(dead_code, reason = "the tests of the sources use the rest")]
mod sqlite_shop;
#[path = "../../../tamis-sources/tests/support/tcp_proxy.rs"]
mod tcp_proxy;
