//! Makes values in order, ahead of their consumer. Either the consumer or a thread makes the
//! values.
//!
//! ```text
//!              ┌──── values made, in order, at most MAX_QUEUED of them ────▶
//!       thread                                                        consumer
//!              ◀──────── used values, whose memory is reused ──────────┘
//! ```
//!
//! Values are moved and never copied, so the memory of large values is reused.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

/// The maximum number of values that are made and not yet consumed. A maximum of two values did not
/// make `dedup` faster than a maximum of one value.
const MAX_QUEUED: usize = 1;

/// A function that replaces an old value by the next value. Returns false if no value follows.
type Make<T, E> = Box<dyn FnMut(&mut T) -> Result<bool, E> + Send>;

/// A source of values of type `T`. The source makes the values in order, until the last value or an
/// error.
///
/// If the source is dropped early, the thread ends after its next value.
pub struct Prefetcher<T, E> {
    handoff: Handoff<T, E>,
}

/// The maker of the values: the consumer or a thread.
enum Handoff<T, E> {
    /// The consumer makes the values.
    Inline(Make<T, E>),
    /// A thread makes the values.
    Thread { made: Receiver<Result<T, E>>, used: Sender<T>, thread: JoinHandle<()> },
    /// All values have been made.
    Ended,
}

impl<T, E> Prefetcher<T, E>
where
    T: Default + Send + 'static,
    E: Send + 'static,
{
    /// Creates a source of the values that `make` returns. The consumer makes the values until
    /// [`start`](Self::start).
    pub fn new(make: impl FnMut(&mut T) -> Result<bool, E> + Send + 'static) -> Self {
        Self { handoff: Handoff::Inline(Box::new(make)) }
    }

    /// Makes the remaining values on a thread. If the system provides no thread, the consumer
    /// continues to make the values.
    pub fn start(&mut self) {
        let Handoff::Inline(_) = &self.handoff else { return };
        let (sender, made) = sync_channel(MAX_QUEUED);
        let (used, used_values) = channel();
        // If a thread fails to start, its closure is dropped. Therefore, the source sends `make` to
        // the thread only after the thread has started.
        let (give, take) = channel::<Make<T, E>>();
        let work = move || {
            if let Ok(make) = take.recv() {
                make_all(make, &sender, &used_values);
            }
        };
        let Ok(thread) = thread::Builder::new().name("prefetch".into()).spawn(work) else { return };
        let other = Handoff::Thread { made, used, thread };
        if let Handoff::Inline(make) = std::mem::replace(&mut self.handoff, other) {
            give.send(make).expect("the thread waits for it");
        }
    }

    /// Replaces the used value `value` by the next value. Returns false if no value follows.
    ///
    /// # Errors
    ///
    /// The error of `make`. No value follows an error.
    pub fn next(&mut self, value: &mut T) -> Result<bool, E> {
        let next = match &mut self.handoff {
            Handoff::Inline(make) => make(value),
            Handoff::Thread { made, used, .. } => {
                // The thread drops the receiver after the last value.
                used.send(std::mem::take(value)).ok();
                match made.recv() {
                    Ok(next) => next.map(|next| {
                        *value = next;
                        true
                    }),
                    // The thread closes the channel after the last value.
                    Err(_) => Ok(false),
                }
            }
            Handoff::Ended => Ok(false),
        };
        if !matches!(next, Ok(true)) {
            self.end();
        }
        next
    }

    /// Waits for the thread and propagates its panic.
    fn end(&mut self) {
        if let Handoff::Thread { thread, .. } = std::mem::replace(&mut self.handoff, Handoff::Ended)
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Makes values until the last value, an error, or the drop of the consumer.
fn make_all<T: Default, E>(
    mut make: Make<T, E>,
    made: &SyncSender<Result<T, E>>,
    used_values: &Receiver<T>,
) {
    loop {
        let mut value = used_values.try_recv().unwrap_or_default();
        let next = match make(&mut value) {
            Ok(true) => Ok(value),
            Ok(false) => return,
            Err(error) => Err(error),
        };
        let is_last = next.is_err();
        if made.send(next).is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Returns the numbers from 0 to `last`, and the error that follows the numbers. The consumer
    /// makes the first `inline` numbers, and a thread makes the other numbers.
    fn numbers(last: u64, inline: u64) -> (Vec<u64>, Result<bool, String>) {
        let mut next = 0;
        let mut prefetcher = Prefetcher::new(move |number: &mut Vec<u64>| {
            number.clear();
            number.push(next);
            next += 1;
            if next <= last { Ok(true) } else { Err(format!("after {last}")) }
        });
        let (mut number, mut found) = (Vec::new(), Vec::new());
        loop {
            if found.len() as u64 == inline {
                prefetcher.start();
            }
            match prefetcher.next(&mut number) {
                Ok(true) => found.extend_from_slice(&number),
                end => return (found, end),
            }
        }
    }

    #[test]
    fn order_is_kept_and_an_error_comes_last() {
        for inline in [0, 1, 5, 100, 1000] {
            let (found, end) = numbers(100, inline);
            assert_eq!(found, (0..100).collect::<Vec<_>>(), "{inline}");
            assert_eq!(end, Err("after 100".into()), "{inline}");
        }
    }

    #[test]
    fn the_end_is_no_error() {
        for is_on_thread in [false, true] {
            let mut left = 3;
            let mut prefetcher = Prefetcher::new(move |value: &mut u64| {
                *value = left;
                left = left.saturating_sub(1);
                Ok::<_, String>(*value > 0)
            });
            if is_on_thread {
                prefetcher.start();
            }
            let (mut value, mut found) = (0, Vec::new());
            while prefetcher.next(&mut value).unwrap() {
                found.push(value);
            }
            assert_eq!(found, [3, 2, 1]);
        }
    }

    #[test]
    #[should_panic = "what makes them"]
    fn a_panic_is_no_end() {
        let mut prefetcher = Prefetcher::new(|_: &mut u64| -> Result<bool, String> {
            panic!("what makes them is broken")
        });
        prefetcher.start();
        prefetcher.next(&mut 0).ok();
    }

    #[test]
    fn things_are_used_again() {
        let made = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let fresh = Arc::clone(&made);
        let mut left = 1000;
        let mut prefetcher = Prefetcher::new(move |value: &mut Vec<u8>| {
            if value.capacity() == 0 {
                value.reserve(100);
                fresh.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            left -= 1;
            Ok::<_, String>(left > 0)
        });
        prefetcher.start();
        let mut value = Vec::new();
        while prefetcher.next(&mut value).unwrap() {}
        let made = made.load(std::sync::atomic::Ordering::Relaxed);
        assert!(made <= MAX_QUEUED + 3, "{made} values");
    }

    #[test]
    fn one_that_is_dropped_ends_the_thread() {
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let mut prefetcher = Prefetcher::new(move |_: &mut u8| {
            let _ = &held;
            Ok::<_, String>(true)
        });
        prefetcher.start();
        assert_eq!(prefetcher.next(&mut 0), Ok(true));
        drop(prefetcher);
        while Arc::strong_count(&alive) > 1 {
            thread::yield_now();
        }
    }
}
