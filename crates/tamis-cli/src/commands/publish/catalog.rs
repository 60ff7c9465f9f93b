//! The files of a server, and the rules for replacing a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Mutex;

use crate::commands::publish::published_file::{PublishedFile, Stamp};
use crate::exit::Failure;
use crate::io::input;

/// The time for which a file that is written in place must stay unchanged before the server serves
/// the file.
const QUIET: Duration = Duration::from_secs(2);

/// The files of a server, by name.
pub struct Catalog {
    entries: BTreeMap<String, Entry>,
}

struct Entry {
    path: PathBuf,
    state: Mutex<State>,
    is_secret: bool,
}

struct State {
    current: Option<Arc<PublishedFile>>,
    /// The identity, size and modification time of the file when the server last rejected the file.
    refused: Option<Stamp>,
}

/// The reason why a file is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// No file has the requested name.
    Missing,
    /// The file is being written, or is not a filter.
    Later,
}

impl Catalog {
    /// Opens all files.
    ///
    /// # Errors
    ///
    /// Returns a message for the first file that is not a filter, or if two files have the same
    /// name.
    pub fn open(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut entries = BTreeMap::new();
        for path in paths {
            let shown = input::name(path);
            let name = path.file_name().and_then(|name| name.to_str());
            let name =
                name.ok_or_else(|| Failure::new(format!("{shown}: has no name in UTF-8")))?;
            let file = PublishedFile::open(path)?;
            let is_secret = file.is_secret;
            let state = Mutex::new(State { current: Some(Arc::new(file)), refused: None });
            let entry = Entry { path: path.clone(), state, is_secret };
            if entries.insert(name.to_owned(), entry).is_some() {
                let message = format!("{shown}: another file has the name {name} too; rename one");
                return Err(Failure::new(message));
            }
        }
        Ok(Self { entries })
    }

    /// Returns the names of files with a secret hash key.
    pub fn secret_names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, it)| it.is_secret).map(|(name, _)| name.as_str())
    }

    /// Returns the names of all files, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns the current file of a name.
    ///
    /// # Errors
    ///
    /// Returns [`Unavailable`] if the file is missing or not ready.
    pub async fn get(&self, name: &str) -> Result<Arc<PublishedFile>, Unavailable> {
        let entry = self.entries.get(name).ok_or(Unavailable::Missing)?;
        // While the file is read, other requests for the same file wait.
        let mut state = entry.state.lock().await;
        let Ok(metadata) = entry.path.metadata() else { return Err(Unavailable::Missing) };
        let found = Stamp::new(&metadata);
        if let Some(current) = state.current.as_ref().filter(|it| it.stamp == found) {
            return Ok(Arc::clone(current));
        }
        let last = state.current.clone();
        // If the old file was renamed away, its bytes can still be read through the open file.
        let old = || last.clone().filter(|it| it.is_unchanged()).ok_or(Unavailable::Later);
        if state.refused == Some(found) {
            return old();
        }
        let is_in_place = last.as_ref().is_some_and(|it| it.stamp.is_same_file(&found));
        if is_in_place && is_recent(&found) {
            return Err(Unavailable::Later);
        }
        match open(&entry.path).await {
            Ok(file) => {
                tracing::info!(%name, bytes = file.stamp.len_bytes, etag = %file.tag, "a new file");
                let file = Arc::new(file);
                *state = State { current: Some(Arc::clone(&file)), refused: None };
                Ok(file)
            }
            Err(error) => {
                tracing::warn!(%name, %error, "the new file is not served");
                state.refused = Some(found);
                old()
            }
        }
    }
}

/// Tests whether the last modification is so recent that a program may still be writing the file.
fn is_recent(stamp: &Stamp) -> bool {
    let Some(modified) = stamp.modified() else { return false };
    // A modification time in the future comes from the clock of another machine.
    SystemTime::now().duration_since(modified).is_ok_and(|age| age < QUIET)
}

async fn open(path: &Path) -> Result<PublishedFile, String> {
    let path = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || PublishedFile::open(&path)).await;
    opened.map_err(|panic| panic.to_string())?.map_err(|failure| match failure {
        Failure::Message(message) => message,
        Failure::BrokenPipe => "the pipe is closed".to_owned(),
    })
}
