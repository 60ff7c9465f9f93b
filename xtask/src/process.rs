//! Runs commands with a time limit. If a command exceeds the limit, this module kills the command and all descendants
//! of the command. So a test run never waits forever.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The reason why a command has no exit status.
#[derive(Debug)]
pub enum Stopped {
    /// The command could not be started, or waiting for the command failed.
    Io(std::io::Error),
    /// The command exceeded the time limit and was killed.
    TimedOut(Duration),
    /// Another step failed, so this command was killed.
    Cancelled,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::TimedOut(limit) => write!(f, "killed after {} s", limit.as_secs()),
            Self::Cancelled => f.write_str("killed because another step failed"),
        }
    }
}

thread_local! {
    /// The CPU time of all commands that this thread has run, in clock ticks.
    static CPU_TICKS: Cell<u64> = const { Cell::new(0) };
}

/// The number of clock ticks per second in `/proc`, which is 100 on every Linux system.
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the CPU time of all commands that this thread has run. The time includes each descendant for which its
/// parent has waited, and may lack the last 50 ms of each command. Without `/proc`, the time is zero.
pub fn cpu_time() -> Duration {
    Duration::from_secs_f64(CPU_TICKS.get() as f64 / TICKS_PER_SECOND)
}

/// The time between two checks of a waiting loop.
const TICK: Duration = Duration::from_millis(50);

/// Runs a command without stdin, passes each line of stdout and stderr to `on_line`, and returns the exit status. If
/// `cancelled` becomes true, kills the command.
///
/// This function replaces bytes that are not UTF-8. If a descendant keeps stdout or stderr open after the command has
/// exited, this function stops reading after 5 seconds.
///
/// # Errors
///
/// [`Stopped`] if the command has no exit status.
pub fn run(
    command: &mut Command,
    limit: Duration,
    cancelled: &AtomicBool,
    mut on_line: impl FnMut(&str),
) -> Result<ExitStatus, Stopped> {
    let started = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(Stopped::Io)?;
    let (sender, lines) = mpsc::channel();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let of_stderr = sender.clone();
    std::thread::spawn(move || send_lines(stdout.expect("piped above"), &sender));
    std::thread::spawn(move || send_lines(stderr.expect("piped above"), &of_stderr));
    let mut ended_at: Option<(ExitStatus, Instant)> = None;
    let (before, mut looked_at) = (CPU_TICKS.get(), started);
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => on_line(&line),
            // All processes with this stdout or stderr have closed the streams.
            Err(RecvTimeoutError::Disconnected) if ended_at.is_some() => break,
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if ended_at.is_none() {
            if looked_at.elapsed() >= TICK {
                looked_at = Instant::now();
                CPU_TICKS.set(before + cpu_ticks(child.id()).unwrap_or(CPU_TICKS.get() - before));
            }
            ended_at =
                child.try_wait().map_err(Stopped::Io)?.map(|status| (status, Instant::now()));
        }
        // A descendant may keep stdout or stderr open after the command has exited.
        if ended_at.is_some_and(|(_, at)| at.elapsed() > Duration::from_secs(5)) {
            break;
        }
        if ended_at.is_none() && cancelled.load(Ordering::Relaxed) {
            kill(&mut child);
            return Err(Stopped::Cancelled);
        }
        if ended_at.is_none() && started.elapsed() > limit {
            kill(&mut child);
            return Err(Stopped::TimedOut(limit));
        }
    }
    Ok(ended_at.expect("the loop ends after the child").0)
}

/// Returns the CPU time of a process and of the children for which the process has waited. Returns `None` if the
/// process has exited, or without `/proc`.
fn cpu_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The CPU times are the fields 12 to 15 after the process name; see `man proc_pid_stat`.
    let fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(4);
    let times: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    (times.len() == 4).then(|| times.iter().sum())
}

/// Sends each line of a stream. Stops at the end of the stream, or when the receiver is dropped.
fn send_lines(stream: impl Read, lines: &mpsc::Sender<String>) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
        let text = String::from_utf8_lossy(&line);
        if lines.send(text.trim_end_matches(['\n', '\r']).to_owned()).is_err() {
            return;
        }
        line.clear();
    }
}

/// Kills a child and all descendants of the child, and waits for the child.
fn kill(child: &mut Child) {
    let mut pids = descendants(child.id());
    pids.push(child.id());
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    // `kill` fails if a process in the list has already exited. The code ignores this failure.
    let mut kill = Command::new("kill");
    kill.arg("-KILL").args(pids).stdout(Stdio::null()).stderr(Stdio::null());
    _ = kill.status();
    _ = child.kill();
    _ = child.wait();
}

/// Returns the process ids of all descendants of a process. Without `/proc`, the list is empty.
fn descendants(of: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The format is "pid (name) state parent ...". The name may contain spaces and parentheses.
        let parent =
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        for &child in children.get(&parent).into_iter().flatten() {
            found.push(child);
            parents.push(child);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    #[test]
    fn every_line_of_both_streams_arrives() {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo a; echo b >&2; printf c; exit 3"]);
        let status = run(&mut command, Duration::from_secs(60), &NEVER, |line| {
            lines.push(line.to_owned());
        });
        lines.sort();
        assert_eq!(status.unwrap().code(), Some(3));
        assert_eq!(lines, ["a", "b", "c"]);
    }

    #[test]
    fn a_command_over_its_limit_is_killed_with_its_descendants() {
        let mut pid = 0;
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo $!; wait"]);
        let stopped = run(&mut command, Duration::from_secs(1), &NEVER, |line| {
            pid = line.parse().unwrap();
        });
        assert!(matches!(stopped, Err(Stopped::TimedOut(_))), "{stopped:?}");
        let started = Instant::now();
        let is_running = |pid: u32| {
            // The state `Z` (zombie) means that the process has exited.
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while is_running(pid) {
            assert!(started.elapsed() < Duration::from_secs(30), "process {pid} still runs");
            std::thread::sleep(TICK);
        }
    }

    #[test]
    fn a_cancelled_command_is_killed() {
        let cancelled = AtomicBool::new(true);
        let mut command = Command::new("sleep");
        let stopped = run(command.arg("1000"), Duration::from_secs(60), &cancelled, |_| {});
        assert!(matches!(stopped, Err(Stopped::Cancelled)), "{stopped:?}");
    }

    #[test]
    fn the_cpu_time_of_descendants_is_counted() {
        let before = cpu_time();
        let mut command = Command::new("sh");
        // The outer shell waits for the inner shell, which uses CPU time. `sleep 0.3` gives `run` the time to read the
        // counter again.
        command
            .args(["-c", "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; sleep 0.3"]);
        run(&mut command, Duration::from_secs(60), &NEVER, |_| {}).unwrap();
        assert_eq!(fs::exists("/proc/self/stat").unwrap(), cpu_time() > before);
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let stopped = run(&mut Command::new("/no/such"), Duration::from_secs(9), &NEVER, |_| {});
        assert!(matches!(stopped, Err(Stopped::Io(_))), "{stopped:?}");
    }
}
