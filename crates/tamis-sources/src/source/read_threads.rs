//! Threads that read the ids of a table concurrently. Each thread has its own connection.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::errors::source_error::SourceError;
use crate::source::priority;
use crate::source::status::Rows;
use crate::source::stop_flag::StopFlag;

/// The work of the reading threads.
pub(crate) trait ReadJob: Send + Sync + 'static {
    /// Reads ranges until no range is left. Any thread except the first may return early. If all other threads return
    /// early, the first thread reads all remaining ranges.
    fn read(&self, is_first: bool, stop: &StopFlag) -> Result<Rows, SourceError>;
}

/// The ranges of a table as SQL conditions. Each thread takes the next range.
#[derive(Debug)]
pub(crate) struct Ranges {
    all: Vec<String>,
    /// The number of ranges that threads have taken.
    taken: AtomicUsize,
}

impl Ranges {
    pub(crate) fn new(all: Vec<String>) -> Self {
        Self { all, taken: AtomicUsize::new(0) }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes the next range. Returns `None` if no range is left.
    pub(crate) fn take(&self) -> Option<&str> {
        self.all.get(self.taken.fetch_add(1, Ordering::Relaxed)).map(String::as_str)
    }
}

/// The reading threads. Dropping the `ReadThreads` stops the threads.
#[derive(Debug)]
pub(crate) struct ReadThreads {
    ends: UnboundedReceiver<Result<Rows, SourceError>>,
    /// The number of threads that have not ended.
    running: usize,
    /// The number of rows that the finished threads have read.
    rows: Rows,
    stop: StopFlag,
}

impl ReadThreads {
    /// Starts one thread per core: at least 2 threads, at most 4 threads, and never more than `most` threads.
    pub(crate) fn start(job: &Arc<impl ReadJob>, most: usize) -> Result<Self, SourceError> {
        let stop = StopFlag::default();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (end, ends) = unbounded_channel();
        let running = start_threads(cores.clamp(2, 4).min(most), |is_first| {
            let (job, end, stop) = (Arc::clone(job), end.clone(), stop.clone());
            let work = move || {
                priority::lower();
                // The channel is closed if the read was dropped.
                _ = end.send(job.read(is_first, &stop));
            };
            Builder::new().name("guard-read".to_owned()).spawn(work).map(drop)
        })?;
        Ok(Self { ends, running, rows: Rows::default(), stop })
    }

    /// Returns the number of threads that have not ended.
    #[cfg(feature = "databases")]
    pub(crate) fn running(&self) -> usize {
        self.running
    }

    /// Waits until all ids are read. Returns the number of rows. The caller may drop the returned future: the next call
    /// continues the wait.
    pub(crate) async fn finish(&mut self) -> Result<Rows, SourceError> {
        while self.running > 0 {
            let failed = || SourceError::Connect("a thread that reads the ids failed".to_owned());
            let rows = self.ends.recv().await.ok_or_else(failed)??;
            self.rows.ids += rows.ids;
            self.rows.invalid += rows.invalid;
            self.running -= 1;
        }
        Ok(self.rows)
    }
}

impl Drop for ReadThreads {
    fn drop(&mut self) {
        self.stop.request();
    }
}

/// Starts up to `threads` threads. Returns the number of started threads. A single thread is enough, because the first
/// thread reads all remaining ranges.
fn start_threads(
    threads: usize,
    mut start: impl FnMut(bool) -> io::Result<()>,
) -> Result<usize, SourceError> {
    for number in 0..threads {
        match start(number == 0) {
            Ok(()) => {}
            Err(error) if number == 0 => return Err(SourceError::Connect(error.to_string())),
            Err(_) => return Ok(number),
        }
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    #[test]
    fn one_thread_reads_all_ids_if_the_system_starts_no_other_one() {
        let limited = |limit| {
            let mut started = 0;
            start_threads(4, |is_first| {
                assert_eq!(is_first, started == 0);
                started += 1;
                if started > limit { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            })
        };
        assert!(limited(0).is_err());
        assert_eq!([limited(1).unwrap(), limited(3).unwrap(), limited(9).unwrap()], [1, 3, 4]);
    }

    struct Endless;

    impl ReadJob for Endless {
        fn read(&self, _: bool, stop: &StopFlag) -> Result<Rows, SourceError> {
            while !stop.is_requested() {
                std::thread::sleep(TICK);
            }
            Err(SourceError::Stopped)
        }
    }

    #[test]
    fn threads_end_when_they_are_dropped() {
        let job = Arc::new(Endless);
        drop(ReadThreads::start(&job, 4).unwrap());
        let end = Instant::now() + Duration::from_secs(30);
        while Arc::strong_count(&job) > 1 {
            assert!(Instant::now() < end, "the threads go on");
            std::thread::sleep(TICK);
        }
    }
}
