//! A response body that records its activity and its end.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::http::proxy::activity::InProgress;

pin_project! {
    /// A response body. The request is in progress until the response body is dropped.
    #[derive(Debug)]
    pub(super) struct ResponseBody<B> {
        #[pin]
        body: B,
        in_progress: InProgress,
    }
}

impl<B> ResponseBody<B> {
    pub(super) fn new(body: B, in_progress: InProgress) -> Self {
        Self { body, in_progress }
    }
}

impl<B: Body> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = this.body.poll_frame(context);
        if frame.is_ready() {
            this.in_progress.activity().moved();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
