//! Operations that consist of others, written once for both clients.
//!
//! They are `async` functions over [`Exchange`]. The blocking client answers each request at once,
//! so its future is complete when it is first polled.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::transport::blocking::Transport;
use crate::transport::request::{NodeReply, NodeRequest, Operation, Step};

/// Sends requests and returns their replies.
pub(crate) trait Exchange: Send {
    fn exchange(
        &mut self,
        requests: Vec<NodeRequest>,
    ) -> impl Future<Output = Vec<NodeReply>> + Send;
}

/// A blocking transport as an [`Exchange`].
pub(crate) struct Blocking<'t, T>(pub(crate) &'t mut T);

impl<T: Transport> Exchange for Blocking<'_, T> {
    fn exchange(
        &mut self,
        requests: Vec<NodeRequest>,
    ) -> impl Future<Output = Vec<NodeReply>> + Send {
        std::future::ready(self.0.send(&requests))
    }
}

/// Runs an operation to its end.
pub(crate) async fn perform<X: Exchange, O: Operation>(
    exchange: &mut X,
    mut operation: O,
) -> O::Output {
    let mut replies = Vec::new();
    loop {
        match operation.step(replies) {
            Step::Send(requests) => replies = exchange.exchange(requests).await,
            Step::Done(output) => return output,
        }
    }
}

/// Returns the result of a future over a [`Blocking`] exchange.
pub(crate) fn complete<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a blocking transport replies at once"),
    }
}
