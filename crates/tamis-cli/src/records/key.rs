//! Extracts the item from a record: the whole record, a field, a column of CSV, a JSON value, or a
//! canonical URL.

use std::sync::Once;

use clap::ArgGroup;
use memchr::memmem;
use serde_json::Value;
use url::Url;

use crate::arguments::byte_size::ByteSize;
use crate::exit::Failure;
use crate::io::input::InputForm;
use crate::io::packing::Unpack;
use crate::records::csv::{CsvForm, Field, RowKey};
use crate::records::split::RecordEnd;

/// The options that choose the key. All commands that read records have the same options.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Comparison")]
#[command(group = ArgGroup::new("splitting").args(["field", "csv"]).multiple(true))]
pub struct KeyArgs {
    /// Split records at DELIM (such as ',' or '\t'); needs -k or --csv
    #[arg(short, long, value_name = "DELIM", requires = "splitting", value_parser = delimiter)]
    delimiter: Option<Delimiter>,

    /// Compare only field N, counted from 1 (fields end at tabs unless -d is given; quotes have no
    /// meaning). With --csv: the column N, a number or a name in the header
    #[arg(short = 'k', long, value_name = "N", conflicts_with = "json", value_parser = crate::records::csv::field)]
    field: Option<Field>,

    /// Read rows of CSV (RFC 4180): fields may be in quotes and contain commas and newlines. The
    /// first row of a file is its header, which is no item. -d sets a delimiter other than ','
    #[arg(long, conflicts_with_all = ["json", "null"])]
    csv: bool,

    /// With --csv: the files have no header
    #[arg(long, requires = "csv")]
    no_header: bool,

    /// Compare only the value at this pointer in records of JSON, such as /user/id
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    json: Option<String>,

    /// Compare URLs in canonical form (case of the host, default port, dots in the path; no
    /// #fragment)
    #[arg(long)]
    url: bool,

    /// Compare without regard to upper and lower case
    #[arg(short, long)]
    ignore_case: bool,

    /// Compare without the white space before and after the key
    #[arg(long)]
    trim: bool,
}

/// The bytes that separate fields. The type is a newtype, because clap would parse a `Vec<u8>` as a
/// list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Delimiter(Vec<u8>);

fn delimiter(text: &str) -> Result<Delimiter, String> {
    match text {
        "" => Err("the delimiter is empty".into()),
        "\\t" => Ok(Delimiter(b"\t".to_vec())),
        "\\0" => Ok(Delimiter(b"\0".to_vec())),
        "\\n" => Ok(Delimiter(b"\n".to_vec())),
        _ => Ok(Delimiter(text.as_bytes().to_vec())),
    }
}

/// Parses a JSON pointer for clap.
///
/// # Errors
///
/// A message with the correct syntax.
pub fn pointer(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('/') {
        Ok(text.into())
    } else {
        Err(format!("a JSON pointer starts with '/': try /{text}"))
    }
}

impl KeyArgs {
    /// Returns the rule that the options of the user select.
    pub fn rule(&self) -> KeyRule {
        KeyRule {
            url: self.url,
            ignores_case: self.ignore_case,
            trims: self.trim,
            ..self.rule_of(self.field.as_ref(), self.json.as_deref())
        }
    }

    /// Returns the rule that the options of the user select, for a comparison of keys with each
    /// other. For the returned rule, a number in JSON differs from the string of its digits.
    pub fn typed_rule(&self) -> KeyRule {
        KeyRule { is_typed: true, ..self.rule() }
    }

    /// Returns a rule for a part of the record other than the key, such as the time. The rule
    /// splits the record into fields in the same way as the rule of the key.
    pub fn rule_of(&self, field: Option<&Field>, json: Option<&str>) -> KeyRule {
        let delimiter = self.delimiter.as_ref().map(|delimiter| &delimiter.0[..]);
        let part = match (json, field) {
            (Some(pointer), _) => KeyPart::Json(pointer.to_owned()),
            (None, Some(Field::Number(number))) if !self.csv => {
                let delimiter = memmem::Finder::new(delimiter.unwrap_or(b"\t")).into_owned();
                KeyPart::Field(Box::new(delimiter), number.get())
            }
            (None, None) if !self.csv => KeyPart::Whole,
            (None, column) => KeyPart::Row(RowKey::new(delimiter.unwrap_or(b","), column.cloned())),
        };
        KeyRule { part, url: false, is_typed: false, ignores_case: false, trims: false }
    }
}

/// A rule from records to keys.
#[derive(Clone, Debug)]
pub struct KeyRule {
    part: KeyPart,
    url: bool,
    // True if a number in JSON differs from the string of its digits.
    is_typed: bool,
    ignores_case: bool,
    trims: bool,
}

#[derive(Clone, Debug)]
enum KeyPart {
    Whole,
    Field(Box<memmem::Finder<'static>>, usize),
    Row(RowKey),
    Json(String),
}

impl KeyRule {
    /// Tests whether every record is its own key, so that the caller need not call
    /// [`of`](Self::of).
    pub fn is_whole(&self) -> bool {
        matches!(self.part, KeyPart::Whole) && !self.url && !self.ignores_case && !self.trims
    }

    /// Rejects a delimiter of fields that no record can contain, and a column name without a
    /// header. `form` is the form of the records.
    ///
    /// # Errors
    ///
    /// A message that states how to correct the options.
    pub fn check(&self, form: RecordForm) -> Result<(), Failure> {
        let record_end = form.end.byte();
        match &self.part {
            KeyPart::Row(row) if matches!(form.end, RecordEnd::Csv(_)) => {
                row.check(form.end.has_header()).map_err(Failure::new)
            }
            KeyPart::Row(row) => Err(Failure::new(row.without_csv())),
            KeyPart::Field(delimiter, _) if delimiter.needle().contains(&record_end) => {
                let (name, option) =
                    if record_end == 0 { ("NUL", "leave out -0") } else { ("a newline", "add -0") };
                Err(Failure::new(format!(
                    "-d '{}': {name} ends a record, so no record has two fields: {option}, or name \
                     another delimiter",
                    delimiter.needle().escape_ascii()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Finds the column of CSV in the header of an input. The caller must call this method for each
    /// input with a header, before the records of the input.
    ///
    /// # Errors
    ///
    /// A message with the columns if the header lacks the column.
    pub fn set_header(&mut self, header: &[u8]) -> Result<(), String> {
        match &mut self.part {
            KeyPart::Row(row) => row.set_header(header),
            _ => Ok(()),
        }
    }

    /// Returns the options that change a key. Each entry has the word in the metadata of a filter,
    /// the option on the command line, and whether the option is set.
    pub fn normalizations(&self) -> [(&'static str, &'static str, bool); 3] {
        [
            ("url", "--url", self.url),
            ("trimmed", "--trim", self.trims),
            ("lower-case", "--ignore-case", self.ignores_case),
        ]
    }

    /// Returns the key of `record`. Returns `None` if the record has too few fields, is not JSON,
    /// or lacks the value, or if the key is not a URL. `scratch` is a buffer that may hold the key.
    ///
    /// The key of a JSON string is its text without quotes. The key of a number is its digits as
    /// written. The key of a value that is neither a string nor a number starts with the byte `ff`,
    /// which no text contains. After this byte, the key contains the value as compact JSON with
    /// sorted object members. Therefore, `null` differs from `"null"`. With
    /// [`typed_rule`](KeyArgs::typed_rule), the key of a number also starts with the byte `ff`.
    pub fn of<'a>(&self, record: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if !self.ignores_case && !self.trims {
            return self.part_of(record, scratch);
        }
        let mut of_part = Vec::new();
        let part = self.part_of(record, &mut of_part)?;
        scratch.clear();
        match std::str::from_utf8(part) {
            Ok(text) => {
                let text = if self.trims { text.trim() } else { text };
                match self.ignores_case {
                    true => scratch.extend_from_slice(text.to_lowercase().as_bytes()),
                    false => scratch.extend_from_slice(text.as_bytes()),
                }
            }
            Err(_) => {
                scratch.extend_from_slice(if self.trims { part.trim_ascii() } else { part });
            }
        }
        if self.ignores_case {
            // The conversion to lower case as ASCII is needed for bytes that are not UTF-8.
            scratch.make_ascii_lowercase();
        }
        Some(scratch)
    }

    fn part_of<'a>(&self, record: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let part = match &self.part {
            KeyPart::Whole => record,
            KeyPart::Field(delimiter, number) => {
                if record.first() == Some(&b'"') && delimiter.needle() == b"," {
                    tip_of_quotes();
                }
                field(record, delimiter, *number)?
            }
            KeyPart::Row(row) if self.url => {
                let mut of_row = Vec::new();
                return canonical_url(row.of(record, &mut of_row)?, scratch);
            }
            KeyPart::Row(row) => return row.of(record, scratch),
            KeyPart::Json(pointer) => {
                json(record, pointer, self.is_typed, scratch)?;
                if !self.url {
                    return Some(scratch);
                }
                // `canonical_url` reuses `scratch` for the URL, so the text is moved out first.
                let text = std::mem::take(scratch);
                return canonical_url(&text, scratch);
            }
        };
        if self.url { canonical_url(part, scratch) } else { Some(part) }
    }

    /// Returns a text that is equal for equal rules. A caller stores the text of the rule with the
    /// data that the caller built by the rule.
    pub fn describe(&self) -> String {
        let part = match &self.part {
            KeyPart::Whole => "record".into(),
            KeyPart::Field(delimiter, number) => {
                format!("field {number} by '{}'", delimiter.needle().escape_ascii())
            }
            KeyPart::Row(row) => row.describe(),
            KeyPart::Json(pointer) => format!("json {pointer}"),
        };
        let part = if self.url { format!("url of {part}") } else { part };
        let part = if self.trims { format!("trimmed {part}") } else { part };
        if self.ignores_case { format!("lower case of {part}") } else { part }
    }
}

/// Writes a note about quotes, once per run.
#[cold]
fn tip_of_quotes() {
    static NOTED: Once = Once::new();
    NOTED.call_once(|| {
        note!(
            "a line begins with a quote, which has no meaning to -k: if the input is CSV with fields \
             in quotes, replace -d, by --csv"
        );
    });
}

fn field<'a>(
    record: &'a [u8],
    delimiter: &memmem::Finder<'static>,
    number: usize,
) -> Option<&'a [u8]> {
    let mut rest = record;
    for _ in 1..number {
        rest = &rest[delimiter.find(rest)? + delimiter.needle().len()..];
    }
    Some(delimiter.find(rest).map_or(rest, |end| &rest[..end]))
}

fn json(record: &[u8], pointer: &str, is_typed: bool, scratch: &mut Vec<u8>) -> Option<()> {
    let value: Value = serde_json::from_slice(record).ok()?;
    scratch.clear();
    match value.pointer(pointer)? {
        Value::String(text) => scratch.extend_from_slice(text.as_bytes()),
        other => {
            if is_typed || !other.is_number() {
                scratch.push(0xff);
            }
            serde_json::to_writer(scratch, other).ok()?;
        }
    }
    Some(())
}

fn canonical_url<'a>(text: &[u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let mut url = Url::parse(std::str::from_utf8(text).ok()?).ok()?;
    url.set_fragment(None);
    scratch.clear();
    normalize_escapes(url.as_str().as_bytes(), scratch);
    Some(scratch)
}

/// Appends a URL with the percent-encoding of RFC 3986, section 6.2.2: unreserved characters are
/// not encoded, and hexadecimal digits are in upper case. The new URL identifies the same resource
/// as `url`.
fn normalize_escapes(url: &[u8], out: &mut Vec<u8>) {
    let mut rest = url;
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        let escape = rest.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = escape
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = &rest[at + 1..];
        match byte {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => out.push(byte),
            Some(byte) => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            None => {
                out.push(b'%');
                continue;
            }
        }
        rest = &rest[2..];
    }
    out.extend_from_slice(rest);
}

/// Returns the failure of a run in which no record has the key that `key` describes.
pub fn no_key(key: &str) -> Failure {
    let advice = if key.contains("json ") {
        "check the pointer; each line must be one JSON value: 'jq -c .' writes each value of \
         pretty-printed JSON to one line, and 'jq -c .[]' each element of an array"
    } else if key.contains("column ") {
        "check the column and the delimiter -d; rows with fewer fields have no key"
    } else if key.contains("field ") {
        "check the number of the field and the delimiter -d"
    } else {
        "each line must be a whole URL, such as https://example.org/"
    };
    Failure::new(format!("no line has the key ({key}): {advice}"))
}

/// The options that choose how records are read. All commands that read records have the same
/// options.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct RecordArgs {
    /// Read records that end with NUL instead of newline (as from 'find -print0')
    #[arg(short = '0', long)]
    null: bool,

    /// How to decompress the inputs: auto, no, gzip, zstd, xz or bzip2 [default: auto, by their
    /// first bytes; no with -0]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    unpack: Option<Unpack>,
}

/// How the inputs of a command are read and split into records.
#[derive(Clone, Copy, Debug)]
pub struct RecordForm {
    /// The form in which the bytes are read.
    pub input: InputForm,
    /// The rule that determines where records end.
    pub end: RecordEnd,
}

impl RecordForm {
    /// Returns the form for a command whose memory is limited.
    #[must_use]
    pub fn within(self, memory: Option<ByteSize>) -> Self {
        match (self.end, memory) {
            (RecordEnd::Csv(form), Some(memory)) => {
                Self { end: RecordEnd::Csv(form.within(memory.bytes)), ..self }
            }
            _ => self,
        }
    }
}

impl RecordArgs {
    /// Returns the form of inputs whose records are lines, or end with NUL.
    pub fn lines(self) -> RecordForm {
        let input = InputForm { unpack: self.unpack, is_text: !self.null };
        RecordForm { input, end: RecordEnd::Byte(if self.null { 0 } else { b'\n' }) }
    }

    /// Returns the form of the inputs. The inputs are CSV if `key` contains `--csv`.
    pub fn form(self, key: &KeyArgs) -> RecordForm {
        let lines = self.lines();
        if !key.csv {
            return lines;
        }
        // `KeyRule::check` rejects a delimiter of several bytes.
        let delimiter = key.delimiter.as_ref().map_or(b',', |delimiter| delimiter.0[0]);
        RecordForm { end: RecordEnd::Csv(CsvForm::new(delimiter, !key.no_header)), ..lines }
    }
}

/// Parses a rate for clap: a probability between 0 and 1, both excluded, or a percentage with a
/// percent sign.
///
/// # Errors
///
/// A message with the correct syntax.
pub fn rate(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    match number.parse::<f64>().map(|rate| rate / unit) {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err(format!(
            "'{text}' is not a rate: write a probability between 0 and 1, such as 0.01, 1% or 1e-6"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    fn key(args: &KeyArgs, record: &str) -> Option<String> {
        let mut scratch = Vec::new();
        let key = args.rule().of(record.as_bytes(), &mut scratch).map(<[u8]>::to_vec);
        key.map(|key| String::from_utf8_lossy(&key).replace('\u{fffd}', "ff "))
    }

    fn by_field(delimiter: &str, number: usize) -> KeyArgs {
        let delimiter = Some(super::delimiter(delimiter).unwrap());
        KeyArgs {
            delimiter,
            field: Some(Field::Number(NonZeroUsize::new(number).unwrap())),
            ..KeyArgs::default()
        }
    }

    #[test]
    fn fields_are_counted_from_one() {
        assert_eq!(key(&by_field(",", 1), "a,b,c").as_deref(), Some("a"));
        assert_eq!(key(&by_field(",", 3), "a,b,c\r").as_deref(), Some("c\r"));
        assert_eq!(key(&by_field("\\t", 2), "a\t\tc").as_deref(), Some(""));
        assert_eq!(key(&by_field("::", 2), "a::b").as_deref(), Some("b"));
        assert_eq!(key(&by_field(",", 4), "a,b,c"), None);
    }

    #[test]
    fn json_values_are_keys_as_text() {
        let by = |pointer: &str| KeyArgs { json: Some(pointer.into()), ..KeyArgs::default() };
        let record =
            r#"{"id": "x\u0041", "n": 123456789012345678901234567890, "o": {"b": 1, "a": []}}"#;
        assert_eq!(key(&by("/id"), record).as_deref(), Some("xA"));
        assert_eq!(key(&by("/n"), record).as_deref(), Some("123456789012345678901234567890"));
        assert_eq!(key(&by("/o"), record).as_deref(), Some(r#"ff {"a":[],"b":1}"#));
        assert_eq!(key(&by("/missing"), record), None);
        assert_eq!(key(&by("/id"), "not json"), None);
        assert_eq!(key(&by(""), "[1, 2]").as_deref(), Some("ff [1,2]"));
        for (one, other) in [("null", r#""null""#), ("true", r#""true""#), ("[]", r#""[]""#)] {
            assert_ne!(key(&by(""), one), key(&by(""), other));
        }
        assert_eq!(key(&by(""), "7"), key(&by(""), r#""7""#), "items of a filter are text");
        let typed = |record: &str| {
            let mut scratch = Vec::new();
            by("").typed_rule().of(record.as_bytes(), &mut scratch).map(<[u8]>::to_vec)
        };
        assert_ne!(typed("7"), typed(r#""7""#));
        assert_eq!(typed(r#""7""#), typed(r#""\u0037""#));
        assert!(pointer("id").is_err());
    }

    #[test]
    fn urls_are_compared_in_canonical_form() {
        let url = KeyArgs { url: true, ..KeyArgs::default() };
        let expected = Some("http://example.org/b?q=1");
        let record = "HTTP://EXAMPLE.org:80/a/../b?q=1#top";
        assert_eq!(key(&url, record).as_deref(), expected);
        let record = "http://example.org/%7ea%41%2f%2F%c3%a4%zz%2?q=%5F";
        let expected_escapes = "http://example.org/~aA%2F%2F%C3%A4%zz%2?q=_";
        assert_eq!(key(&url, record).as_deref(), Some(expected_escapes));
        assert_eq!(key(&url, "no url"), None);
        let both = KeyArgs { json: Some("/u".into()), url: true, ..KeyArgs::default() };
        let record = r#"{"u": "HTTP://EXAMPLE.org:80/b?q=1"}"#;
        assert_eq!(key(&both, record).as_deref(), expected);
    }

    #[test]
    fn keys_without_case_and_white_space() {
        let of = |rule: KeyRule, record: &str| {
            let mut scratch = Vec::new();
            rule.of(record.as_bytes(), &mut scratch).map(<[u8]>::to_vec)
        };
        let by = |ignore_case, trim| KeyArgs { ignore_case, trim, ..by_field(",", 2) }.rule();
        let text = "1, \u{c4}B\t,x";
        assert_eq!(of(by(false, true), text).unwrap(), "\u{c4}B".as_bytes());
        assert_eq!(of(by(true, true), text).unwrap(), "\u{e4}b".as_bytes());
        assert_eq!(of(by(true, false), text).unwrap(), " \u{e4}b\t".as_bytes());
        assert_eq!(of(by(true, true), "1"), None);
        // The ideographic space and the no-break space are white space, too.
        assert_eq!(of(by(false, true), "1,\u{3000}七\u{a0}").unwrap(), "七".as_bytes());
        assert_eq!(of(by(false, true), "1,\u{3000}").unwrap(), b"");
        let whole = KeyArgs { ignore_case: true, ..KeyArgs::default() }.rule();
        assert!(!whole.is_whole() && whole.describe() == "lower case of record");
        let mut scratch = Vec::new();
        assert_eq!(whole.of(b"A\xffB", &mut scratch), Some(&b"a\xffb"[..]));
    }

    #[test]
    fn a_delimiter_that_ends_records_is_refused() {
        let lines = RecordArgs::default().lines();
        let with_nul = RecordArgs { null: true, ..RecordArgs::default() }.lines();
        assert!(by_field("\\n", 2).rule().check(lines).is_err());
        assert!(by_field("a\n", 2).rule().check(lines).is_err());
        assert!(by_field("\\n", 2).rule().check(with_nul).is_ok());
        assert!(by_field("\\0", 2).rule().check(with_nul).is_err());
        assert!(KeyArgs::default().rule().check(lines).is_ok());
    }

    #[test]
    fn equal_rules_are_described_alike() {
        assert_eq!(by_field(",", 2).rule().describe(), "field 2 by ','");
        assert_eq!(by_field("\\t", 2).rule().describe(), "field 2 by '\\t'");
        assert_eq!(KeyArgs::default().rule().describe(), "record");
        assert!(KeyArgs::default().rule().is_whole());
    }

    #[test]
    fn rates_are_probabilities_or_percentages() {
        assert_eq!(rate("1e-6"), Ok(1e-6));
        assert_eq!([rate("1%"), rate("0.5 %")], [Ok(0.01), Ok(0.005)]);
        for text in ["0", "1", "-0.1", "nan", "100%", "%", ""] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
