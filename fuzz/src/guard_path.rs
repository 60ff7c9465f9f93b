//! Tests that a path template is an error or has one text, and that its match has a value for each name. Also tests that
//! an exempt route matches no path that the tolerant comparison of a checking route does not match.

use tamis_guard::{PathTemplate, Route};

/// The first line of the input is the template, and the rest is the path.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (template, path) = text.split_once('\n').unwrap_or((text, "/"));
    let template: PathTemplate = match template.parse() {
        Ok(template) => template,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "an error is one line");
            return;
        }
    };
    assert_eq!(template.to_string().parse(), Ok(template.clone()), "a template has one text");
    let values = template.values(path);
    if let Some(values) = &values {
        assert_eq!(values.len(), template.names().count(), "each name has a value");
    }
    let exempt = Route::exempt(template).expect("the template is valid");
    assert!(!exempt.matches_path(path) || values.is_some(), "an exact match is a match");
}
