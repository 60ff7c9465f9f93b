//! Temporary files that are removed when the program is interrupted.
//!
//! A thread receives the signals that end the program (Ctrl-C, a closed terminal, `kill`). The
//! thread removes every temporary file, and then applies the default action of the signal. A
//! process cannot catch `kill -9`, so its temporary files remain.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tempfile::{NamedTempFile, PersistError};

/// A temporary file. The file is removed when this value is dropped or when the program is
/// interrupted.
pub struct Temporary {
    /// The value is `None` only during the drop.
    file: Option<NamedTempFile>,
}

/// The paths of all temporary files. A thread holds the lock while it creates, renames or removes a
/// temporary file. Therefore, after a signal, each temporary file is either in this list or
/// removed.
static PATHS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The message for the user when the program is interrupted.
static HINT: Mutex<Option<String>> = Mutex::new(None);

/// The function that runs when the program is interrupted.
static HANDLER: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Registers a function that runs when the program is interrupted. [`end_interruption_handler`]
/// removes the function.
#[cfg(feature = "network")]
pub fn at_interruption(handler: impl FnOnce() + Send + 'static) {
    #[cfg(unix)]
    signals::watch();
    *HANDLER.lock() = Some(Box::new(handler));
}

/// Runs `work` without interruption. If the program is interrupted during `work`, the function of
/// [`at_interruption`] runs after `work`. If that function has already started, `work` never
/// starts.
#[cfg(feature = "network")]
pub fn uninterrupted<R>(work: impl FnOnce() -> R) -> R {
    let _waits = HANDLER.lock();
    work()
}

/// Removes the function of [`at_interruption`]. If the program is being interrupted, the function
/// blocks until the program ends.
#[cfg(feature = "network")]
pub fn end_interruption_handler() {
    *HANDLER.lock() = None;
}

/// Sets the message that is printed when the program is interrupted.
pub fn hint_at_interruption(hint: String) {
    #[cfg(unix)]
    signals::watch();
    *HINT.lock() = Some(hint);
}

impl Temporary {
    /// Creates a temporary file with `make` and registers its path.
    ///
    /// # Errors
    ///
    /// The error of `make`.
    pub fn create(make: impl FnOnce() -> io::Result<NamedTempFile>) -> io::Result<Self> {
        #[cfg(unix)]
        signals::watch();
        let mut paths = PATHS.lock();
        let file = make()?;
        paths.push(file.path().to_path_buf());
        Ok(Self { file: Some(file) })
    }

    /// Returns the path of the file.
    #[cfg(feature = "network")]
    pub fn path(&self) -> &Path {
        self.file.as_ref().expect("there until dropped").path()
    }

    /// Returns the file.
    pub fn as_file(&self) -> &File {
        self.file.as_ref().expect("there until dropped").as_file()
    }

    /// Returns the file.
    pub fn as_file_mut(&mut self) -> &mut File {
        self.file.as_mut().expect("there until dropped").as_file_mut()
    }

    /// Renames the file to `path` and replaces an existing file.
    ///
    /// # Errors
    ///
    /// The error of the system. After an error, the temporary file is removed.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        self.rename(|file| file.persist(path))
    }

    /// Renames the file to `path`. If `path` exists, removes the temporary file instead of renaming
    /// the file.
    ///
    /// # Errors
    ///
    /// The error of the system. After an error, the temporary file is removed.
    pub fn persist_new(self, path: &Path) -> io::Result<()> {
        match self.rename(|file| file.persist_noclobber(path)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            renamed => renamed,
        }
    }

    fn rename(
        mut self,
        rename: impl FnOnce(NamedTempFile) -> Result<File, PersistError>,
    ) -> io::Result<()> {
        let mut paths = PATHS.lock();
        let file = self.file.take().expect("there until dropped");
        paths.retain(|other| other != file.path());
        rename(file).map(drop).map_err(|error| error.error)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let mut paths = PATHS.lock();
            paths.retain(|other| other != file.path());
            drop(file);
        }
    }
}

#[cfg(unix)]
mod signals {
    use std::sync::{Once, mpsc};
    use std::thread;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    /// Starts the thread that waits for signals. If the system provides no thread, signals end the
    /// program as usual.
    pub fn watch() {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            let (ready, is_ready) = mpsc::channel::<()>();
            let wait = move || {
                let signals = Signals::new(wanted());
                drop(ready);
                if let Some(signal) = signals.ok().and_then(|mut all| all.forever().next()) {
                    // The thread holds this lock until the program ends, so no other thread can
                    // create or rename a file.
                    let paths = super::PATHS.lock();
                    for path in paths.iter() {
                        std::fs::remove_file(path).ok();
                    }
                    // The thread also holds the lock of the handler until the program ends.
                    let mut handler = super::HANDLER.lock();
                    if let Some(handler) = handler.take() {
                        handler();
                    }
                    let hint = super::HINT.lock();
                    if let Some(hint) = &*hint {
                        // A terminal has printed `^C` before this line.
                        note!("interrupted: {hint}");
                    }
                    // The default action ends the process, so the call returns only if the system
                    // rejects the call.
                    emulate_default_handler(signal).ok();
                    std::process::exit(128 + signal);
                }
            };
            if thread::Builder::new().name("signals".into()).spawn(wait).is_ok() {
                // The thread sends no message, and drops the channel after the installation of the
                // signal handlers.
                is_ready.recv().ok();
            }
        });
    }

    /// Returns the signals to wait for. Omits signals that the parent process set to ignored,
    /// as `nohup` does.
    fn wanted() -> Vec<i32> {
        let ignored = ignored();
        [SIGHUP, SIGINT, SIGTERM]
            .into_iter()
            .filter(|signal| ignored & (1 << (signal - 1)) == 0)
            .collect()
    }

    /// Returns a mask with a set bit for each ignored signal.
    fn ignored() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        // Systems other than Linux do not show the mask of ignored signals. On these systems, the
        // function assumes that only the signal that `nohup` ignores is ignored.
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(1 << (SIGHUP - 1))
    }
}
