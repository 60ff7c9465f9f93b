//! The example `article`, with few items.

#[path = "../../examples/article.rs"]
#[expect(dead_code, reason = "the example starts its own server")]
mod example;

use crate::support::Server;

#[test]
fn the_experiment_of_the_article_finds_all_items() {
    let server = Server::start();
    example::run(1000, &server.url()).unwrap();
}
