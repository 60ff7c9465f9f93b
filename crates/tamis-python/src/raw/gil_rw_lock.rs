//! A value that Python threads share: many readers, or one writer.
//!
//! A single lookup takes about ten nanoseconds, as long as one locked instruction. In a Python with
//! a GIL, a thread that holds the GIL is the only thread that runs such a lookup. Therefore a short
//! access ([`read_now`](GilRwLock::read_now), [`write_now`](GilRwLock::write_now)) only reads one word,
//! `users`, which counts the long accesses. A long access ([`read`](GilRwLock::read),
//! [`write`](GilRwLock::write)) goes on after its thread has released the GIL, so it changes `users`.
//!
//! ```text
//! users:  -1            0          1, 2, 3 …
//!         one writer    no user    readers
//! ```
//!
//! In a free-threaded Python, a short access changes `users` too.
//!
//! Invariant: only the GIL's holder changes `users` away from 0 in a Python with a GIL, so a thread
//! that has read `users` keeps its right until the thread releases the GIL.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::process;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A waiting thread checks for Ctrl-C after this time.
const CHECK_AFTER: Duration = Duration::from_millis(50);

/// A value for many readers or one writer.
pub struct GilRwLock<T> {
    users: AtomicI32,
    /// The number of threads that wait to write. New long reads wait for these threads.
    writers_waiting: AtomicU32,
    /// The number of threads that wait.
    waiting: AtomicU32,
    /// The process whose threads `users` counts. A fork copies `users`, but not the threads.
    process: AtomicU32,
    /// Only waiting threads use the lock. A thread of the parent may hold the lock at a fork.
    lock: UnsafeCell<Mutex<()>>,
    freed: Condvar,
    value: UnsafeCell<T>,
}

// SAFETY: `users` allows shared references from several threads (T: Sync), or one mutable reference
// from any thread (T: Send).
unsafe impl<T: Send + Sync> Sync for GilRwLock<T> {}

/// The access that a thread requests.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write,
}

impl<T: Send + Sync> GilRwLock<T> {
    /// Creates a lock without users.
    pub fn new(value: T) -> Self {
        Self {
            users: AtomicI32::new(0),
            writers_waiting: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            process: AtomicU32::new(process::id()),
            lock: UnsafeCell::new(Mutex::new(())),
            freed: Condvar::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Calls `action` with the value, as [`read_now`](Self::read_now) does, if the thread need not
    /// wait. Returns `None` otherwise.
    #[inline(always)]
    pub fn try_read_now<R>(&self, _py: Python<'_>, action: impl FnOnce(&T) -> R) -> Option<R> {
        // With `Acquire`, this thread sees what the last writer wrote.
        if cfg!(not(Py_GIL_DISABLED)) && self.users.load(Ordering::Acquire) >= 0 {
            // SAFETY: there is no writer, and no thread becomes a writer while this thread holds
            // the GIL.
            return Some(action(unsafe { &*self.value.get() }));
        }
        None
    }

    /// Calls `action` with the value for writing, as [`write_now`](Self::write_now) does, if the
    /// thread need not wait. Returns `None` otherwise.
    #[inline(always)]
    pub fn try_write_now<R>(&self, _py: Python<'_>, action: impl FnOnce(&mut T) -> R) -> Option<R> {
        // With `Acquire`, this thread sees what the last writer wrote.
        if cfg!(not(Py_GIL_DISABLED)) && self.users.load(Ordering::Acquire) == 0 {
            // SAFETY: there is no user, and no thread becomes a user while this thread holds the
            // GIL.
            return Some(action(unsafe { &mut *self.value.get() }));
        }
        None
    }

    /// Calls `action` with the value. `action` must neither run Python code nor release the GIL.
    ///
    /// # Errors
    ///
    /// The exception of a signal handler, if the thread had to wait and Ctrl-C was pressed.
    pub fn read_now<R>(&self, py: Python<'_>, mut action: impl FnMut(&T) -> R) -> PyResult<R> {
        match self.try_read_now(py, &mut action) {
            Some(done) => Ok(done),
            None => Ok(action(&*self.read(py)?)),
        }
    }

    /// Calls `action` with the value for writing. `action` must neither run Python code nor release
    /// the GIL.
    ///
    /// # Errors
    ///
    /// The exception of a signal handler, if the thread had to wait and Ctrl-C was pressed.
    pub fn write_now<R>(&self, py: Python<'_>, mut action: impl FnMut(&mut T) -> R) -> PyResult<R> {
        match self.try_write_now(py, &mut action) {
            Some(done) => Ok(done),
            None => Ok(action(&mut *self.write(py)?)),
        }
    }

    /// Waits until no thread writes, and returns the value for reading. The thread may release the
    /// GIL while it reads.
    ///
    /// # Errors
    ///
    /// The exception of a signal handler, if Ctrl-C was pressed while the thread waited.
    pub fn read(&self, py: Python<'_>) -> PyResult<ReadGuard<'_, T>> {
        self.acquire(py, Access::Read)?;
        Ok(ReadGuard(self))
    }

    /// Waits until no other thread uses the value, and returns the value for writing. The thread may
    /// release the GIL while it writes.
    ///
    /// # Errors
    ///
    /// The exception of a signal handler, if Ctrl-C was pressed while the thread waited.
    pub fn write(&self, py: Python<'_>) -> PyResult<WriteGuard<'_, T>> {
        self.acquire(py, Access::Write)?;
        Ok(WriteGuard(self))
    }

    /// Waits until both values are free, and returns the values for reading. `one` and `two` are
    /// different.
    ///
    /// # Errors
    ///
    /// The exception of a signal handler, if Ctrl-C was pressed while the thread waited.
    pub fn read_both<'a>(
        py: Python<'_>,
        one: &'a Self,
        two: &'a Self,
    ) -> PyResult<(ReadGuard<'a, T>, ReadGuard<'a, T>)> {
        Self::acquire_both(py, one, Access::Read, two)?;
        Ok((ReadGuard(one), ReadGuard(two)))
    }

    /// Waits until both values are free, and returns `one` for writing and `two` for reading. `one`
    /// and `two` are different.
    ///
    /// # Errors
    ///
    /// The exception of a signal handler, if Ctrl-C was pressed while the thread waited.
    pub fn write_and_read<'a>(
        py: Python<'_>,
        one: &'a Self,
        two: &'a Self,
    ) -> PyResult<(WriteGuard<'a, T>, ReadGuard<'a, T>)> {
        Self::acquire_both(py, one, Access::Write, two)?;
        Ok((WriteGuard(one), ReadGuard(two)))
    }

    /// Acquires `one` for `access`, and `two` for reading. The thread holds neither value while it
    /// waits: two threads cannot wait for each other, and a signal handler, which runs in the
    /// waiting thread, can use both values.
    fn acquire_both(py: Python<'_>, one: &Self, access: Access, two: &Self) -> PyResult<()> {
        one.forget_parent(py)?;
        two.forget_parent(py)?;
        let mut writers_waiting = None;
        loop {
            let busy = if one.try_acquire(access) {
                if two.try_acquire(Access::Read) {
                    return Ok(());
                }
                one.release(access);
                two
            } else {
                one
            };
            if access == Access::Write {
                writers_waiting.get_or_insert_with(|| Counted::new(&one.writers_waiting));
            }
            py.detach(|| busy.wait());
            py.check_signals()?;
        }
    }

    fn acquire(&self, py: Python<'_>, access: Access) -> PyResult<()> {
        self.forget_parent(py)?;
        if self.try_acquire(access) {
            return Ok(());
        }
        let _waiting = (access == Access::Write).then(|| Counted::new(&self.writers_waiting));
        loop {
            py.detach(|| self.wait());
            py.check_signals()?;
            if self.try_acquire(access) {
                return Ok(());
            }
        }
    }

    fn try_acquire(&self, access: Access) -> bool {
        let acquire = |users: i32| match access {
            Access::Write => (users == 0).then_some(-1),
            // A reader lets a waiting writer go first, so that readers cannot keep it out forever.
            Access::Read if self.writers_waiting.load(Ordering::Relaxed) > 0 && users > 0 => None,
            Access::Read => (users >= 0).then_some(users + 1),
        };
        self.users.fetch_update(Ordering::Acquire, Ordering::Relaxed, acquire).is_ok()
    }

    fn wait(&self) {
        let _waiting = Counted::new(&self.waiting);
        let guard = self.lock().lock().unwrap_or_else(PoisonError::into_inner);
        if self.users.load(Ordering::SeqCst) != 0 {
            _ = self.freed.wait_timeout(guard, CHECK_AFTER);
        }
    }

    /// Ends the accesses of the threads of the parent, which a fork does not copy.
    ///
    /// # Errors
    ///
    /// `RuntimeError` if a thread of the parent was changing the value.
    fn forget_parent(&self, _py: Python<'_>) -> PyResult<()> {
        // A fork copies one thread, so only a few threads of the new process may be here.
        static ONE: Mutex<()> = Mutex::new(());
        if self.process.load(Ordering::Acquire) == process::id() {
            return Ok(());
        }
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        if self.process.load(Ordering::Acquire) == process::id() {
            return Ok(());
        }
        if self.users.load(Ordering::Acquire) < 0 {
            return Err(PyRuntimeError::new_err(
                "another thread was changing this filter when the process forked, so the filter \
                 of this process is half changed: start processes with the method 'spawn', or \
                 fork before threads change filters",
            ));
        }
        // The readers of the parent have changed nothing.
        self.users.store(0, Ordering::Relaxed);
        self.writers_waiting.store(0, Ordering::Relaxed);
        self.waiting.store(0, Ordering::Relaxed);
        // SAFETY: no thread of this process has used the lock, because each thread that waits or
        // ends an access has been here before.
        unsafe { *self.lock.get() = Mutex::new(()) };
        self.process.store(process::id(), Ordering::Release);
        Ok(())
    }
}

impl<T> GilRwLock<T> {
    fn lock(&self) -> &Mutex<()> {
        // SAFETY: the lock changes only before the first use of the lock in a process.
        unsafe { &*self.lock.get() }
    }

    /// Ends an access.
    fn release(&self, access: Access) {
        match access {
            Access::Read => _ = self.users.fetch_sub(1, Ordering::SeqCst),
            Access::Write => self.users.store(0, Ordering::SeqCst),
        }
        self.wake();
    }

    /// Wakes the waiting threads after `users` was changed.
    fn wake(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.lock().lock());
            self.freed.notify_all();
        }
    }
}

/// Adds one to a counter until dropped.
struct Counted<'a>(&'a AtomicU32);

impl<'a> Counted<'a> {
    fn new(counter: &'a AtomicU32) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        // A signal handler may fork while the thread waits: the new process counts no waiting thread.
        let minus_one = |count: u32| count.checked_sub(1);
        _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, minus_one);
    }
}

/// A guard of a value for reading. Dropping the guard ends the access.
pub struct ReadGuard<'a, T>(&'a GilRwLock<T>);

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `users` counts this reader, so there is no writer.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        self.0.release(Access::Read);
    }
}

/// A guard of a value for writing. Dropping the guard ends the access.
pub struct WriteGuard<'a, T>(&'a GilRwLock<T>);

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `users` is -1, so there is no other user.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: `users` is -1, so there is no other user.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        self.0.release(Access::Write);
    }
}
