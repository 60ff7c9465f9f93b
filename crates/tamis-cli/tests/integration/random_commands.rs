//! Generates random commands from the syntax in the rows of the table of commands.
//!
//! In a syntax, `[...]` is optional, `|` separates alternatives, and `...` at the end of a bracket
//! repeats it. A word in capitals is literal. A word in small letters is a parameter; its name
//! selects its generator.

use std::collections::VecDeque;

use tamis_commands::{COMMANDS, Category, Command, Flag};
use tamis_resp::Reply;
use tamis_testing::Random;

/// The words of a command.
pub type Argv = Vec<Vec<u8>>;

/// A part of a syntax.
#[derive(Debug)]
enum Element {
    /// One of these literal words.
    Literal(Vec<&'static str>),
    Parameter(&'static str),
    /// One of these sequences or nothing; several of them if it repeats.
    Optional {
        alternatives: Vec<Vec<Element>>,
        repeats: bool,
    },
}

/// Reads alternatives up to a closing bracket or the end.
fn parse(tokens: &mut VecDeque<&'static str>) -> (Vec<Vec<Element>>, bool) {
    let (mut alternatives, mut repeats) = (vec![Vec::new()], false);
    while let Some(token) = tokens.pop_front() {
        let element = match token {
            "]" => break,
            "|" => {
                alternatives.push(Vec::new());
                continue;
            }
            "..." => {
                repeats = true;
                continue;
            }
            "[" => {
                let (alternatives, repeats) = parse(tokens);
                Element::Optional { alternatives, repeats }
            }
            word if word.starts_with(|c: char| c.is_ascii_lowercase()) => Element::Parameter(word),
            words => Element::Literal(words.split('|').collect()),
        };
        alternatives.last_mut().expect("there is one").push(element);
    }
    (alternatives, repeats)
}

fn parsed(syntax: &'static str) -> Vec<Vec<Element>> {
    let mut tokens = VecDeque::new();
    for mut word in syntax.split_ascii_whitespace() {
        while let Some(rest) = word.strip_prefix('[') {
            tokens.push_back("[");
            word = rest;
        }
        let bare = word.trim_end_matches(']');
        tokens.push_back(bare);
        tokens.extend((bare.len()..word.len()).map(|_| "]"));
    }
    let (alternatives, repeats) = parse(&mut tokens);
    assert!(!repeats && tokens.is_empty(), "{syntax}");
    alternatives
}

/// Calls that succeed, for rows whose options exclude each other so often that random calls rarely
/// succeed.
const CALLS: [(&str, &str); 12] = [
    // A time in the past, because a window far ahead of the clock would refuse all later times.
    ("TM.ADVANCE", "key n"),
    ("TM.MERGE", "destination source"),
    ("TM.RESERVE", "key KIND SPLIT-BLOCK ITEMS 100 RATE 0.01"),
    ("TM.RESERVE", "key KIND SPLIT-BLOCK|CLASSIC|GROWING ITEMS n RATE p"),
    ("TM.RESERVE", "key KIND SPLIT-BLOCK|CLASSIC|GROWING RATE p MEMORY bytes"),
    ("TM.RESERVE", "key KIND COUNTING ITEMS n RATE p [COUNTER bits]"),
    ("TM.RESERVE", "key KIND CUCKOO ITEMS n RATE p [BUCKET slots]"),
    ("TM.RESERVE", "key KIND WINDOW ITEMS n RATE p WINDOW millis [SLICES slots] [REFRESH]"),
    ("TM.RESERVE", "key KIND WINDOW RATE p WINDOW capacity ITEMS [SLICES slots] [REFRESH]"),
    ("TM.RESERVE", "key LIKE other"),
    ("BF.RESERVE", "key error_rate capacity [EXPANSION slots]"),
    ("CF.RESERVE", "key capacity [BUCKETSIZE slots] [MAXITERATIONS n] [EXPANSION slots]"),
];

/// Tests whether random calls are made of a row: its command changes or reads keys.
pub fn is_random(row: &Command) -> bool {
    row.may_change() || row.has(Flag::ReadOnly)
}

struct Call {
    row: &'static Command,
    alternatives: Vec<Vec<Element>>,
    /// The parsed calls of [`CALLS`].
    calls: Vec<Vec<Vec<Element>>>,
}

/// Generates commands.
pub struct Generator {
    calls: Vec<Call>,
    /// Replies of the servers that other commands take as arguments: of `DUMP`, of `TM.DUMP`, and
    /// of `*.SCANDUMP` (a chunk and its number).
    payloads: VecDeque<Vec<u8>>,
    files: VecDeque<Vec<u8>>,
    chunks: VecDeque<(i64, Vec<u8>)>,
}

/// The names of keys. Each family of commands has its own names, so most commands find a value of
/// their type.
const FAMILIES: [&[&str]; 4] = [
    &["bf:a", "bf:b", "bf:c", ""],
    &["cf:a", "cf:b", "cf:c"],
    &["tm:a", "tm:b", "tm:c", "tm:d", "tm:e"],
    &["text:a", "text:b", "text:c"],
];

/// The number of different items.
pub const ITEMS: usize = 60;

pub fn item(number: usize) -> Vec<u8> {
    if number == 0 { Vec::new() } else { format!("item:{number}").into_bytes() }
}

/// The maximum number of items of a command. Longer cuckoo inserts run in chunks, whose lengths
/// depend on the running time.
const MOST_REPEATS: usize = 12;

impl Generator {
    pub fn new() -> Self {
        let rows = COMMANDS.iter().filter(|row| is_random(row));
        let calls = rows.map(|row| Call {
            row,
            alternatives: parsed(row.syntax),
            calls: CALLS.iter().filter(|it| it.0 == row.name).map(|it| parsed(it.1)).collect(),
        });
        Self {
            calls: calls.collect(),
            payloads: VecDeque::new(),
            files: VecDeque::new(),
            chunks: VecDeque::new(),
        }
    }

    /// Generates a command that changes or reads keys. A few of the commands are invalid.
    pub fn command(&self, random: &mut Random) -> Argv {
        let call = &self.calls[random.below(self.calls.len())];
        // This is rare, so most keys have values.
        if call.row.keys.first == 0 && call.row.may_change() && !random.one_in(20) {
            return self.command(random);
        }
        let mut argv = self.of(call, random);
        if random.one_in(40) {
            let at = random.below(argv.len());
            match random.below(3) {
                0 if argv.len() > 1 => _ = argv.pop(),
                1 => argv.push(b"more".to_vec()),
                _ if at > 0 => argv[at] = random.pick(&["-1", "x", "", "0", "99999999999"]).into(),
                _ => {}
            }
        }
        argv
    }

    /// Generates a call with a number of words that its row allows. The options of some rows
    /// exclude each other.
    fn of(&self, call: &Call, random: &mut Random) -> Argv {
        loop {
            let argv = self.any_of(call, random);
            if call.row.takes(argv.len()) {
                return argv;
            }
        }
    }

    fn any_of(&self, call: &Call, random: &mut Random) -> Argv {
        let alternatives = match call.calls.len() {
            len if len > 0 && !random.one_in(4) => &call.calls[random.below(len)],
            _ => &call.alternatives,
        };
        let family = match call.row.categories {
            it if it.contains(&Category::Bloom) => 0,
            it if it.contains(&Category::Cuckoo) => 1,
            it if it.contains(&Category::Tamis) => [2, 2, 2, 0, 1][random.below(5)],
            it if it.contains(&Category::String) || it.contains(&Category::Bitmap) => 3,
            _ => random.below(FAMILIES.len()),
        };
        let mut making = Making {
            from: self,
            name: call.row.name,
            family: FAMILIES[family],
            chunk: random.below(self.chunks.len().max(1)),
            argv: vec![call.row.name.into()],
        };
        let sequence = &alternatives[random.below(alternatives.len())];
        making.sequence(sequence, random);
        making.argv
    }

    /// Keeps the parts of a reply that other commands take as arguments.
    pub fn note(&mut self, argv: &Argv, reply: &Reply) {
        fn keep<T>(all: &mut VecDeque<T>, new: T) {
            all.push_back(new);
            if all.len() > 6 {
                all.pop_front();
            }
        }
        match (&argv[0][..], reply) {
            (b"DUMP", Reply::Bulk(payload)) => keep(&mut self.payloads, payload.clone()),
            (b"TM.DUMP", Reply::Bulk(file)) => keep(&mut self.files, file.clone()),
            (b"BF.SCANDUMP" | b"CF.SCANDUMP", Reply::Array(parts)) => {
                if let [Reply::Integer(number), Reply::Bulk(chunk)] = &parts[..] {
                    keep(&mut self.chunks, (*number, chunk.clone()));
                }
            }
            _ => {}
        }
    }
}

/// A command under construction.
struct Making<'g> {
    from: &'g Generator,
    name: &'static str,
    family: &'static [&'static str],
    /// The number of a chunk and its bytes belong together.
    chunk: usize,
    argv: Argv,
}

impl Making<'_> {
    fn sequence(&mut self, elements: &[Element], random: &mut Random) {
        for element in elements {
            match element {
                Element::Literal(words) => self.argv.push(random.pick(words).into()),
                Element::Parameter(name) => {
                    let value = self.parameter(name, random);
                    let value = value.unwrap_or_else(|| panic!("no values for {name}"));
                    self.argv.push(value);
                }
                Element::Optional { alternatives, repeats } => {
                    let most = if *repeats { MOST_REPEATS } else { 1 };
                    for _ in 0..random.below(most + 1) {
                        self.sequence(&alternatives[random.below(alternatives.len())], random);
                    }
                }
            }
        }
    }

    /// Generates a value of a parameter. Returns `None` for an unknown parameter.
    fn parameter(&self, name: &str, random: &mut Random) -> Option<Vec<u8>> {
        let chunk = self.from.chunks.get(self.chunk);
        let one_of = |all: &VecDeque<Vec<u8>>, random: &mut Random| match all.len() {
            0 => Some(b"nothing yet".to_vec()),
            len => Some(all[random.below(len)].clone()),
        };
        // Expiry times are far in the future and far apart, so the exact time of a command does not
        // matter.
        let far_seconds = |random: &mut Random| 100_000 + 1000 * random.below(100_000);
        let text = |number: usize| Some(number.to_string().into_bytes());
        match name {
            "key" | "newkey" | "destkey" | "source" | "destination" | "other" => {
                let family =
                    if random.one_in(12) { FAMILIES[random.below(4)] } else { self.family };
                Some(random.pick(family).into())
            }
            "item" => Some(item(random.below(ITEMS))),
            "value" | "increment" | "decrement" | "message" => match random.below(4) {
                0 => {
                    Some(random.pick(&["", "text", "a longer text of some words", "\r\n\0"]).into())
                }
                1 => text(random.next() as usize >> random.below(64)),
                _ => text(random.below(2)),
            },
            "n" | "capacity" => match random.below(40) {
                // The value is large, so a snapshot takes a read lease on it.
                0 => text(400_000),
                1 => text(0),
                _ => {
                    let most = 1 << random.below(9);
                    text(1 + random.below(most))
                }
            },
            "error_rate" | "e" | "p" => Some(random.pick(&["0.5", "0.1", "0.01", "1e-5"]).into()),
            "slots" => text(1 + random.below(4)),
            "bits" => text([4, 8, 16][random.below(3)]),
            "bytes" => text(64 << random.below(8)),
            "millis" => text(1000 * far_seconds(random)),
            "kind" => Some(random.pick(&["classic", "growing", "cuckoo", "none"]).into()),
            "start" | "end" => text(random.below(40)),
            "offset" => match random.below(20) {
                0 => text(3_000_000),
                _ => text(random.below(300)),
            },
            "bit" => text(random.below(2)),
            "type" => Some(random.pick(&["u1", "i5", "u8", "i64", "u63", "string"]).into()),
            "seconds" => text(far_seconds(random)),
            "milliseconds" => text(1000 * far_seconds(random)),
            "unix-seconds" => text(4_102_444_800 + far_seconds(random)),
            "unix-milliseconds" => text(4_102_444_800_000 + 1000 * far_seconds(random)),
            // `EXAT` takes seconds and `PXAT` milliseconds, so a time in seconds is in the past for
            // `PXAT`.
            "time" => text([4_102_444_800, 4_102_444_800_000][random.below(2)]),
            "ttl" => text([0, 1000 * far_seconds(random)][random.below(2)]),
            "frequency" => text(random.below(200)),
            "pattern" => Some(random.pick(&["*", "bf*", "?*:a", "[ct]*"]).into()),
            "cursor" => text(0),
            "iterator" | "position" if self.name.ends_with("LOADCHUNK") => {
                text(chunk.map_or(1, |it| it.0 as usize))
            }
            "iterator" | "position" => text(random.below(2)),
            "data" if self.name.ends_with("LOADCHUNK") => {
                Some(chunk.map_or(b"nothing yet".to_vec(), |it| it.1.clone()))
            }
            "data" => one_of(&self.from.files, random),
            "payload" => one_of(&self.from.payloads, random),
            _ => None,
        }
    }
}

/// Generates each command about keys from its row. Panics if a row has a parameter without values.
pub fn make_each() {
    let generator = Generator::new();
    let mut random = Random(0);
    for call in &generator.calls {
        (0..200).for_each(|_| _ = generator.of(call, &mut random));
    }
}
