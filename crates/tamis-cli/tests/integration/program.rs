//! Runs the program as a user does, in its own folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tamis_testing::CommandExt as _;

/// The result of a run.
#[derive(Debug, PartialEq)]
pub struct Ended {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
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
    pub fn copy_golden(&self, golden: &str, name: &str) -> Vec<u8> {
        let all = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden"));
        let bytes = std::fs::read(all.join(golden)).unwrap();
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
    pub fn feed(&self, line: &str, stdin: impl AsRef<[u8]>) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_tamis"))
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .env_remove("SOURCE_DATE_EPOCH")
            .feed(stdin.as_ref());
        Ended {
            status: output.status.code().expect("no signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn run(&self, line: &str) -> Ended {
        self.feed(line, "")
    }

    /// Runs a command that must succeed with an empty stderr. Returns its stdout.
    pub fn ok(&self, line: &str) -> String {
        let ended = self.run(line);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{line}");
        ended.stdout
    }

    /// Runs a command that must be rejected: it exits with status 2, writes one line that contains
    /// `words` to stderr, prints nothing, and changes no file.
    pub fn refused(&self, line: &str, words: &str) {
        let before: Vec<_> = self.names().iter().map(|name| self.try_read(name)).collect();
        let names = self.names();
        let ended = self.run(line);
        assert_eq!(ended.status, 2, "{line}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{line}");
        assert_eq!(ended.stderr.lines().count(), 1, "{line}: {}", ended.stderr);
        assert!(ended.stderr.starts_with("tamis: "), "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{line}: {}", ended.stderr);
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

/// Returns `tamis ints` with these arguments, all its streams piped.
pub fn ints_command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
    command.arg("ints").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs `tamis ints` on `stdin`.
pub fn ints(args: &[&str], stdin: &[u8]) -> Output {
    ints_command(args).feed(stdin)
}

/// Writes a file, and returns its path as an argument.
pub fn file(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}
