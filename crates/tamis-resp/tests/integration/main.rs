//! Tests of the protocol through the public interface. They are one program because each test
//! program is linked separately.

mod replies;
mod requests;
