//! The program of the page `docs/library.md` runs on a server.

use std::process::Command;

use tamis_testing::CommandExt as _;

use crate::support::Server;

mod program {
    include!("../../../../examples/redis.rs");

    #[test]
    #[ignore = "the other test of this file starts the program"]
    fn runs() {
        main().unwrap();
    }
}

#[test]
fn the_program_of_the_library_page_inserts_and_tests_users() {
    let server = Server::start();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture", "library_page::program::runs"]);
    let output = command.env("REDIS_URL", server.url()).run();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("alice is new: true\nbob may exist: false\n"), "{stdout}");
}
