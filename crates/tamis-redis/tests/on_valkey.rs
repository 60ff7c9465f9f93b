//! The main tests on Valkey. The support module starts its server for this program.

#[path = "on_servers/generations.rs"]
mod generations;
#[path = "on_servers/java_layouts.rs"]
mod java_layouts;
#[path = "on_servers/no_false_negatives.rs"]
mod no_false_negatives;
#[path = "on_servers/support/mod.rs"]
mod support;

#[test]
fn the_tests_of_this_program_run_on_valkey() {
    let server = support::Server::start();
    let info: String = support::ask(&mut server.connection(), &["INFO", "server"]);
    assert!(info.contains("server_name:valkey"), "{info}");
}
