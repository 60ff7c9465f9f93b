//! Starts child processes, and kills each child process at the end of the test.

use std::io::{Read, Write as _};
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::wait::{DEADLINE, wait_until};
use crate::{Lines, receive};

/// Starts and runs commands with a deadline.
pub trait CommandExt {
    /// Starts the process.
    ///
    /// # Panics
    ///
    /// Panics if the program cannot be started.
    fn start(&mut self) -> Process;

    /// Runs the command with an empty stdin, and returns the exit status, stdout and stderr.
    ///
    /// # Panics
    ///
    /// Panics if the process runs longer than [`DEADLINE`].
    fn run(&mut self) -> Output;

    /// Runs the command, writes `stdin` to the command's stdin, and returns the exit status, stdout
    /// and stderr.
    ///
    /// # Panics
    ///
    /// Panics if the process runs longer than [`DEADLINE`].
    fn feed(&mut self, stdin: impl Into<Vec<u8>>) -> Output;
}

impl CommandExt for Command {
    #[track_caller]
    fn start(&mut self) -> Process {
        let child = self.spawn().unwrap_or_else(|error| panic!("{self:?}: {error}"));
        Process { child, command: format!("{self:?}") }
    }

    #[track_caller]
    fn run(&mut self) -> Output {
        let piped = self.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        piped.start().output()
    }

    #[track_caller]
    fn feed(&mut self, stdin: impl Into<Vec<u8>>) -> Output {
        let mut process =
            self.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).start();
        let (mut pipe, bytes) = (process.stdin.take().expect("it is piped"), stdin.into());
        // A separate thread writes to stdin, because all pipes of the process may be full. The
        // thread ignores a write error, because a program that fails closes stdin.
        std::thread::spawn(move || pipe.write_all(&bytes));
        process.output()
    }
}

/// A child process. Dropping this value kills the process, also after a failed assertion.
pub struct Process {
    child: Child,
    /// The command with its arguments, for panic messages.
    command: String,
}

impl Process {
    /// Closes stdin and waits until the process exits.
    ///
    /// # Panics
    ///
    /// Panics with the command if the process runs longer than [`DEADLINE`].
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        wait_until(format_args!("this command ends: {}", self.command), || {
            self.child.try_wait().unwrap().is_some()
        });
        self.child.wait().unwrap()
    }

    /// Closes stdin, reads stdout and stderr if these streams are piped, and waits until the
    /// process exits.
    ///
    /// # Panics
    ///
    /// Panics with the command and its stderr if the process runs longer than [`DEADLINE`].
    #[track_caller]
    pub fn output(self) -> Output {
        self.output_within(DEADLINE)
    }

    /// Does the same as [`Process::output`], but with `limit` as the deadline.
    ///
    /// # Panics
    ///
    /// Panics with the command and its stderr if the process runs longer than `limit`.
    #[track_caller]
    pub fn output_within(mut self, limit: Duration) -> Output {
        drop(self.child.stdin.take());
        let (stdout, stderr) = (read(self.child.stdout.take()), read(self.child.stderr.take()));
        let end = Instant::now() + limit;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                self.kill();
                let stderr = stderr.recv_timeout(DEADLINE / 10).unwrap_or_default();
                let stderr = String::from_utf8_lossy(&stderr);
                panic!("waited in vain until this command ends: {}\n{stderr}", self.command);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // Processes that the child has started may still write to the child's streams, so this
        // method also waits for the end of both streams.
        Output {
            status: self.child.wait().unwrap(),
            stdout: receive(format_args!("the end of stdout of {}", self.command), &stdout),
            stderr: receive(format_args!("the end of stderr of {}", self.command), &stderr),
        }
    }

    /// Returns the lines of stdout. The caller must have piped stdout.
    ///
    /// # Panics
    ///
    /// Panics if stdout is not piped, or if an earlier call has taken stdout.
    pub fn stdout_lines(&mut self) -> Lines {
        Lines::of(self.child.stdout.take().expect("stdout is piped"))
    }

    /// Returns the lines of stderr. The caller must have piped stderr.
    ///
    /// # Panics
    ///
    /// Panics if stderr is not piped, or if an earlier call has taken stderr.
    pub fn stderr_lines(&mut self) -> Lines {
        Lines::of(self.child.stderr.take().expect("stderr is piped"))
    }

    /// Waits until the process has a handler for the signal `HUP`, `INT` or `TERM`, and then sends
    /// the signal. A signal without a handler would end the process, or would be lost if the parent
    /// process ignores the signal.
    ///
    /// # Panics
    ///
    /// Panics if the process has exited, or if the process has no handler for the signal after
    /// [`DEADLINE`].
    #[track_caller]
    pub fn signal(&self, signal: &str) {
        if cfg!(target_os = "linux") {
            let what = format_args!("this command catches SIG{signal}: {}", self.command);
            wait_until(what, || self.catches(signal));
        }
        self.send(signal);
    }

    /// Sends a signal without waiting for a handler. The caller must first wait until the process
    /// runs the expected program.
    ///
    /// # Panics
    ///
    /// Panics if the signal cannot be sent.
    #[track_caller]
    pub fn send(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).run().status.success());
    }

    /// Tests in `/proc` whether the process has a handler for the signal.
    fn catches(&self, signal: &str) -> bool {
        let bit = match signal {
            "HUP" => 0,
            "INT" => 1,
            "TERM" => 14,
            other => panic!("SIG{other} is not in this list"),
        };
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        assert!(!status.contains("State:\tZ"), "this command has ended: {}", self.command);
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.expect("Linux lists the caught signals");
        u64::from_str_radix(caught.trim(), 16).unwrap() >> bit & 1 == 1
    }

    /// Kills the process and waits until the process has exited.
    pub fn kill(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Starts a thread that reads a stream to the end and sends the bytes to the returned receiver.
fn read(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            _ = stream.read_to_end(&mut bytes);
        }
        _ = sender.send(bytes);
    });
    receiver
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
