//! Tests the server through its ports. All tests are in one program, because each test program is
//! linked separately.

#[path = "../../../../tests/exchanges/client.rs"]
mod client;
mod console;
mod data_folder;
mod exchanges;
mod hash_key;
#[path = "../../../../tests/exchanges/http.rs"]
mod http;
mod persistence;
mod pipelines;
#[path = "../../../../tests/exchanges/recorder.rs"]
mod recorder;
mod repair;
#[path = "../../../../tests/exchanges/exchanges.rs"]
mod scenes;
mod support;
mod tls;
mod users;
mod watching;
mod web_pages;
