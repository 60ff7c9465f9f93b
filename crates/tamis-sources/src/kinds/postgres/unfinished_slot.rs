//! Cancels the creation of a slot that the source no longer needs.
//!
//! The server creates a slot after all open transactions have ended. While the server waits for the open transactions,
//! it does not test whether the client is still connected. Without a cancel request, the server process and the slot
//! stay until the open transactions end. Without a cancel request, each new attempt of the source would also add a
//! slot.

use std::cell::Cell;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::address::Address;

/// The time limit for a cancel request.
const LIMIT: Duration = Duration::from_secs(2);

/// A server process, and the key that a cancel request for its command needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Process {
    pub(super) number: i32,
    pub(super) key: i32,
}

/// The process that is creating a slot, with the index of its host. A source creates one slot at a time.
#[derive(Debug, Default)]
pub(super) struct UnfinishedSlot(Cell<Option<(usize, Process)>>);

impl UnfinishedSlot {
    /// Records that a process starts to create a slot.
    pub(super) fn begin(&self, host: usize, process: Process) {
        self.0.set(Some((host, process)));
    }

    /// Records that the process has created the slot.
    pub(super) fn end(&self) {
        self.0.set(None);
    }

    /// Cancels the creation of the recorded slot. If the server is unreachable, the server removes the slot itself when
    /// the awaited transactions end.
    pub(super) async fn cancel(&self, address: &Address) {
        if let Some((host, process)) = self.0.get() {
            _ = timeout(LIMIT, cancel(address, host, process)).await;
            self.end();
        }
    }
}

/// Cancels the command of a process. The server does not report whether the process was running a command.
async fn cancel(address: &Address, host: usize, process: Process) -> Result<(), SourceError> {
    let mut transport = address.connect(host).await?;
    let mut request = BytesMut::new();
    frontend::cancel_request(process.number, process.key, &mut request);
    let sent = async {
        transport.write_all(&request).await?;
        transport.flush().await?;
        // The server closes the connection after it has read the request.
        transport.read_u8().await
    };
    _ = sent.await;
    Ok(())
}
