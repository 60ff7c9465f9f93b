//! The proxy, with real sockets.

mod failures;
mod guarded;
mod hostile;
mod http2_frames;
mod learning;
mod limits;
mod messages;
mod secure;
mod shutdown;
mod streams;
pub mod support;
mod traces;
mod tunnels;
