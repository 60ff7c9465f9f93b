//! Functions for the tests of all crates: waits for events, and random numbers. Each wait has a deadline. If a
//! wait reaches the deadline, the test fails with a message that names the expected event.
//!
//! If a wait had no deadline, a lost signal or a server that does not respond would stop the whole
//! test run.

#![forbid(unsafe_code)]

mod lines;
mod process;
mod random;
mod socket;
mod wait;

pub use lines::Lines;
pub use process::{CommandExt, Process};
pub use random::Random;
pub use socket::{accept, connect, free_port, limit, read, read_to_end, try_connect};
pub use wait::{DEADLINE, SetOnDrop, in_time, join, receive, wait_for, wait_until};
