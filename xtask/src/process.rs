//! Runs commands within a time limit. A command that exceeds its limit is killed with all its
//! descendants, so that no test run waits forever.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Why a command has no exit status.
#[derive(Debug)]
pub enum Stopped {
    /// The command could not be started, or its output not be read.
    Io(std::io::Error),
    /// The command exceeded its limit and was killed.
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
    /// The CPU time of the commands that this thread has run, in clock ticks.
    static CPU_TICKS: Cell<u64> = const { Cell::new(0) };
}

/// The clock ticks per second in `/proc`: 100 on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the CPU time of all commands that this thread has run, with the descendants that their parents
/// waited for. Each command lacks its last 50 ms. Without `/proc`, it is zero.
pub fn cpu_time() -> Duration {
    Duration::from_secs_f64(CPU_TICKS.get() as f64 / TICKS_PER_SECOND)
}

/// How often a waiting loop looks at its conditions.
const TICK: Duration = Duration::from_millis(50);

/// Runs a command without stdin, passes each line of stdout and stderr to `on_line`, and returns
/// the exit status. `cancelled` ends the command early.
///
/// Bytes that are not UTF-8 are replaced. Processes that outlive the command and keep its output
/// open are killed too.
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
            // Every process that had the output open has ended.
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
        // A descendant may keep the output open after the command has ended.
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

/// Returns the CPU time of a process and of the children that it waited for; `None` for a process that has
/// ended, or without `/proc`.
fn cpu_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, the times are the fields 12 to 15, in the order of `man proc_pid_stat`.
    let fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(4);
    let times: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    (times.len() == 4).then(|| times.iter().sum())
}

/// Sends each line of a stream until its end, or until the receiver is dropped.
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

/// Kills a child and all its descendants, and waits for the child.
fn kill(child: &mut Child) {
    let mut pids = descendants(child.id());
    pids.push(child.id());
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    // A process of the list may have ended meanwhile: then `kill` fails, which changes nothing.
    let mut kill = Command::new("kill");
    kill.arg("-KILL").args(pids).stdout(Stdio::null()).stderr(Stdio::null());
    _ = kill.status();
    _ = child.kill();
    _ = child.wait();
}

/// Returns the running descendants of a process. Without `/proc`, the list is empty.
fn descendants(of: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // "pid (name) state parent ...": the name may contain spaces and parentheses.
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
            // A zombie that no process has waited for has ended too.
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
        // The shell waits for the inner one, which computes; the end lets the counter look once more.
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
