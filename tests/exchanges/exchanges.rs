//! Reads the exchange lists and writes replies as they do. Included by the tests that run them.

use tamis_resp::{Protocol, Reply};

/// A keyspace's worth of exchanges.
#[derive(Default)]
pub struct Scene {
    /// Settings changed before, here or further up: name and value.
    pub settings: Vec<(String, String)>,
    pub exchanges: Vec<Exchange>,
}

pub struct Exchange {
    /// Line in the list.
    pub line: usize,
    pub words: Vec<Vec<u8>>,
    resp2: String,
    resp3: String,
}

impl Exchange {
    /// Returns the reply that the list has.
    pub fn expected(&self, protocol: Protocol) -> &str {
        match protocol {
            Protocol::Resp2 => &self.resp2,
            Protocol::Resp3 => &self.resp3,
        }
    }
}

/// Reads a list.
pub fn scenes(list: &str) -> Vec<Scene> {
    let mut scenes = vec![Scene::default()];
    let mut lines = list.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let scene = scenes.last_mut().expect("never empty");
        if line.is_empty() {
            let settings = scene.settings.clone();
            scenes.push(Scene { settings, exchanges: Vec::new() });
        } else if let Some(setting) = line.strip_prefix("# config ") {
            let (name, value) = setting.split_once(' ').expect("a name and a value");
            scene.settings.push((name.to_owned(), value.to_owned()));
        } else if let Some(command) = line.strip_prefix("> ") {
            let (_, reply) = lines.next().unwrap_or_else(|| panic!("line {number}: no reply"));
            let (resp2, resp3) = reply.split_once(" | ").unwrap_or((reply, reply));
            scene.exchanges.push(Exchange {
                line: number + 1,
                words: words(command),
                resp2: resp2.to_owned(),
                resp3: resp3.to_owned(),
            });
        } else {
            assert!(line.starts_with('#'), "line {}: what is this?", number + 1);
        }
    }
    scenes
}

fn words(line: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (word, behind) = unquote(quoted);
            words.push(word);
            rest = behind.strip_prefix(' ').unwrap_or(behind);
        } else {
            let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
            words.push(word.as_bytes().to_vec());
            rest = behind;
        }
    }
    words
}

/// Reads up to the closing quote.
fn unquote(text: &str) -> (Vec<u8>, &str) {
    let mut word = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (word, &text[at + 1..]),
            '\\' => match chars.next().expect("an escape").1 {
                'r' => word.push(b'\r'),
                'n' => word.push(b'\n'),
                'x' => {
                    let hex: String = chars.by_ref().take(2).map(|(_, c)| c).collect();
                    word.push(u8::from_str_radix(&hex, 16).expect("two hex digits"));
                }
                c => word.extend(c.to_string().bytes()),
            },
            c => word.extend(c.to_string().bytes()),
        }
    }
    panic!("no closing quote: {text}");
}

/// Writes a reply as it came over the wire, in the lists' form.
pub fn shown(reply: &Reply) -> String {
    let list = |replies: &[Reply]| replies.iter().map(shown).collect::<Vec<_>>().join(", ");
    match reply {
        Reply::Simple(text) => format!("+{text}"),
        Reply::Error(text) => format!("-{text}"),
        Reply::Integer(number) => format!(":{number}"),
        Reply::Double(number) => format!(",{number}"),
        Reply::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Reply::Null | Reply::NullArray => "nil".to_owned(),
        Reply::Bool(yes) => if *yes { "#t" } else { "#f" }.to_owned(),
        Reply::Array(replies) => format!("[{}]", list(replies)),
        Reply::Set(replies) => format!("~[{}]", list(replies)),
        Reply::Map(pairs) => {
            let pairs =
                pairs.iter().map(|(name, value)| format!("{}: {}", shown(name), shown(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => panic!("no form for {other:?}"),
    }
}
