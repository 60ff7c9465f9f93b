//! Decodes the body of `POST /ids/NAME`.

use serde_json::{Value, json};
use tamis_sources::PushSource;

/// Inserts and deletes the ids in a body. The body contains one id per line to insert, or the JSON object
/// `{"insert":[1,2],"delete":["3"]}`. The function applies deletions before insertions.
pub(super) fn apply(source: &PushSource, token: &[u8], body: &[u8]) -> Result<Value, String> {
    let is_json = body.trim_ascii_start().starts_with(b"{");
    let (insert, delete) = if is_json {
        let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let Value::Object(fields) = &value else { return Err("write an object".to_owned()) };
        if let Some(name) = fields.keys().find(|name| !["insert", "delete"].contains(&&***name)) {
            return Err(format!("unknown field {name:?}; there are insert and delete"));
        }
        (texts(&value["insert"])?, texts(&value["delete"])?)
    } else {
        let text = std::str::from_utf8(body).map_err(|_| "the ids are not in UTF-8".to_owned())?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        (lines.map(str::to_owned).collect(), Vec::new())
    };
    let deleted = source.delete(token, delete).map_err(|error| error.to_string())?;
    let inserted = source.insert(token, insert).map_err(|error| error.to_string())?;
    let invalid = inserted.invalid + deleted.invalid;
    Ok(json!({ "inserted": inserted.ids, "deleted": deleted.ids, "invalid": invalid }))
}

/// Returns the ids in a JSON list.
fn texts(value: &Value) -> Result<Vec<String>, String> {
    let wrong = || "insert and delete are lists of texts and integers".to_owned();
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(values) => values
            .iter()
            .map(|value| match value {
                Value::String(text) => Ok(text.clone()),
                Value::Number(number) => Ok(number.to_string()),
                _ => Err(wrong()),
            })
            .collect(),
        _ => Err(wrong()),
    }
}
