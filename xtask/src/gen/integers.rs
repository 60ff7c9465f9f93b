//! Generates random integers below a bound, as lines or as `u32` words.

use crate::r#gen::output::Output;
use crate::tools::Outcome;

/// Writes a number in decimal, as a line.
pub fn write_text(number: u32, output: &mut Output) -> Outcome {
    output.write(decimal(number, &mut [0; 11]))
}

/// Writes a number as four bytes, little-endian.
pub fn write_words(number: u32, output: &mut Output) -> Outcome {
    output.write(&number.to_le_bytes())
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
