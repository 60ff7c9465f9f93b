//! Runs the commands of docs/redis-bitmaps.md.

use crate::program::Folder;
use crate::support::Server;

const PAGE: &str = include_str!("../../../../docs/redis-bitmaps.md");

#[test]
fn the_commands_of_the_page_print_what_it_shows() {
    let (folder, server) = (Folder::new(), Server::start());
    folder.write("urls.txt", "https://example.com/a\nhttps://example.com/b\n");
    folder.write("new.txt", "https://example.com/b\nhttps://example.com/c\n");
    let block = PAGE.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let mut commands = 0;
    for command in block.split("$ tamis ").skip(1) {
        let (line, expected) = command.split_once('\n').unwrap();
        folder.run(line.replace("redis://localhost", &server.url())).gives(0, expected);
        commands += 1;
    }
    assert!(commands > 10, "{commands}");
}
