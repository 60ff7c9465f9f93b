//! The body of a response, read from a file.

use std::fs::File;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;

use crate::commands::publish::published_file::PublishedFile;

/// The number of bytes in one read. For a slow client, the server keeps one chunk in memory.
const CHUNK_BYTES: u64 = 256 << 10;

/// Reads a file while the client receives the bytes. If the file was changed, the body fails, so
/// that a client never gets a mix of two contents as a complete response.
pub struct FileBody {
    file: Arc<PublishedFile>,
    /// The next byte to read.
    at: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl FileBody {
    pub fn new(file: Arc<PublishedFile>) -> Self {
        Self { file, at: 0, reading: None }
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        let (file, at) = (Arc::clone(&self.file), self.at);
        let read = move || read(&file, at);
        let reading = self.reading.get_or_insert_with(|| tokio::task::spawn_blocking(read));
        let chunk = ready!(Pin::new(reading).poll(context));
        self.reading = None;
        let chunk = chunk.map_err(io::Error::other).flatten();
        if let Ok(chunk) = &chunk {
            self.at += chunk.len() as u64;
        }
        Poll::Ready(Some(chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.at == self.file.stamp.len_bytes
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.file.stamp.len_bytes - self.at)
    }
}

fn read(file: &PublishedFile, at: u64) -> io::Result<Bytes> {
    let len = CHUNK_BYTES.min(file.stamp.len_bytes - at);
    let mut bytes = vec![0; len as usize];
    read_at(&file.file, &mut bytes, at)?;
    // The check for changes follows the read, so the bytes match the tag.
    if file.is_unchanged() {
        Ok(bytes.into())
    } else {
        Err(io::Error::other("the file was changed during the download"))
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    let mut read = 0;
    while read < bytes.len() {
        let place = at + read as u64;
        match std::os::windows::fs::FileExt::seek_read(file, &mut bytes[read..], place)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => read += more,
        }
    }
    Ok(())
}
