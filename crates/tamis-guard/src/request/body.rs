//! A request body whose first bytes the guard has read to find ids.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use pin_project_lite::pin_project;

pin_project! {
    /// The body of a request that passed a guard: the bytes that the guard has read, followed by the unread bytes.
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
    /// Wraps a body that the guard has not read.
    pub(crate) fn unread(rest: B) -> Self {
        Self { read: [].into(), read_bytes: 0, is_complete: false, rest }
    }

    /// Reads a body of at most `max_bytes`. Returns its bytes and an equivalent body. Returns no bytes if the body
    /// exceeds the limit.
    ///
    /// # Errors
    ///
    /// Returns the error of the body.
    pub(crate) async fn buffered(
        rest: B,
        max_bytes: usize,
    ) -> Result<(Option<Bytes>, Self), B::Error>
    where
        B: Unpin,
    {
        let mut body = Self::unread(rest);
        if body.rest.size_hint().lower() > max_bytes as u64 {
            return Ok((None, body));
        }
        let mut bytes = BytesMut::new();
        let mut trailers = None;
        while let Some(frame) = body.rest.frame().await {
            match frame?.into_data() {
                Ok(data) => bytes.extend_from_slice(&data),
                Err(frame) => trailers = Some(frame),
            }
            if bytes.len() > max_bytes {
                break;
            }
        }
        body.is_complete = bytes.len() <= max_bytes;
        body.read_bytes = bytes.len() as u64;
        let bytes = bytes.freeze();
        // All bytes are merged into one frame, because a client may send each byte in a separate frame.
        if !bytes.is_empty() {
            body.read.push_back(Frame::data(bytes.clone()));
        }
        body.read.extend(trailers);
        let bytes = body.is_complete.then_some(bytes);
        Ok((bytes, body))
    }
}

impl<B: Body> GuardedBody<B> {
    /// Returns the minimum length of the body: the number of bytes that were read, plus the minimum length of the
    /// unread bytes.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.read_bytes + if self.is_complete { 0 } else { self.rest.size_hint().lower() }
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
