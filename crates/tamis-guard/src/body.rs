//! A body whose beginning was read, to look for ids in it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use pin_project_lite::pin_project;

pin_project! {
    /// The body of a request that passed a guard: what the guard has read of it, then the rest.
    #[derive(Debug)]
    pub struct GuardedBody<B> {
        read: std::collections::VecDeque<Frame<Bytes>>,
        read_bytes: u64,
        is_complete: bool,
        #[pin]
        rest: B,
    }
}

impl<B: Body<Data = Bytes>> GuardedBody<B> {
    /// Wraps a body of which nothing is read.
    pub(crate) fn unread(rest: B) -> Self {
        Self { read: [].into(), read_bytes: 0, is_complete: false, rest }
    }

    /// Reads a body that has at most `max_bytes`. Returns its bytes, and the body as it was; no
    /// bytes if it is larger.
    ///
    /// # Errors
    ///
    /// The error of the body.
    pub(crate) async fn buffered(
        rest: B,
        max_bytes: usize,
    ) -> Result<(Option<Vec<u8>>, Self), B::Error>
    where
        B: Unpin,
    {
        let mut body = Self::unread(rest);
        if body.rest.size_hint().lower() > max_bytes as u64 {
            return Ok((None, body));
        }
        let mut bytes = Vec::new();
        while let Some(frame) = body.rest.frame().await {
            let frame = frame?;
            if let Some(data) = frame.data_ref() {
                body.read_bytes += data.len() as u64;
                bytes.extend_from_slice(data);
            }
            body.read.push_back(frame);
            if bytes.len() > max_bytes {
                return Ok((None, body));
            }
        }
        body.is_complete = true;
        Ok((Some(bytes), body))
    }
}

impl<B: Body<Data = Bytes>> Body for GuardedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        if let Some(frame) = this.read.pop_front() {
            *this.read_bytes -= frame.data_ref().map_or(0, |data| data.len() as u64);
            return Poll::Ready(Some(Ok(frame)));
        }
        if *this.is_complete { Poll::Ready(None) } else { this.rest.poll_frame(context) }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && (self.is_complete || self.rest.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_complete {
            return SizeHint::with_exact(self.read_bytes);
        }
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + self.read_bytes);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + self.read_bytes);
        }
        hint
    }
}
