//! Encodes and writes integers on a second thread, while the first thread computes the integers.
//!
//! The first thread passes batches of some thousand integers, in order. The second thread starts
//! with the first full batch, because a short output does not justify a thread.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::commands::ints::write::IntEncoder;
use crate::exit::Failure;

/// The number of integers in a batch.
const BATCH_ITEMS: usize = 16 << 10;

/// The maximum number of batches that wait for the second thread. A higher maximum than two batches
/// would use more memory and save no time.
const MAX_QUEUED: usize = 2;

/// Writes integers in the order of the calls.
pub struct IntWriter {
    values: Vec<u64>,
    writer: WriterThread,
    threads: usize,
}

/// The thread that encodes and writes.
enum WriterThread {
    /// The calling thread writes, because there are few integers to write, or because only one
    /// thread is allowed.
    Inline(IntEncoder),
    /// The second thread, and the channels to this thread.
    Thread {
        batches: SyncSender<Batch>,
        /// Empty buffers of written batches, for reuse.
        empties: Receiver<Vec<u64>>,
        thread: JoinHandle<Result<IntEncoder, Failure>>,
    },
    /// After a failure or after the end, no thread writes.
    Ended,
}

struct Batch {
    values: Vec<u64>,
    /// If true, the second thread flushes the output after this batch.
    is_urgent: bool,
}

impl IntWriter {
    /// Creates a writer that uses `encoder`, on a second thread if `threads` is at least two.
    pub fn new(encoder: IntEncoder, threads: usize) -> Self {
        Self { values: Vec::new(), writer: WriterThread::Inline(encoder), threads }
    }

    /// Writes `value`.
    ///
    /// # Errors
    ///
    /// Returns the errors of the encoder. An error may belong to the value of an earlier call.
    #[inline]
    pub fn write(&mut self, value: u64) -> Result<(), Failure> {
        self.values.push(value);
        if self.values.len() < BATCH_ITEMS { Ok(()) } else { self.pass_on(false) }
    }

    /// Requests that all integers written so far are passed to the operating system. If there is a
    /// second thread, this thread passes the integers on later.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`write`](Self::write).
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.pass_on(true)
    }

    /// Writes the remaining integers and finishes the output.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`write`](Self::write). After an error, an existing file is unchanged.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.pass_on(false)?;
        match self.take_back()? {
            Some(encoder) => encoder.finish(),
            None => Ok(()),
        }
    }

    #[cold]
    fn pass_on(&mut self, is_urgent: bool) -> Result<(), Failure> {
        if self.values.len() == BATCH_ITEMS {
            self.start();
        }
        match &mut self.writer {
            WriterThread::Inline(encoder) => {
                encoder.write_each(&self.values)?;
                self.values.clear();
                if is_urgent { encoder.flush() } else { Ok(()) }
            }
            WriterThread::Thread { batches, empties, .. } => {
                let empty = empties.try_recv().unwrap_or_default();
                let values = std::mem::replace(&mut self.values, empty);
                match batches.send(Batch { values, is_urgent }) {
                    Ok(()) => Ok(()),
                    // The receiver was dropped because the second thread has ended with a failure.
                    Err(_) => self.take_back().map(drop),
                }
            }
            WriterThread::Ended => Ok(()),
        }
    }

    /// Starts the second thread, if `threads` is at least two.
    fn start(&mut self) {
        if self.threads < 2 {
            return;
        }
        self.writer = match std::mem::replace(&mut self.writer, WriterThread::Ended) {
            WriterThread::Inline(encoder) => {
                let (batches, taken) = sync_channel(MAX_QUEUED);
                let (emptied, empties) = channel();
                let thread = thread::spawn(move || write_all(encoder, &taken, &emptied));
                WriterThread::Thread { batches, empties, thread }
            }
            started => started,
        };
    }

    /// Waits until all batches are written, and returns the encoder.
    fn take_back(&mut self) -> Result<Option<IntEncoder>, Failure> {
        match std::mem::replace(&mut self.writer, WriterThread::Ended) {
            WriterThread::Inline(encoder) => Ok(Some(encoder)),
            WriterThread::Thread { batches, thread, .. } => {
                // A closed channel ends the second thread.
                drop(batches);
                thread.join().expect("the encoder does not panic").map(Some)
            }
            WriterThread::Ended => Ok(None),
        }
    }
}

impl Drop for IntWriter {
    /// Waits for the second thread, so that its temporary file is removed before the program exits.
    fn drop(&mut self) {
        // An earlier failure was already returned to the caller, and is more important than a
        // failure during the drop.
        self.take_back().ok();
    }
}

fn write_all(
    mut encoder: IntEncoder,
    batches: &Receiver<Batch>,
    emptied: &Sender<Vec<u64>>,
) -> Result<IntEncoder, Failure> {
    for Batch { mut values, is_urgent } in batches {
        encoder.write_each(&values)?;
        if is_urgent {
            encoder.flush()?;
        }
        values.clear();
        // After the last batch, the receiver may have been dropped.
        emptied.send(values).ok();
    }
    Ok(encoder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::ints::read::IntFormat;
    use crate::io::output::Output;

    #[test]
    fn order_is_kept_for_any_number_of_batches() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        for items in [0, 1, BATCH_ITEMS - 1, BATCH_ITEMS, 5 * BATCH_ITEMS + 7] {
            let output = Output::open(Some(&path)).unwrap();
            let mut writer = IntWriter::new(IntEncoder::new(output, IntFormat::U64), 2);
            for value in 0..items as u64 {
                writer.write(value).unwrap();
                if value % 10_007 == 0 {
                    writer.flush().unwrap();
                }
            }
            writer.finish().unwrap();
            let expected: Vec<u8> = (0..items as u64).flat_map(u64::to_le_bytes).collect();
            assert!(std::fs::read(&path).unwrap() == expected, "{items}");
        }
    }

    #[test]
    fn failures_of_the_thread_are_reported_and_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let output = Output::open(Some(&folder.path().join("out"))).unwrap();
        let mut writer = IntWriter::new(IntEncoder::new(output, IntFormat::U32), 2);
        let values = (0..20 * BATCH_ITEMS as u64).map(|value| value + u64::from(u32::MAX));
        let done = values.into_iter().try_for_each(|value| writer.write(value));
        let Err(Failure::Message(line)) = done.and_then(|()| writer.finish()) else {
            panic!("values above 32 bits were written in 4 bytes");
        };
        assert!(line.contains("4294967296"), "{line}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_writer_that_is_dropped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let output = Output::open(Some(&folder.path().join("out"))).unwrap();
        let mut writer = IntWriter::new(IntEncoder::new(output, IntFormat::Text), 2);
        (0..10 * BATCH_ITEMS as u64).for_each(|value| writer.write(value).unwrap());
        drop(writer);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
