//! Parses and formats sizes such as `512M` and `2G`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, written with an optional `K`, `M`, `G` or `T` (powers of 1024).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize {
    /// The number of bytes.
    pub bytes: u64,
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a size: write bytes, or 64K, 512M, 2G, 1T");
        let upper = text.trim().to_ascii_uppercase();
        let bare = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
        let digits = bare.trim_end_matches(['K', 'M', 'G', 'T']);
        let shift = match &bare[digits.len()..] {
            "" => 0,
            "K" => 10,
            "M" => 20,
            "G" => 30,
            "T" => 40,
            _ => return Err(wrong()),
        };
        let number: f64 = digits.parse().map_err(|_| wrong())?;
        let bytes = number * (1_u64 << shift) as f64;
        // An f64 represents every whole number up to 2⁵³. In bytes, 2⁵³ is 8192 TiB.
        if !(number >= 0.0 && bytes <= (1_u64 << 53) as f64) {
            return Err(wrong());
        }
        Ok(ByteSize { bytes: bytes as u64 })
    }
}

impl fmt::Display for ByteSize {
    /// Writes about three digits and a unit, such as `1.5 GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.bytes as f64;
        let mut unit = "B";
        for larger in ["KiB", "MiB", "GiB", "TiB"] {
            if value < 1024.0 {
                break;
            }
            value /= 1024.0;
            unit = larger;
        }
        let decimals = usize::from(unit != "B" && value < 99.95);
        write!(f, "{value:.decimals$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("1000", 1000),
            ("64K", 65_536),
            ("512m", 512 << 20),
            ("2G", 2 << 30),
            ("2GiB", 2 << 30),
            ("1.5GB", 3 << 29),
            ("1T", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize { bytes }), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "M", "-1", "1X", "nan", "inf", "1e300", "1KM", "1 000", "９"] {
            let error = text.parse::<ByteSize>().expect_err(text);
            assert!(error.contains("512M"), "{error}");
        }
    }

    #[test]
    fn sizes_are_shown_with_a_unit() {
        let shown = |bytes| ByteSize { bytes }.to_string();
        assert_eq!(shown(12), "12 B");
        assert_eq!(shown(1536), "1.5 KiB");
        assert_eq!(shown(200 << 20), "200 MiB");
        assert_eq!(shown(3 << 29), "1.5 GiB");
    }
}
