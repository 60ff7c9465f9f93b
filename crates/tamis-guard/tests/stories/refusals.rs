//! What a source of each database refuses.

use tamis_guard::IdType;

use super::database::Database as _;
use super::follow::{Options, refused, refused_as, shop};
use crate::server::Server;

#[test]
fn tables_columns_and_urls_that_do_not_exist_are_refused() {
    let shop = shop();
    let error = refused(&shop.table("nothing"), "there is no table");
    assert!(error.contains("nothing"), "{error}");
    let of = |column: &str| Options { column: column.to_owned(), ..shop.options.clone() };
    refused(&of("nothing"), "has no column nothing; it has: name, id");
    refused(&of("name"), "which holds no ids of the configured type");
    refused_as(IdType::Uuid, &of("id"), "which holds no ids of the configured type");
    let url = |url: &str| Options { url: url.to_owned(), ..shop.options.clone() };
    refused(&url(&format!("{}://root@127.0.0.1:1/shop", Server::SCHEME)), "cannot be read");
    refused(&url("redis://a"), "the URL of the database");
    refused(&url(&shop.options.url.replace(&shop.name, "")), "names no database");
    let options = shop.as_user("nobody:geheim");
    assert!(!format!("{options:?}").contains("geheim"));
}
