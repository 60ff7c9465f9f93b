//! Runs the program as a user does, in its own folder.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tamis_testing::CommandExt as _;

/// The result of a run.
#[derive(Debug, PartialEq)]
pub struct Ended {
    /// The arguments, for messages.
    pub line: String,
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn of(line: &str, output: Output) -> Self {
        Self {
            line: line.to_owned(),
            status: output.status.code().expect("no signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Checks the exit status.
    #[track_caller]
    pub fn has_status(&self, status: i32) {
        assert_eq!(self.status, status, "{self:?}");
    }

    /// Returns the JSON that the command printed.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Checks that the command did not fail: it may have a note.
    #[track_caller]
    pub fn is_done(&self) {
        assert_ne!(self.status, 2, "{self:?}");
    }

    /// Checks what the command printed.
    #[track_caller]
    pub fn prints(&self, stdout: impl AsRef<str>) {
        assert_eq!(self.stdout, stdout.as_ref(), "{self:?}");
    }

    /// Checks that the command printed some words.
    #[track_caller]
    pub fn shows(&self, words: &[&str]) {
        for word in words {
            assert!(self.stdout.contains(word), "no {word:?} in {self:?}");
        }
    }

    /// Checks the exit status and what the command printed.
    #[track_caller]
    pub fn gives(&self, status: i32, stdout: impl AsRef<str>) {
        assert_eq!((self.status, &*self.stdout), (status, stdout.as_ref()), "{self:?}");
    }

    /// Checks the exit status and the whole text on stderr.
    #[track_caller]
    pub fn says(&self, status: i32, stderr: &str) {
        assert_eq!((self.status, &*self.stderr), (status, stderr), "{self:?}");
    }

    /// Checks the exit status, and a part of the text on stderr.
    #[track_caller]
    pub fn warns(&self, status: i32, words: &str) {
        assert!(self.status == status && self.stderr.contains(words), "{words}: {self:?}");
    }
}

/// Returns `tamis` with a line of arguments, split at spaces. The command does not inherit variables that begin with
/// `TAMIS_`, because these variables set options of the program.
pub fn tamis(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"TAMIS_") {
            command.env_remove(name);
        }
    }
    command.args(line.split_whitespace());
    command
}

/// A folder in which `tamis` runs.
pub struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// Copies a file of `tests/golden` to `name`, and returns its bytes.
    pub fn copy_golden(&self, file: &str, name: &str) -> Vec<u8> {
        let bytes = golden(file);
        self.write(name, &bytes);
        bytes
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs a line of arguments, split at spaces, with `stdin`.
    pub fn feed(&self, line: impl AsRef<str>, stdin: impl AsRef<[u8]>) -> Ended {
        Ended::of(line.as_ref(), self.command(line.as_ref()).feed(stdin.as_ref()))
    }

    /// Returns a command in this folder with a line of arguments, split at spaces.
    pub fn command(&self, line: &str) -> Command {
        let mut command = tamis(line);
        command.current_dir(self.folder.path()).env_remove("SOURCE_DATE_EPOCH");
        command
    }

    /// Returns a command in this folder, all its streams piped.
    pub fn piped(&self, line: &str) -> Command {
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, line: impl AsRef<str>) -> Ended {
        self.feed(line, "")
    }

    /// Runs a command that must succeed with an empty stderr. Returns its stdout.
    #[track_caller]
    pub fn ok(&self, line: impl AsRef<str>) -> String {
        let ended = self.run(line);
        ended.says(0, "");
        ended.stdout
    }

    /// Writes items to `NAME.txt`, and builds the filter `NAME.tamis` of these items.
    #[track_caller]
    pub fn build(&self, name: &str, items: impl AsRef<[u8]>) {
        self.write(&format!("{name}.txt"), items);
        self.ok(format!("build {name}.txt -o {name}.tamis"));
    }

    /// Runs a command that must succeed with an empty stderr, and checks its stdout.
    #[track_caller]
    pub fn prints(&self, line: impl AsRef<str>, stdout: impl AsRef<str>) {
        let ended = self.run(line);
        ended.says(0, "");
        ended.prints(stdout);
    }

    /// Runs a command that must succeed with an empty stderr, and checks some words of its stdout.
    #[track_caller]
    pub fn shows(&self, line: impl AsRef<str>, words: &[&str]) {
        let ended = self.run(line);
        ended.says(0, "");
        ended.shows(words);
    }

    /// Runs a command that must succeed with an empty stderr. Returns the JSON that it prints.
    pub fn json(&self, line: impl AsRef<str>) -> serde_json::Value {
        serde_json::from_str(&self.ok(line)).unwrap()
    }

    /// Runs a command that must be rejected: it exits with status 2, writes one line that contains
    /// `words` to stderr, prints nothing, and changes no file.
    #[track_caller]
    pub fn refused(&self, line: impl AsRef<str>, words: &str) {
        self.refused_with(line, &[words]);
    }

    /// The same, with several words.
    #[track_caller]
    pub fn refused_with(&self, line: impl AsRef<str>, words: &[&str]) {
        let line = line.as_ref();
        let before: Vec<_> = self.names().iter().map(|name| self.try_read(name)).collect();
        let names = self.names();
        let ended = self.run(line);
        assert_eq!(ended.status, 2, "{line}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{line}");
        assert_eq!(ended.stderr.lines().count(), 1, "{line}: {}", ended.stderr);
        assert!(ended.stderr.starts_with("tamis: "), "{line}: {}", ended.stderr);
        assert!(!ended.stderr.contains("os error"), "{line}: {}", ended.stderr);
        for word in words {
            assert!(ended.stderr.contains(word), "{line}: no {word:?} in {}", ended.stderr);
        }
        assert_eq!(self.names(), names, "{line}");
        let after: Vec<_> = self.names().iter().map(|name| self.try_read(name)).collect();
        assert!(before == after, "{line}: a file has changed");
    }

    /// `None` for folders.
    fn try_read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(name)).ok()
    }
}

/// Returns numbers as lines of text.
pub fn lines(items: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    items.into_iter().map(|item| format!("{item}\n")).collect()
}

/// Reads a file of `tests/golden`.
pub fn golden(name: &str) -> Vec<u8> {
    let all = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden"));
    std::fs::read(all.join(name)).unwrap()
}

/// Reads a JSON file of `tests/golden`.
pub fn golden_json(name: &str) -> serde_json::Value {
    serde_json::from_slice(&golden(name)).unwrap()
}

/// Compresses bytes with gzip.
pub fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}
