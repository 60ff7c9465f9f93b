//! Implements `BITFIELD`: reads and writes integers of any width at any bit offset.
//!
//! Two results differ from Redis 7.0, because the arithmetic of Redis overflows. First, if a number
//! is near the 64-bit minimum, a saturating `SET` stores the minimum of a signed field, not the
//! maximum. Second, the command rejects an offset after `#` if the multiplied offset does not fit
//! 64 bits.

use tamis_resp::Reply;

use crate::bitmap::bit::{in_string, parse_offset};
use crate::command::argv::{Argv, is, parse_integer};
use crate::command::run::{Env, Outcome, Written, error};
use crate::text::{self, Text};
use crate::value::sparse_bytes::SparseBytes;
use crate::value::{Value, bytes, bytes_or_new};

/// Runs `BITFIELD key [GET type offset | [OVERFLOW WRAP | SAT | FAIL] SET type offset value |
/// INCRBY type offset n ...]`.
pub(crate) fn bitfield(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Written {
    let steps = parse(&argv[2..])?;
    let Some(end) = steps.iter().filter(|it| it.writes()).map(|it| it.field.end()).max() else {
        return Ok(Outcome::unchanged(read(value.as_ref(), &steps)));
    };
    let bytes = bytes_or_new(value)?;
    // Grow the string even if a number overflows and is not written.
    bytes.grow(end);
    let replies = steps.iter().map(|step| step.run(bytes).map_or(Reply::Null, Reply::Integer));
    Ok(Outcome::changed(Reply::Array(replies.collect())))
}

/// Runs `BITFIELD_RO key [GET type offset ...]`.
pub(crate) fn bitfield_read_only(value: Option<&Value>, argv: Argv<'_>, _: &Env<'_>) -> Reply {
    match parse(&argv[2..]) {
        Err(text) => error(text),
        Ok(steps) if steps.iter().any(Step::writes) => error(text::bitmap::READ_ONLY),
        Ok(steps) => read(value, &steps),
    }
}

fn read(value: Option<&Value>, steps: &[Step]) -> Reply {
    let empty = SparseBytes::default();
    match bytes(value) {
        Err(text) => error(text),
        Ok(bytes) => {
            let get = |step: &Step| Reply::Integer(step.field.get(bytes.unwrap_or(&empty)) as i64);
            Reply::Array(steps.iter().map(get).collect())
        }
    }
}

/// An integer in a bitmap.
#[derive(Clone, Copy, Debug)]
struct Field {
    is_signed: bool,
    /// The width in bits: 1 to 64 if signed, 1 to 63 if unsigned.
    bits: u32,
    /// The offset of the first bit of the field, which is the highest bit.
    at: u64,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    field: Field,
    action: FieldOp,
    overflow: Overflow,
}

#[derive(Clone, Copy, Debug)]
enum FieldOp {
    Get,
    Set(i64),
    Add(i64),
}

/// The overflow rule for a number that does not fit the field.
#[derive(Clone, Copy, Debug)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

fn parse(argv: Argv<'_>) -> Result<Vec<Step>, Text> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut rest = argv;
    while let [name, behind @ ..] = rest {
        if let ([rule, behind @ ..], true) = (behind, is(name, "OVERFLOW")) {
            overflow = Overflow::parse(rule)?;
            rest = behind;
            continue;
        }
        let is_get = is(name, "GET");
        let (field, number, behind) = match behind {
            [kind, offset, behind @ ..] if is_get => (Field::parse(kind, offset)?, 0, behind),
            [kind, offset, number, behind @ ..] if is(name, "SET") || is(name, "INCRBY") => {
                let field = Field::parse(kind, offset)?;
                (field, parse_integer(number).ok_or(text::NO_INTEGER)?, behind)
            }
            _ => return Err(text::SYNTAX),
        };
        let action = match name {
            _ if is_get => FieldOp::Get,
            _ if is(name, "SET") => FieldOp::Set(number),
            _ => FieldOp::Add(number),
        };
        steps.push(Step { field, action, overflow });
        rest = behind;
    }
    Ok(steps)
}

impl Overflow {
    fn parse(word: &[u8]) -> Result<Self, Text> {
        match word {
            _ if is(word, "WRAP") => Ok(Overflow::Wrap),
            _ if is(word, "SAT") => Ok(Overflow::Saturate),
            _ if is(word, "FAIL") => Ok(Overflow::Fail),
            _ => Err(text::bitmap::OVERFLOW_RULE),
        }
    }
}

impl Step {
    fn writes(&self) -> bool {
        !matches!(self.action, FieldOp::Get)
    }

    /// Runs the step and returns the result; `None` if the number overflows and the rule is `FAIL`.
    fn run(&self, bytes: &mut SparseBytes) -> Option<i64> {
        let before = self.field.get(bytes);
        let (wanted, is_set) = match self.action {
            FieldOp::Get => return Some(before as i64),
            FieldOp::Set(number) => (self.field.unsign(number), true),
            FieldOp::Add(number) => (before + i128::from(number), false),
        };
        let after = self.field.fit(wanted, self.overflow)?;
        self.field.set(bytes, after);
        Some(if is_set { before } else { after } as i64)
    }
}

impl Field {
    /// Parses a type, such as `u8` or `i16`, and an offset. The offset counts bits, or fields if
    /// the offset starts with `#`.
    fn parse(kind: &[u8], offset: &[u8]) -> Result<Self, Text> {
        let (is_signed, most) = match kind.first() {
            Some(b'i') => (true, 64),
            Some(b'u') => (false, 63),
            _ => return Err(text::bitmap::FIELD_TYPE),
        };
        let bits = parse_integer(&kind[1..])
            .and_then(|bits| u32::try_from(bits).ok())
            .filter(|bits| (1..=most).contains(bits))
            .ok_or(text::bitmap::FIELD_TYPE)?;
        let at = match offset.strip_prefix(b"#") {
            None => parse_offset(offset)?,
            Some(number) => parse_integer(number)
                .and_then(|number| u64::try_from(number).ok()?.checked_mul(u64::from(bits)))
                .and_then(in_string)
                .ok_or(text::bitmap::BIT_OFFSET)?,
        };
        Ok(Self { is_signed, bits, at })
    }

    /// Returns the length of the shortest string that contains the field, in bytes.
    fn end(self) -> usize {
        (self.at + u64::from(self.bits)).div_ceil(8) as usize
    }

    /// Returns the number of bits after the field in a group of 16 bytes. The group starts with the
    /// first byte of the field.
    fn shift(self) -> u32 {
        128 - (self.at % 8) as u32 - self.bits
    }

    fn window(self, bytes: &SparseBytes) -> u128 {
        let start = (self.at / 8) as usize;
        let mut window = [0; 16];
        bytes.read(start, &mut window[..self.end() - start]);
        u128::from_be_bytes(window)
    }

    fn get(self, bytes: &SparseBytes) -> i128 {
        self.wrap((self.window(bytes) >> self.shift()) as i128)
    }

    fn set(self, bytes: &mut SparseBytes, number: i128) {
        let mask = (1 << self.bits) - 1;
        let others = self.window(bytes) & !(mask << self.shift());
        let window = others | (number as u128 & mask) << self.shift();
        let start = (self.at / 8) as usize;
        bytes.write(start, &window.to_be_bytes()[..self.end() - start]);
    }

    /// Converts the argument of `SET` to the type of the field. For an unsigned field, a negative
    /// number becomes a very large number.
    fn unsign(self, number: i64) -> i128 {
        if self.is_signed { i128::from(number) } else { i128::from(number as u64) }
    }

    /// Returns the low bits of a number, as many as the field has.
    fn wrap(self, number: i128) -> i128 {
        let spare = 128 - self.bits;
        if self.is_signed {
            number << spare >> spare
        } else {
            ((number as u128) << spare >> spare) as i128
        }
    }

    /// Converts a number to the range of the field by the overflow rule. Returns `None` if the rule is `FAIL` and the
    /// number does not fit the field.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i128> {
        let wrapped = self.wrap(number);
        if wrapped == number {
            return Some(number);
        }
        let value_bits = self.bits - u32::from(self.is_signed);
        match overflow {
            Overflow::Wrap => Some(wrapped),
            Overflow::Fail => None,
            Overflow::Saturate if number > 0 => Some((1 << value_bits) - 1),
            Overflow::Saturate if self.is_signed => Some(-(1 << value_bits)),
            Overflow::Saturate => Some(0),
        }
    }
}
