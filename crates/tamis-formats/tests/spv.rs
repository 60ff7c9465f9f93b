//! Runs the tests of `examples/spv.rs`: the wallet finds what is its own and believes no node.

#[allow(dead_code, reason = "its `main` is for the example")]
#[path = "../examples/spv.rs"]
mod spv;
