//! Waits for the tests of all crates. Each wait has a deadline, and a test that misses it fails with
//! what it waited for.
//!
//! Without a deadline, a lost signal or a server that does not answer stops the whole test run.

#![forbid(unsafe_code)]

mod lines;
mod process;
mod socket;
mod wait;

pub use lines::Lines;
pub use process::{CommandExt, Process};
pub use socket::{accept, connect, free_port, limit, read, read_to_end, try_connect};
pub use wait::{DEADLINE, SetOnDrop, in_time, join, receive, wait_for, wait_until};
