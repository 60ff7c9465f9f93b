//! The asynchronous runtime of a thread.

use tokio::runtime::{LocalOptions, LocalRuntime};

/// Creates the runtime of one thread. A `LocalRuntime` runs tasks without the additional task queue
/// of a `LocalSet`.
pub(crate) fn runtime() -> LocalRuntime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .expect("the system gives a thread its event queue")
}
