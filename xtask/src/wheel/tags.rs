//! Parses the file names of wheels. The name of a wheel says which Pythons and systems can use the wheel.

use std::collections::BTreeSet;

/// A parsed file name, such as `tamis-0.1.0-cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl`.
#[derive(Debug, PartialEq, Eq)]
pub struct WheelName<'a> {
    pub python: &'a str,
    pub abi: &'a str,
    /// The platforms. Their order in the name has no meaning.
    pub platforms: BTreeSet<&'a str>,
}

impl<'a> WheelName<'a> {
    /// Parses the name of a file. Returns `None` if the file is no wheel.
    pub fn parse(name: &'a str) -> Option<Self> {
        let mut parts = name.strip_suffix(".whl")?.rsplitn(4, '-');
        let platforms = parts.next()?.split('.').collect();
        let (abi, python) = (parts.next()?, parts.next()?);
        parts.next()?;
        Some(Self { python, abi, platforms })
    }
}

/// Returns the two names of the platform with glibc 2.17 for a CPU, such as `x86_64`.
pub fn platforms(cpu: &str) -> [String; 2] {
    [format!("manylinux_2_17_{cpu}"), format!("manylinux2014_{cpu}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_platforms_has_no_meaning() {
        let names = [
            "tamis-0.1.0-cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            "tamis-0.1.0-1-cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        ];
        let expected = platforms("x86_64");
        for name in names.map(|name| WheelName::parse(name).unwrap()) {
            assert_eq!((name.python, name.abi), ("cp311", "abi3"));
            assert!(name.platforms.iter().eq(BTreeSet::from(expected.each_ref())), "{name:?}");
        }
    }

    #[test]
    fn a_source_distribution_is_no_wheel() {
        assert_eq!(WheelName::parse("tamis-0.1.0.tar.gz"), None);
        assert_eq!(WheelName::parse("tamis.whl"), None);
    }
}
