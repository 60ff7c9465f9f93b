//! Compares the bitmap commands with a simple model: a vector of bits that is read one by one.

use proptest::prelude::*;
use tamis_commands::{BitOp, Env, Handler, Settings, Value, find};
use tamis_resp::{Protocol, Reply};

/// A string as its bits.
#[derive(Clone, Debug, Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn of(bytes: &[u8]) -> Self {
        Self(bytes.iter().flat_map(|byte| (0..8).map(move |i| byte >> (7 - i) & 1 == 1)).collect())
    }

    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        self.0.chunks(8).map(byte).collect()
    }

    fn grow(&mut self, bits: usize) {
        let len = self.0.len().max(bits.next_multiple_of(8));
        self.0.resize(len, false);
    }

    fn get(&self, at: usize) -> bool {
        self.0.get(at).copied().unwrap_or(false)
    }

    /// Returns the positions from `start` to `end`, both included, below `len`.
    fn places(start: i64, end: i64, len: usize) -> Vec<usize> {
        let len = len as i64;
        let place = |at: i64| if at < 0 { (at + len).max(0) } else { at };
        (place(start)..=place(end)).filter(|at| *at < len).map(|at| at as usize).collect()
    }

    /// The bits of a range.
    fn range(&self, start: i64, end: i64, in_bits: bool) -> Vec<usize> {
        if in_bits {
            return Self::places(start, end, self.0.len());
        }
        let bytes = Self::places(start, end, self.0.len() / 8);
        bytes.into_iter().flat_map(|byte| byte * 8..byte * 8 + 8).collect()
    }

    fn number(&self, at: usize, bits: usize, is_signed: bool) -> i128 {
        let number = (at..at + bits).fold(0, |n, at| n << 1 | i128::from(self.get(at)));
        if is_signed && self.get(at) { number - (1 << bits) } else { number }
    }

    fn set_number(&mut self, at: usize, bits: usize, number: i128) {
        for i in 0..bits {
            self.0[at + i] = number >> (bits - 1 - i) & 1 == 1;
        }
    }
}

/// A command with random arguments.
#[derive(Clone, Debug)]
enum Step {
    SetBit(usize, bool),
    GetBit(usize),
    Count(i64, i64, bool),
    Position(bool, i64, Option<(i64, bool)>),
    GetRange(i64, i64),
    SetRange(usize, Vec<u8>),
    Field(Field),
    Combine(usize, Vec<u8>),
}

/// The arguments of `BITFIELD`.
#[derive(Clone, Debug)]
struct Field {
    add: bool,
    is_signed: bool,
    bits: usize,
    at: usize,
    number: i64,
    rule: usize,
}

/// The length of the string: two pages and a part of a third.
const BYTES: usize = 9000;

fn place(unit: i64) -> impl Strategy<Value = i64> {
    prop_oneof![
        -30..30i64,
        -unit..unit,
        (4090..4100i64).prop_map(move |at| at * (unit / BYTES as i64))
    ]
}

fn offset() -> impl Strategy<Value = usize> {
    prop_oneof![0..100usize, 0..8 * BYTES, 8 * 4090..8 * 4100usize]
}

fn string() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        (prop_oneof![Just(0), Just(0xff), any::<u8>()], prop_oneof![0..40usize, 0..BYTES])
            .prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let range = || {
        prop_oneof![
            (place(BYTES as i64), place(BYTES as i64)).prop_map(|(start, end)| (start, end, false)),
            (place(8 * BYTES as i64), place(8 * BYTES as i64))
                .prop_map(|(start, end)| (start, end, true)),
        ]
    };
    prop_oneof![
        (offset(), any::<bool>()).prop_map(|(at, bit)| Step::SetBit(at, bit)),
        offset().prop_map(Step::GetBit),
        range().prop_map(|(start, end, in_bits)| Step::Count(start, end, in_bits)),
        (any::<bool>(), range(), any::<bool>()).prop_map(
            |(bit, (start, end, in_bits), has_end)| {
                Step::Position(bit, start, has_end.then_some((end, in_bits)))
            }
        ),
        (place(BYTES as i64), place(BYTES as i64))
            .prop_map(|(start, end)| Step::GetRange(start, end)),
        (offset(), string()).prop_map(|(at, bytes)| Step::SetRange(at / 8, bytes)),
        (any::<[bool; 2]>(), 1..=64usize, offset(), number(), 0..3usize).prop_map(
            |([add, is_signed], bits, at, number, rule)| {
                let bits = if is_signed { bits } else { bits.min(63) };
                Step::Field(Field { add, is_signed, bits, at, number, rule })
            }
        ),
        (0..4usize, string()).prop_map(|(kind, bytes)| Step::Combine(kind, bytes)),
    ]
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![-300..300i64, any::<i64>(), Just(i64::MAX), Just(i64::MIN)]
}

const RULES: [&str; 3] = ["WRAP", "SAT", "FAIL"];
const OPERATIONS: [&str; 4] = ["AND", "OR", "XOR", "NOT"];

/// Runs a command, its words separated by spaces.
fn run(value: &mut Option<Value>, line: &str) -> Reply {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    run_words(value, &words)
}

fn run_words(value: &mut Option<Value>, words: &[&[u8]]) -> Reply {
    let settings = Settings::default();
    let env = Env::new(&settings, Protocol::Resp3, 0);
    match find(words[0]).unwrap().handler {
        Handler::Key(handler) => handler.run(value, words, &env).reply,
        _ => panic!("it needs a host"),
    }
}

/// Runs a command on the string and on the model. Returns both replies.
fn both(value: &mut Option<Value>, bits: &mut Option<Bits>, step: &Step) -> (Reply, Reply) {
    let known = bits.clone().unwrap_or_default();
    let unit = |in_bits: bool| if in_bits { "BIT" } else { "BYTE" };
    match step {
        Step::SetBit(at, bit) => {
            let bits = bits.get_or_insert_default();
            bits.grow(at + 1);
            bits.0[*at] = *bit;
            let reply = run(value, &format!("SETBIT k {at} {}", u8::from(*bit)));
            (reply, Reply::Integer(i64::from(known.get(*at))))
        }
        Step::GetBit(at) => {
            (run(value, &format!("GETBIT k {at}")), Reply::Integer(i64::from(known.get(*at))))
        }
        Step::Count(start, end, in_bits) => {
            let is_backwards = *start < 0 && *end < 0 && start > end;
            let range = if is_backwards { vec![] } else { known.range(*start, *end, *in_bits) };
            let ones = range.into_iter().filter(|at| known.0[*at]).count();
            let line = format!("BITCOUNT k {start} {end} {}", unit(*in_bits));
            (run(value, &line), Reply::Integer(ones as i64))
        }
        Step::Position(bit, start, end) => {
            let to =
                end.map_or(String::new(), |(end, in_bits)| format!(" {end} {}", unit(in_bits)));
            let (last, in_bits) = end.unwrap_or((-1, false));
            let range = known.range(*start, last, in_bits);
            let found = match range.iter().find(|at| known.0[**at] == *bit) {
                _ if bits.is_none() => i64::from(*bit).wrapping_neg(),
                Some(at) => *at as i64,
                None if !bit && end.is_none() && !range.is_empty() => known.0.len() as i64,
                None => -1,
            };
            let line = format!("BITPOS k {} {start}{to}", u8::from(*bit));
            (run(value, &line), Reply::Integer(found))
        }
        Step::GetRange(start, end) => {
            let is_backwards = *start < 0 && *end < 0 && start > end;
            let bytes = known.bytes();
            let places = Bits::places(*start, *end, bytes.len());
            let places = if is_backwards { vec![] } else { places };
            let part = places.into_iter().map(|at| bytes[at]).collect();
            (run(value, &format!("GETRANGE k {start} {end}")), Reply::Bulk(part))
        }
        Step::SetRange(at, part) => {
            let reply = run_words(value, &[b"SETRANGE", b"k", at.to_string().as_bytes(), part]);
            let mut bytes = known.bytes();
            if !part.is_empty() {
                bytes.resize(bytes.len().max(at + part.len()), 0);
                bytes[*at..][..part.len()].copy_from_slice(part);
                *bits = Some(Bits::of(&bytes));
            }
            (reply, Reply::Integer(bytes.len() as i64))
        }
        Step::Field(field) => field.both(value, bits.get_or_insert_default()),
        Step::Combine(kind, other) => {
            let name = OPERATIONS[*kind];
            let (len, combined) = combine(value, &known, name, other);
            let expected = combined.0.len() / 8;
            *bits = (expected > 0).then_some(combined);
            (Reply::Integer(len as i64), Reply::Integer(expected as i64))
        }
    }
}

impl Field {
    /// Reads and writes a number of `BITFIELD`, in the string and in the model.
    fn both(&self, value: &mut Option<Value>, bits: &mut Bits) -> (Reply, Reply) {
        let &Self { add, is_signed, bits: width, at, number, rule } = self;
        let verb = if add { "INCRBY" } else { "SET" };
        let field = format!("{}{width} {at}", if is_signed { "i" } else { "u" });
        let rule = RULES[rule];
        let line = format!("BITFIELD k GET {field} OVERFLOW {rule} {verb} {field} {number}");
        let reply = run(value, &line);
        let read = run(value, &format!("BITFIELD_RO k GET {field}"));
        let before = bits.number(at, width, is_signed);
        bits.grow(at + width);
        let wanted = match (add, is_signed) {
            (true, _) => before + i128::from(number),
            (false, true) => i128::from(number),
            (false, false) => i128::from(number as u64),
        };
        let (least, most) = match is_signed {
            true => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
            false => (0, (1i128 << width) - 1),
        };
        let written = match rule {
            "SAT" => Some(wanted.clamp(least, most)),
            "FAIL" => Some(wanted).filter(|it| (least..=most).contains(it)),
            _ => Some(wanted),
        };
        if let Some(written) = written {
            bits.set_number(at, width, written);
        }
        let after = bits.number(at, width, is_signed);
        assert_eq!(read, Reply::Array(vec![Reply::Integer(after as i64)]));
        let answer = if add { after } else { before } as i64;
        let answer = written.map_or(Reply::Null, |_| Reply::Integer(answer));
        (reply, Reply::Array(vec![Reply::Integer(before as i64), answer]))
    }
}

/// Combines the string with another one. Returns the new length of the string, and the model.
fn combine(value: &mut Option<Value>, known: &Bits, name: &str, other: &[u8]) -> (usize, Bits) {
    let words = [b"BITOP", name.as_bytes(), b"to", b"k", b"other"];
    let is_not = name == "NOT";
    let mut operation = BitOp::new(&words[..if is_not { 4 } else { 5 }]).unwrap();
    operation.take(value.as_ref()).unwrap();
    if !is_not {
        operation.take(Some(&Value::Bytes(other.to_vec().into()))).unwrap();
    }
    let other = Bits::of(if is_not { &[] } else { other });
    let one = |at: usize| match name {
        "AND" => known.get(at) && other.get(at),
        "OR" => known.get(at) || other.get(at),
        "XOR" => known.get(at) != other.get(at),
        _ => !known.get(at),
    };
    let combined = (0..known.0.len().max(other.0.len())).map(one).collect();
    let (result, len) = operation.finish();
    *value = result;
    (len, Bits(combined))
}

proptest! {
    #[test]
    fn bitmaps_answer_as_bits_do(
        first in prop::option::of(string()),
        steps in prop::collection::vec(step(), 1..12),
    ) {
        let mut value = first.clone().map(|bytes| Value::Bytes(bytes.into()));
        let mut bits = first.as_deref().map(Bits::of);
        for step in steps {
            let (reply, expected) = both(&mut value, &mut bits, &step);
            prop_assert_eq!(reply, expected, "{:?}", step);
            let bytes = bits.as_ref().map(Bits::bytes);
            let len = bytes.as_ref().map_or(0, Vec::len) as i64;
            prop_assert_eq!(run(&mut value, "STRLEN k"), Reply::Integer(len));
            let whole = bytes.map_or(Reply::Null, Reply::Bulk);
            prop_assert!(run(&mut value, "GET k") == whole, "{:?}", step);
        }
    }
}

#[test]
fn one_bit_at_a_large_offset_takes_little_memory() {
    let mut value = None;
    assert_eq!(run(&mut value, "SETBIT k 4294967295 1"), Reply::Integer(0));
    assert_eq!(run(&mut value, "STRLEN k"), Reply::Integer(512 << 20));
    let memory = value.as_ref().unwrap().memory_bytes();
    assert!(memory < 1 << 21, "{memory}");

    // The result of `BITOP` takes little memory too.
    let words: [&[u8]; 5] = [b"BITOP", b"XOR", b"to", b"k", b"k2"];
    let mut operation = BitOp::new(&words).unwrap();
    operation.take(value.as_ref()).unwrap();
    operation.take(None).unwrap();
    let (result, len) = operation.finish();
    assert_eq!((result.unwrap().memory_bytes(), len), (memory, 512 << 20));
}
