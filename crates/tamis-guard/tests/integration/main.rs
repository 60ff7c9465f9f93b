//! Tests the guard through its public interface. All tests are in one program, because each test
//! program is linked separately.

mod admin;
mod audit;
#[path = "../support/checker.rs"]
mod checker;
mod config;
mod fleet;
mod layer;
mod learn;
mod proxy;
mod redis;
mod service;
mod single_flight;
mod snapshot;
mod sources;
#[path = "../support/tcp_proxy.rs"]
mod tcp_proxy;
#[path = "../support/transactions.rs"]
mod transactions;
