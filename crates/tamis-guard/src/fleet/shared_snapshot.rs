//! The bytes of a snapshot. Several responses send the bytes of one snapshot, and the leader can free the bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use parking_lot::RwLock;

/// The maximum number of bytes that a response copies at once. A connection holds a few copied chunks.
const CHUNK_BYTES: usize = 64 << 10;

/// The bytes of a snapshot.
#[derive(Debug)]
pub(super) struct SharedSnapshot {
    len_bytes: usize,
    /// The bytes. The value is `None` after the leader has freed the bytes.
    bytes: RwLock<Option<Vec<u8>>>,
}

impl SharedSnapshot {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { len_bytes: bytes.len(), bytes: RwLock::new(Some(bytes)) }
    }

    /// Frees the memory immediately. Responses that are still sending the snapshot fail.
    pub(super) fn take_away(&self) {
        *self.bytes.write() = None;
    }

    /// Copies the next bytes of the snapshot, starting at the index `at`. Returns `None` if the bytes are freed.
    fn chunk(&self, at: usize) -> Option<Bytes> {
        let bytes = self.bytes.read();
        let rest = &bytes.as_deref()?[at..];
        Some(Bytes::copy_from_slice(&rest[..rest.len().min(CHUNK_BYTES)]))
    }
}

/// The body of a response to a follower.
///
/// A slow follower cannot keep a snapshot in memory indefinitely: when the leader needs the memory for another
/// snapshot, the response is aborted.
#[derive(Debug)]
pub struct PublicationBody(Content);

#[derive(Debug)]
enum Content {
    Short(Full<Bytes>),
    Snapshot {
        snapshot: Arc<SharedSnapshot>,
        /// The index of the next byte to send.
        at: usize,
    },
}

impl PublicationBody {
    /// Creates a body that sends the bytes of a snapshot on demand.
    pub(super) fn of_snapshot(snapshot: Arc<SharedSnapshot>) -> Self {
        Self(Content::Snapshot { snapshot, at: 0 })
    }
}

impl From<Full<Bytes>> for PublicationBody {
    fn from(body: Full<Bytes>) -> Self {
        Self(Content::Short(body))
    }
}

impl Body for PublicationBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.0 {
            Content::Short(body) => {
                Pin::new(body).poll_frame(context).map_err(|never| match never {})
            }
            Content::Snapshot { snapshot, at } if *at == snapshot.len_bytes => Poll::Ready(None),
            Content::Snapshot { snapshot, at } => {
                let chunk = snapshot.chunk(*at).inspect(|chunk| *at += chunk.len());
                let chunk =
                    chunk.ok_or_else(|| io::Error::other("a newer snapshot took its place"));
                Poll::Ready(Some(chunk.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Short(body) => body.is_end_stream(),
            Content::Snapshot { snapshot, at } => *at == snapshot.len_bytes,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Short(body) => body.size_hint(),
            Content::Snapshot { snapshot, at } => {
                SizeHint::with_exact((snapshot.len_bytes - at) as u64)
            }
        }
    }
}
