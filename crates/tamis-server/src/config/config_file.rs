//! The options in a TOML file. The server reads the file at the start, and `CONFIG REWRITE` writes
//! the file.

use std::path::Path;
use std::{fs, io};

use toml_edit::{DocumentMut, Item, Value};

use crate::config::{BindAddress, Config, ConfigFile};
use crate::system::replace_file::replace_file;
use crate::system::system_error::without_code;

impl Config {
    /// Reads options from a TOML file, such as `port = 7000` and `maxmemory = "2gb"`. The options
    /// in the file replace the current values. After this call, `CONFIG REWRITE` writes to the same
    /// TOML file.
    ///
    /// # Errors
    ///
    /// The problem, with its line number in the file.
    pub fn read_file(&mut self, path: &Path) -> Result<(), String> {
        let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| fail(&without_code(&error)))?;
        let line_of = |start: usize| text.bytes().take(start).filter(|&c| c == b'\n').count() + 1;
        let document = toml_edit::Document::parse(&*text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(span.start));
            fail(&format_args!("line {line}: {}", error.message()))
        })?;
        let defaults = self.all().collect();
        for (name, item) in document.iter() {
            let key = document.key(name).and_then(toml_edit::Key::span);
            let line = key.or_else(|| item.span()).map_or(1, |span| line_of(span.start));
            let fail =
                |why: &dyn std::fmt::Display| fail(&format_args!("line {line}: {name}: {why}"));
            let value = text_of(item)
                .ok_or_else(|| fail(&"an option takes a text, a number, true or false"))?;
            self.set(name, &value).map_err(|error| fail(&error))?;
        }
        self.file = Some(ConfigFile { path: path.to_owned(), defaults });
        Ok(())
    }

    /// Writes the changed options to the configuration file that was read. An option in the file
    /// counts as changed if its value differs from the file. An option that the file does not set
    /// counts as changed if its value differs from the value before the file was read. Comments and
    /// the order in the file are kept. The file is replaced atomically.
    ///
    /// # Errors
    ///
    /// The reason why the file was not written.
    pub fn rewrite_file(&self) -> io::Result<()> {
        let Some(ConfigFile { path, defaults }) = &self.file else {
            return Err(io::Error::other("the server was started without --config"));
        };
        // Replace the target of a symbolic link, not the link.
        let path = fs::canonicalize(path)?;
        let text = fs::read_to_string(&path)?;
        let mut document: DocumentMut = text.parse().map_err(io::Error::other)?;
        for ((name, value), (_, default)) in self.all().zip(defaults) {
            let given = document.get(name).and_then(text_of);
            let is_given = given.is_some_and(|given| {
                // Compare the host names as text. A second DNS query may be slow, and the addresses
                // may have changed.
                if name == "bind" {
                    return BindAddress::split(&given).map(BindAddress::shown).eq(value.split(' '));
                }
                let mut config = Config::default();
                config.set(name, &given).is_ok()
                    && config.all().any(|(other, its)| (other, &its) == (name, &value))
            });
            if is_given || document.get(name).is_none() && value == *default {
                continue;
            }
            let mut new = Item::from(shown(&value));
            // Keep the comment that follows the value.
            if let (Some(old), Some(new)) =
                (document.get(name).and_then(Item::as_value), new.as_value_mut())
            {
                *new.decor_mut() = old.decor().clone();
            }
            document[name] = new;
        }
        replace_file(&path, document.to_string().as_bytes())
    }
}

/// Converts an option's value to a TOML number or boolean if the text in TOML is exactly the
/// option's value. Converts every other option value to a TOML string. A password such as `007`
/// stays a string.
fn shown(value: &str) -> Value {
    let number = value.parse::<i64>().map(Value::from).ok();
    let fraction = || value.parse::<f64>().ok().filter(|it| it.is_finite()).map(Value::from);
    let shown = match value {
        "yes" => Value::from(true),
        "no" => Value::from(false),
        _ => number.or_else(fraction).unwrap_or_else(|| value.into()),
    };
    let is_same = text_of(&Item::from(shown.clone())).is_some_and(|text| text == value);
    if is_same { shown } else { value.into() }
}

/// Returns an option's value as the text of a flag.
fn text_of(item: &Item) -> Option<String> {
    Some(match item.as_value()? {
        Value::String(text) => text.value().clone(),
        Value::Boolean(is_on) => if *is_on.value() { "yes" } else { "no" }.to_owned(),
        Value::Array(all) => {
            let all: Option<Vec<&str>> = all.iter().map(Value::as_str).collect();
            all?.join(" ")
        }
        Value::Integer(number) => number.value().to_string(),
        Value::Float(number) => number.value().to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HttpPort;

    #[test]
    fn a_file_is_written_back_with_its_comments() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tamis.toml");
        let text = "# ours\nport = 7000 # not 6379\nmaxmemory = \"2gb\"\nappendonly = false\n";
        fs::write(&path, text).unwrap();
        let mut config = Config::default();
        config.read_file(&path).unwrap();
        assert_eq!((config.port, config.max_memory_bytes), (7000, 2 << 30));
        config.rewrite_file().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "nothing has changed");

        for (name, value) in [
            ("maxmemory", "3gb"),
            ("timeout", "60"),
            ("port", "7001"),
            ("requirepass", "a\"b\n# c"),
        ] {
            config.set(name, value).unwrap();
        }
        config.rewrite_file().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("# ours\nport = 7001 # not 6379\nmaxmemory = 3221225472\n"),
            "{text}"
        );
        for password in ["007", "1e5", "+7", "yes", "inf", "0.10", "a\"b\n# c"] {
            config.set("requirepass", password).unwrap();
            config.rewrite_file().unwrap();
            let mut again = Config::default();
            again.read_file(&path).unwrap();
            assert_eq!(again, config, "{password}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn addresses_stay_as_they_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tamis.toml");
        for text in ["bind = \"127.0.0.1,  localhost\"\n", "bind = [\"0:0::1\", \"-::1\"]\n"] {
            fs::write(&path, text).unwrap();
            let mut config = Config::default();
            config.read_file(&path).unwrap();
            config.rewrite_file().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            config.set("bind", "127.0.0.2").unwrap();
            config.rewrite_file().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "bind = \"127.0.0.2\"\n");
        }
    }

    #[test]
    fn a_file_gets_the_options_that_differ_from_the_defaults_of_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tamis.toml");
        for (flag, written) in
            [("auto", ""), ("no", "http-port = false\n"), ("7", "http-port = 7\n")]
        {
            fs::write(&path, "").unwrap();
            let mut config = Config { http_port: HttpPort::Auto, ..Config::default() };
            config.read_file(&path).unwrap();
            config.set("http-port", flag).unwrap();
            config.rewrite_file().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), written, "{flag}");
        }
    }

    #[test]
    fn errors_name_the_line_or_the_option() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tamis.toml");
        for (text, expected) in [
            ("port = 7000\nport = 7001\n", "line 2: "),
            ("port = \n", "line 1: "),
            ("colour = \"red\"\n", "line 1: colour: there is no option \"colour\""),
            (
                "port = 1\n\nmaxmemry = \"2gb\"\n",
                "line 3: maxmemry: there is no option \"maxmemry\"; a similar option is \"maxmemory\"",
            ),
            ("# ours\nport = 70000\n", "line 2: port: argument must be 0 to 65535"),
            ("\n[server]\nport = 1\n", "line 2: server: an option takes a text"),
            ("bind = [1]\n", "bind: an option takes a text"),
        ] {
            fs::write(&path, text).unwrap();
            let error = Config::default().read_file(&path).unwrap_err();
            assert!(error.starts_with(&path.display().to_string()), "{error}");
            assert!(error.contains(expected), "{text:?}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        assert!(Config::default().rewrite_file().is_err(), "there is no file");
        let error = Config::default().read_file(dir.path()).unwrap_err();
        assert!(!error.contains("os error"), "a folder: {error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_stays_a_link_to_the_new_content() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("real.toml"), dir.path().join("tamis.toml"));
        fs::write(&target, "port = 7000\n").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut config = Config::default();
        config.read_file(&link).unwrap();
        config.set_live("maxmemory", "3gb").unwrap();
        config.rewrite_file().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&target).unwrap().contains("maxmemory"));
    }
}
