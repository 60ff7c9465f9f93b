//! Ids in filters of `tamis serve`, and servers that send what no server sends.

#[path = "../sources/checker.rs"]
#[allow(dead_code)]
mod checker;
mod client;
mod hostile;
mod served;
#[path = "../support/tcp_proxy.rs"]
#[allow(dead_code)]
mod tcp_proxy;
