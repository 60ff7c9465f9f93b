//! The one program, `tamis`.
fn main() {}
