//! Generates random integers below a bound, as lines or as `u32` words.

use crate::r#gen::output::Output;
use crate::r#gen::random::Random;

use crate::tools::Outcome;

/// The encoding of an integer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Decimal integers, one integer per line.
    Text,
    /// Four bytes per integer, little-endian.
    U32,
}

impl Format {
    /// Parses the value of `--format`.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "text" => Ok(Format::Text),
            "u32" => Ok(Format::U32),
            _ => Err(format!("--format is text or u32, not {word}")),
        }
    }
}

/// Writes `count` integers below `below`. `below` must be from 1 to 2³².
pub fn write(count: u64, below: u64, format: Format, seed: u64, output: &mut Output) -> Outcome {
    let mut random = Random::new(seed);
    for _ in 0..count {
        let number = random.below(below) as u32;
        match format {
            Format::Text => output.write(decimal(number, &mut [0; 11]))?,
            Format::U32 => output.write(&number.to_le_bytes())?,
        }
    }
    output.finish()
}

/// Writes a number and a line end to the end of `line`, and returns this part of `line`. The
/// formatting of the standard library takes five times as long.
fn decimal(mut number: u32, line: &mut [u8; 11]) -> &[u8] {
    line[10] = b'\n';
    let mut start = 10;
    loop {
        start -= 1;
        line[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &line[start..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_its_decimal_line() {
        for number in [0, 9, 10, 4_294_967_295, 1_000_000_000] {
            assert_eq!(decimal(number, &mut [0; 11]), format!("{number}\n").as_bytes());
        }
    }
}
