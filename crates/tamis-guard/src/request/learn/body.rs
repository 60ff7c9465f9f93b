//! A response body from which the guard learns ids. The guard keeps a copy of the first bytes until the JSON is
//! complete.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::request::learn::counters::NotLearnt;
use crate::request::learn::json_end::{JsonEnd, JsonPart};
use crate::request::learn::lessons::Lessons;

pin_project! {
    /// A response body from which the guard may learn ids. The body forwards each frame immediately and unchanged.
    ///
    /// The guard learns the ids before it forwards the last frame of the JSON, and thus before a client can read the
    /// ids.
    #[derive(Debug)]
    pub struct LearnBody<B> {
        #[pin]
        body: B,
        copy: Option<Box<JsonCopy>>,
    }
}

impl<B: Body> LearnBody<B> {
    /// Wraps a body from which the guard learns no ids.
    pub(crate) fn unread(body: B) -> Self {
        Self { body, copy: None }
    }

    /// Learns ids from the head of a response, and prepares its body.
    pub(crate) fn with_lessons(answer: Response<B>, mut lessons: Lessons) -> Response<Self> {
        if !answer.status().is_success() {
            return answer.map(Self::unread);
        }
        let Some(max_bytes) = lessons.learn_head(answer.headers()) else {
            return answer.map(Self::unread);
        };
        if answer.body().is_end_stream() {
            lessons.finish(NotLearnt::NoId);
        } else if is_encoded(answer.headers()) {
            lessons.finish(NotLearnt::Encoded);
        } else {
            return answer.map(|body| Self::read(body, lessons, max_bytes));
        }
        answer.map(Self::unread)
    }

    /// Wraps a body from whose first `max_bytes` the guard may learn ids.
    fn read(body: B, lessons: Lessons, max_bytes: usize) -> Self {
        let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let bytes = Vec::with_capacity(expected.min(max_bytes));
        let copy = JsonCopy { lessons: Some(lessons), end: JsonEnd::default(), bytes, max_bytes };
        Self { body, copy: Some(Box::new(copy)) }
    }
}

/// Tests whether the body of a response is compressed.
fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|value| {
        let value = value.as_bytes().trim_ascii();
        !value.is_empty() && !value.eq_ignore_ascii_case(b"identity")
    })
}

impl<B: Body<Data = Bytes>> Body for LearnBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        // The guard learns no ids from most bodies. The early return avoids moving the frames of a body from which the
        // guard learns no ids.
        let Some(copy) = this.copy else { return this.body.poll_frame(context) };
        let frame = ready!(this.body.poll_frame(context));
        let data = match &frame {
            Some(Ok(frame)) => frame.data_ref(),
            Some(Err(_)) | None => None,
        };
        // Trailers and errors also end the JSON.
        let is_complete = data.is_none_or(|data| copy.add(data));
        if is_complete {
            *this.copy = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A copy of the first bytes of a body.
#[derive(Debug)]
struct JsonCopy {
    /// The rules. The value is `None` after the JSON is complete.
    lessons: Option<Lessons>,
    end: JsonEnd,
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl JsonCopy {
    /// Adds the next bytes. Returns true if the copy needs no more bytes.
    fn add(&mut self, data: &[u8]) -> bool {
        let left = self.max_bytes - self.bytes.len();
        let is_cut = data.len() > left;
        let data = &data[..data.len().min(left)];
        match self.end.read(data) {
            JsonPart::EndsAt(end) => {
                self.bytes.extend_from_slice(&data[..end]);
                if let Some(lessons) = self.lessons.take() {
                    lessons.learn_json(&self.bytes);
                }
                true
            }
            JsonPart::NotJson => self.end(NotLearnt::NotJson),
            JsonPart::More if is_cut => self.end(NotLearnt::TooLarge),
            JsonPart::More => {
                self.bytes.extend_from_slice(data);
                false
            }
        }
    }

    fn end(&mut self, reason: NotLearnt) -> bool {
        if let Some(lessons) = self.lessons.take() {
            lessons.finish(reason);
        }
        true
    }
}

impl Drop for JsonCopy {
    /// Ends the copy, because the body has ended or the client has disconnected.
    fn drop(&mut self) {
        self.end(NotLearnt::Incomplete);
    }
}
