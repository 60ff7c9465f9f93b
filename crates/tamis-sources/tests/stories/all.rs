//! Stories that are the same for each database. A test program includes them, and says in `backend.rs`
//! how its database differs.

#[path = "../support/certificate.rs"]
pub mod certificate;
pub mod conditions;
pub mod database;
mod faults;
pub mod follow;
pub mod polls;
mod refusals;
pub mod restarts;
mod rows;
mod several_tables;
