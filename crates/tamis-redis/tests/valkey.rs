//! The main tests on Valkey. The support module starts its server for this file.
#![allow(clippy::duplicate_mod, reason = "each file of tests has its support module")]

#[path = "generations.rs"]
mod generations;
#[path = "java_layouts.rs"]
mod java_layouts;
#[path = "no_false_negatives.rs"]
mod no_false_negatives;
mod support;

#[test]
fn the_tests_of_this_file_run_on_valkey() {
    let server = support::Server::start();
    let info: String = support::ask(&mut server.connection(), &["INFO", "server"]);
    assert!(info.contains("server_name:valkey"), "{info}");
}
