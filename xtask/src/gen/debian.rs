//! Extracts real data from Debian's package indexes. `apt-get` downloads the file lists into
//! `target/debian-lists`.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::r#gen::output::Output;

use crate::tools::{Outcome, root};

/// Writes the homepage of each package, in the order of the index. Skips packages without a
/// homepage.
pub fn homepages(output: &mut Output) -> Outcome {
    read_lines(Command::new("apt-cache").arg("dumpavail"), |line| {
        match line.strip_prefix(b"Homepage: ") {
            Some(url) => {
                output.write(url)?;
                output.write(b"\n")
            }
            None => Ok(()),
        }
    })?;
    output.finish()
}

/// Writes the path of every file, once for each package that contains the file.
pub fn paths(output: &mut Output) -> Outcome {
    for list in file_lists()? {
        read_lines(Command::new("/usr/lib/apt/apt-helper").arg("cat-file").arg(&list), |line| {
            let Some((path, packages)) = split_entry(line) else { return Ok(()) };
            for _ in packages.split(|&byte| byte == b',') {
                output.write(path)?;
                output.write(b"\n")?;
            }
            Ok(())
        })?;
    }
    output.finish()
}

/// Splits a line of a file list into the path and the list of packages. The path may contain
/// spaces. The list of packages contains no spaces.
fn split_entry(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = line.iter().rposition(u8::is_ascii_whitespace)?;
    let path = line[..blank].trim_ascii_end();
    (!path.is_empty()).then_some((path, &line[blank + 1..]))
}

/// Downloads the file lists with `apt-get` if the lists do not exist, and returns the paths of the
/// lists.
fn file_lists() -> Result<Vec<PathBuf>, String> {
    let folder = root().join("target/debian-lists");
    let mut lists = find_lists(&folder)?;
    if lists.is_empty() {
        std::fs::create_dir_all(folder.join("partial"))
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        eprintln!("fetching Debian's file lists (some 50 MB) into {}", folder.display());
        let target = "Acquire::IndexTargets::deb::Contents-deb";
        let status = Command::new("apt-get")
            .args(["-qq", "update", "-o", &format!("Dir::State::lists={}", folder.display())])
            .args(["-o", &format!("{target}::MetaKey=$(COMPONENT)/Contents-$(ARCHITECTURE)")])
            .args(["-o", &format!("{target}::ShortDescription=Contents-$(ARCHITECTURE)")])
            .args(["-o", &format!("{target}::Description=$(RELEASE)/$(COMPONENT) file lists")])
            .args(["-o", &format!("{target}::KeepCompressed=true")])
            .status()
            .map_err(|error| format!("apt-get: {error}: this data needs a Debian system"))?;
        if !status.success() {
            return Err(format!("apt-get update failed: {status}"));
        }
        lists = find_lists(&folder)?;
    }
    if lists.is_empty() {
        return Err("apt fetched no file lists: its sources may offer none".to_owned());
    }
    Ok(lists)
}

fn find_lists(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let Ok(entries) = folder.read_dir() else { return Ok(Vec::new()) };
    let mut lists: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().contains("_Contents-")))
        .collect();
    lists.sort();
    Ok(lists)
}

/// Runs a command and passes each line of the output to `take`, without the line end.
fn read_lines(command: &mut Command, mut take: impl FnMut(&[u8]) -> Outcome) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    let explain = |error| format!("{name}: {error}: this data needs a Debian system");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(explain)?;
    let stdout = child.stdout.take().expect("piped above");
    let mut reader = BufReader::with_capacity(1 << 20, stdout);
    let mut line = Vec::new();
    while reader.by_ref().read_until(b'\n', &mut line).map_err(explain)? > 0 {
        take(line.strip_suffix(b"\n").unwrap_or(&line))?;
        line.clear();
    }
    let status = child.wait().map_err(explain)?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_hold_blanks() {
        let entry = split_entry(b"usr/share/a file.txt     utils/one,libs/two");
        assert_eq!(
            entry,
            Some((b"usr/share/a file.txt".as_slice(), b"utils/one,libs/two".as_slice()))
        );
        assert_eq!(split_entry(b"nothing"), None);
    }
}
