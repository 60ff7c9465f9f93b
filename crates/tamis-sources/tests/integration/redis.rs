//! Ids in filters of `tamis serve`, and servers that send what no server sends.

mod client;
mod hostile;
mod served;
