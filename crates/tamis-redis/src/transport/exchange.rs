//! Lets the blocking client and the asynchronous client share the code of all operations.
//!
//! Operations are `async` functions over [`Exchange`]. The exchange of the blocking client blocks
//! the thread until the replies arrive, so the future of an operation waits only for other threads.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use redis::Value;

use crate::error::RedisItemError;
use crate::transport::blocking::Transport;
use crate::transport::request::{NodeReply, NodeRequest, value};

/// Sends requests and returns their replies.
pub(crate) trait Exchange: Send {
    fn exchange(
        &mut self,
        requests: Vec<NodeRequest>,
    ) -> impl Future<Output = Vec<NodeReply>> + Send;
}

/// Implements [`Exchange`] for a blocking transport.
pub(crate) struct Blocking<'t, T>(pub(crate) &'t T);

impl<T: Transport> Exchange for Blocking<'_, T> {
    fn exchange(
        &mut self,
        requests: Vec<NodeRequest>,
    ) -> impl Future<Output = Vec<NodeReply>> + Send {
        std::future::ready(self.0.send(&requests))
    }
}

/// Sends requests. Returns all values, or the first error.
pub(crate) async fn send_all<X: Exchange>(
    exchange: &mut X,
    requests: Vec<NodeRequest>,
) -> Result<Vec<Value>, RedisItemError> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let replies = exchange.exchange(requests).await;
    replies.into_iter().map(|reply| value(b"", reply)).collect()
}

/// Runs a future over a [`Blocking`] exchange on this thread, and returns its result.
pub(crate) fn complete<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Continues a thread that waits in [`complete`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
