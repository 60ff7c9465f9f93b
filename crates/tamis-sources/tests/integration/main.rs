//! Tests the sources through their public interface. All tests are in one program, because each test
//! program is linked separately.

mod audit;
#[path = "../support/certificate.rs"]
mod certificate;
#[path = "../support/checker.rs"]
mod checker;
#[path = "../support/filter_file.rs"]
mod filter_file;
#[path = "../support/lasting.rs"]
mod lasting;
mod redis;
mod snapshot;
mod sources;
#[path = "../support/sqlite_shop.rs"]
mod sqlite_shop;
#[path = "../support/tcp_proxy.rs"]
mod tcp_proxy;
#[path = "../support/transactions.rs"]
mod transactions;
