//! Tests of the protocol through the public interface. They are one program because each program is linked by itself.

mod replies;
mod requests;
