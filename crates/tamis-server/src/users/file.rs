//! ACL files in Redis's format: one line `user name rule rule ...` per user.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use tamis_commands::text;

use crate::system::replace_file::replace_file;
use crate::system::system_error::without_code;
use crate::users::permissions::is_space;
use crate::users::user::{User, join_selectors};

/// The reason why an ACL file cannot be used.
#[derive(Debug)]
pub struct UsersError {
    /// The path of the ACL file.
    pub path: PathBuf,
    /// The line number of the error. The number 0 means that the error concerns the whole file.
    pub line: usize,
    /// The problem, and what to do.
    pub why: String,
}

impl fmt::Display for UsersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path.display(), self.why),
            line => write!(f, "{}:{line}: {}", self.path.display(), self.why),
        }
    }
}

impl std::error::Error for UsersError {}

/// Reads an ACL file. Returns either all users or an error.
pub(super) fn read(path: &Path, mut number: impl FnMut() -> u64) -> Result<Vec<User>, UsersError> {
    let fail = |line, why| UsersError { path: path.to_owned(), line, why };
    let text = std::fs::read(path).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => " (make it: it may be empty)",
            _ => "",
        };
        fail(0, format!("cannot be read: {}{hint}", without_code(&error)))
    })?;
    let mut users: Vec<User> = Vec::new();
    let mut names = HashSet::new();
    for (number_of_line, line) in (1..).zip(text.split(|c| *c == b'\n')) {
        let fail = |why| fail(number_of_line, why);
        let words: Vec<&[u8]> =
            line.split(|c| is_space(*c)).filter(|word| !word.is_empty()).collect();
        let (name, rules) = match words.as_slice() {
            [] => continue,
            [first, ..] if first.starts_with(b"#") => continue,
            [b"user", name, rules @ ..] => (*name, rules),
            _ => return Err(fail("write user, a name and its rules in a line".to_owned())),
        };
        if !names.insert(name.to_vec()) {
            let name = String::from_utf8_lossy(name);
            return Err(fail(format!("user {name:?} is here twice: remove one of the lines")));
        }
        let rules = join_selectors(rules)
            .map_err(|_| fail("a selector has no closing parenthesis".to_owned()))?;
        let mut user = User::new(number(), name);
        for rule in rules {
            user.apply(&rule).map_err(|why| {
                // An error message must never contain a password.
                let rule = match rule.first() {
                    Some(b'>' | b'<' | b'#' | b'!') => "the password".into(),
                    _ => format!("{:?}", text::shown(&rule)),
                };
                fail(format!("{rule}: {why}: correct the rule or remove it"))
            })?;
        }
        users.push(user);
    }
    Ok(users)
}

/// Replaces an ACL file. A reader sees either the complete old file or the complete new file.
pub(super) fn write<'u>(
    path: &Path,
    users: impl Iterator<Item = &'u User>,
) -> Result<(), UsersError> {
    let mut text = Vec::new();
    for user in users {
        text.extend(user.line());
        text.push(b'\n');
    }
    replace_file(path, &text).map_err(|error| UsersError {
        path: path.to_owned(),
        line: 0,
        why: format!("cannot be written: {}", without_code(&error)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &[u8]) -> Result<Vec<User>, UsersError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users.acl");
        std::fs::write(&path, text).unwrap();
        read(&path, || 1)
    }

    #[test]
    fn a_written_file_is_read_back() {
        let text = b"# users\n\nuser default off\r\n  user a on >pw ~a:* +@read\n\
                     user b nopass ( +get  ~x ) (+set)\n";
        let users = read_text(text).unwrap();
        assert_eq!(users.len(), 3);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users.acl");
        for _ in 0..2 {
            write(&path, users.iter()).unwrap();
        }
        let lines = |users: &[User]| users.iter().map(User::line).collect::<Vec<_>>();
        assert_eq!(lines(&read(&path, || 1).unwrap()), lines(&users));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside");
        assert!(!String::from_utf8(std::fs::read(&path).unwrap()).unwrap().contains("pw"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "digests are for the server alone");
        }
    }

    #[test]
    fn errors_name_the_line_and_show_no_password() {
        for (text, line, expected) in [
            (&b"user a on\nuser a off"[..], 2, "twice"),
            (b"\n\nUser a", 3, "write user"),
            (b"user", 1, "write user"),
            (b"user a +nothing", 1, "\"+nothing\""),
            (b"user a (+get", 1, "parenthesis"),
            (b"user a #secret", 1, "the password"),
            (b"user a <secret", 1, "the password"),
            (b"\xff\xfe\0", 1, "write user"),
            (b"user a ~\xff* +get\nuser b \xff", 2, "correct"),
        ] {
            let error = read_text(text).unwrap_err();
            let shown = error.to_string();
            assert_eq!(error.line, line, "{shown}");
            assert!(shown.contains(expected) && !shown.contains("secret"), "{shown}");
        }
        let error = read(Path::new("/nowhere/users.acl"), || 1).unwrap_err().to_string();
        assert!(error.contains("/nowhere/users.acl") && error.contains("make it"), "{error}");
    }
}
