//! The configurations of docs/guard-beside.md with the real proxies: each proxy asks `tamis guard` about the requests for
//! a shop. `cargo xtask setup` installs the proxies.

mod http2;
mod page;
mod proxies;
mod site;
mod stories;
