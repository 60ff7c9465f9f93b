//! `tamis info --keys`: the keys of a snapshot of Redis.

use std::path::PathBuf;

use serde_json::{Value, json};
use tamis_formats::Rdb;

use crate::exit::{CommandResult, Exit, Failure};
use crate::io::file_bytes::{FileContent, LoadedFile};
use crate::io::input;
use crate::io::output::write_whole;
use crate::io::table::{align, plain};

/// Lists all keys of the snapshots `files`.
pub fn run(files: &[PathBuf], as_json: bool) -> CommandResult {
    let (mut list, mut text) = (Vec::new(), String::new());
    for path in files {
        let name = input::name(path);
        let bytes = match LoadedFile::read(path, false)?.content {
            FileContent::Bytes(bytes) if Rdb::is_one(&bytes) => bytes,
            _ => {
                return Err(Failure::new(format!(
                    "{name}: not a snapshot of Redis: --keys is for those (redis-cli --rdb FILE)"
                )));
            }
        };
        let failed = |error| Failure::new(format!("{name}: a snapshot of Redis: {error}"));
        let mut rows = vec![["  database", "type", "key"].map(String::from).to_vec()];
        for entry in Rdb::new(&bytes).map_err(failed)?.entries() {
            let entry = entry.map_err(failed)?;
            let key = String::from_utf8_lossy(entry.key()).into_owned();
            if as_json {
                list.push(json!({
                    "name": name,
                    "database": entry.database(),
                    "type": entry.type_name(),
                    "key": key,
                }));
            } else {
                let database = format!("  {}", entry.database());
                rows.push(vec![database, entry.type_name().to_owned(), plain(&key)]);
            }
        }
        if !as_json {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&name);
            text.push('\n');
            text.push_str(&align(&rows, &[]));
        }
    }
    if as_json {
        text = format!("{:#}\n", Value::Array(list));
    }
    write_whole(None, text.as_bytes())?;
    Ok(Exit::Yes)
}
