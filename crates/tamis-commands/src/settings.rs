//! The settings of new filters, with RedisBloom's names and ranges.

use std::fmt;

use tamis::Hasher;

use crate::argv::{parse_double, parse_integer};

/// The maximum rate. A higher rate is stored as this one, as in RedisBloom.
pub(crate) const MAX_RATE: f64 = 0.25;

/// The maximum capacity, in items.
pub(crate) const MAX_CAPACITY: i64 = 1 << 30;

/// The maximum expansion.
pub(crate) const MAX_EXPANSION: i64 = 1 << 15;

/// The layout of the filters that `BF.RESERVE` and other `BF.*` commands create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BloomLayout {
    /// Tamis' layout: one cache line per item up to the capacity, then a growing filter.
    #[default]
    Tamis,
    /// RedisBloom's layout: the same bits and the same false positives.
    RedisBloom,
}

impl BloomLayout {
    /// Returns the value of the setting `bf-layout`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BloomLayout::Tamis => "tamis",
            BloomLayout::RedisBloom => "redisbloom",
        }
    }
}

/// The parameters of new filters that a command does not state.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `bf-layout`.
    pub bf_layout: BloomLayout,
    /// `bf-error-rate`, a probability.
    pub bf_rate: f64,
    /// `bf-initial-size`, items.
    pub bf_capacity: u64,
    /// `bf-expansion-factor`; 0 creates filters that do not grow.
    pub bf_expansion: u32,
    /// `cf-bucket-size`, slots.
    pub cf_bucket_size: u16,
    /// `cf-initial-size`, slots.
    pub cf_capacity: u64,
    /// `cf-max-iterations`.
    pub cf_max_iterations: u16,
    /// `cf-expansion-factor`.
    pub cf_expansion: u16,
    /// `cf-max-expansions`: a filter with this number of sub-filters accepts no more items.
    pub cf_max_expansions: u32,
    /// The maximum size of a new filter, in bytes: the memory of the machine. The operating system
    /// grants memory before it exists, so a successful allocation proves nothing. Not a named
    /// setting.
    pub max_filter_bytes: u64,
    /// The hash function of new filters in Tamis' own layouts. Layouts of other systems fix their
    /// own. Not a named setting, because it may contain a secret key.
    pub hasher: Hasher,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bf_layout: BloomLayout::Tamis,
            bf_rate: 0.01,
            bf_capacity: 100,
            bf_expansion: 2,
            cf_bucket_size: 2,
            cf_capacity: 1024,
            cf_max_iterations: 20,
            cf_expansion: 1,
            cf_max_expansions: 32,
            max_filter_bytes: u64::MAX,
            hasher: Hasher::default(),
        }
    }
}

impl Settings {
    /// Returns the default settings for replaying changes: no limit rejects a change that was
    /// accepted before.
    #[must_use]
    pub fn for_replay() -> Self {
        Self { cf_bucket_size: 1, ..Self::default() }.without_limits()
    }

    /// Returns the same settings without limits, for changes that another server accepted.
    #[must_use]
    pub fn without_limits(&self) -> Self {
        Self { cf_max_expansions: u32::MAX, max_filter_bytes: u64::MAX, ..self.clone() }
    }
}

/// A named setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name, as in `CONFIG GET`.
    pub name: &'static str,
    /// A one-line description.
    pub summary: &'static str,
}

/// Why a setting rejects a value. Its text follows `CONFIG SET failed` in the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// No setting has this name.
    Unknown,
    /// The value does not have the type of this setting.
    Invalid {
        /// The setting.
        name: &'static str,
    },
    /// The value is out of range.
    Range {
        /// The setting.
        name: &'static str,
        /// The range, with its brackets.
        range: String,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingError::Unknown => f.write_str("there is no such setting"),
            // The trailing space is part of RedisBloom's text.
            SettingError::Invalid { name } => write!(f, "Invalid value for `{name}` "),
            SettingError::Range { name, range } => {
                write!(f, "Value for `{name}` must be in the range {range}")
            }
        }
    }
}

impl std::error::Error for SettingError {}

impl Settings {
    /// Every setting, in the order of the documentation.
    pub const ALL: [Setting; 9] = [
        Setting { name: "bf-layout", summary: "Layout of new Bloom filters: tamis or redisbloom" },
        Setting {
            name: "bf-error-rate",
            summary: "False positive rate of a Bloom filter that an insert creates",
        },
        Setting {
            name: "bf-initial-size",
            summary: "Capacity of a Bloom filter that an insert creates",
        },
        Setting {
            name: "bf-expansion-factor",
            summary: "Growth factor of Bloom filters; 0 disables growth",
        },
        Setting { name: "cf-bucket-size", summary: "Slots per bucket of a cuckoo filter" },
        Setting {
            name: "cf-initial-size",
            summary: "Capacity of a cuckoo filter that an insert creates, in slots",
        },
        Setting {
            name: "cf-max-iterations",
            summary: "Moves of items before a cuckoo filter grows",
        },
        Setting {
            name: "cf-expansion-factor",
            summary: "Growth factor of cuckoo filters; 0 disables growth",
        },
        Setting {
            name: "cf-max-expansions",
            summary: "Largest number of sub-filters of a cuckoo filter",
        },
    ];

    /// Sets the secret hash key of new filters; `None` selects the default hash without a key.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_commands::Settings;
    ///
    /// let mut settings = Settings::default();
    /// settings.set_hash_key(Some(*b"0123456789abcdef"));
    /// assert!(settings.hasher.is_keyed());
    /// ```
    pub fn set_hash_key(&mut self, key: Option<[u8; 16]>) {
        self.hasher = key.map_or(Hasher::default(), |key| {
            let key = u128::from_le_bytes(key);
            Hasher::keyed([key as u64, (key >> 64) as u64])
        });
    }

    /// Returns the value of a setting as text; `None` if no setting has this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        Some(match name {
            "bf-layout" => self.bf_layout.name().to_owned(),
            "bf-error-rate" => self.bf_rate.to_string(),
            "bf-initial-size" => self.bf_capacity.to_string(),
            "bf-expansion-factor" => self.bf_expansion.to_string(),
            "cf-bucket-size" => self.cf_bucket_size.to_string(),
            "cf-initial-size" => self.cf_capacity.to_string(),
            "cf-max-iterations" => self.cf_max_iterations.to_string(),
            "cf-expansion-factor" => self.cf_expansion.to_string(),
            "cf-max-expansions" => self.cf_max_expansions.to_string(),
            _ => return None,
        })
    }

    /// Changes a setting.
    ///
    /// # Errors
    ///
    /// [`SettingError`], with nothing changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_commands::Settings;
    ///
    /// let mut settings = Settings::default();
    /// settings.set("bf-error-rate", b"0.5")?;
    /// assert_eq!(settings.get("bf-error-rate").as_deref(), Some("0.25"));
    /// assert!(settings.set("bf-initial-size", b"0").is_err());
    /// # Ok::<(), tamis_commands::SettingError>(())
    /// ```
    pub fn set(&mut self, name: &str, value: &[u8]) -> Result<(), SettingError> {
        let setting = Self::ALL.iter().find(|it| it.name == name).ok_or(SettingError::Unknown)?;
        let name = setting.name;
        let integer = |least: i64, most: i64| -> Result<i64, SettingError> {
            let number = parse_integer(value).ok_or(SettingError::Invalid { name })?;
            if (least..=most).contains(&number) {
                Ok(number)
            } else {
                Err(SettingError::Range { name, range: format!("[{least}, {most}]") })
            }
        };
        match name {
            "bf-layout" => {
                self.bf_layout = [BloomLayout::Tamis, BloomLayout::RedisBloom]
                    .into_iter()
                    .find(|layout| value.eq_ignore_ascii_case(layout.name().as_bytes()))
                    .ok_or(SettingError::Invalid { name })?;
            }
            "bf-error-rate" => {
                let rate = parse_double(value).ok_or(SettingError::Invalid { name })?;
                if !(rate > 0.0 && rate < 1.0) {
                    let range = format!("({:.6}, {:.6})", 0.0, 1.0);
                    return Err(SettingError::Range { name, range });
                }
                self.bf_rate = rate.min(MAX_RATE);
            }
            "bf-initial-size" => self.bf_capacity = integer(1, MAX_CAPACITY)? as u64,
            "bf-expansion-factor" => self.bf_expansion = integer(0, MAX_EXPANSION)? as u32,
            "cf-bucket-size" => {
                let most = 255.min(self.cf_capacity as i64 / 2);
                self.cf_bucket_size = integer(1, most)? as u16;
            }
            "cf-initial-size" => {
                let least = 2 * i64::from(self.cf_bucket_size);
                self.cf_capacity = integer(least, MAX_CAPACITY)? as u64;
            }
            "cf-max-iterations" => self.cf_max_iterations = integer(1, 65_535)? as u16,
            "cf-expansion-factor" => self.cf_expansion = integer(0, MAX_EXPANSION)? as u16,
            _ => self.cf_max_expansions = integer(1, 65_536)? as u32,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_value_that_sets_it() {
        let mut settings = Settings::default();
        for setting in Settings::ALL {
            let value = settings.get(setting.name).unwrap();
            settings.set(setting.name, value.as_bytes()).unwrap();
        }
        assert_eq!(settings, Settings::default());
        assert_eq!(
            (settings.get("bf"), settings.set("", b"1")),
            (None, Err(SettingError::Unknown))
        );
    }

    #[test]
    fn a_hash_key_has_the_byte_order_of_siphash() {
        let mut keyed = Settings::default();
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        keyed.set_hash_key(Some(key));
        // The byte order of SipHash.
        let words = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(keyed.hasher, Hasher::keyed(words));
    }

    #[test]
    fn bad_values_are_refused_with_redisblooms_texts() {
        let mut settings = Settings::default();
        let mut refused =
            |name, value: &str| settings.set(name, value.as_bytes()).unwrap_err().to_string();
        for value in ["0", "1", "-1", "inf"] {
            assert_eq!(
                refused("bf-error-rate", value),
                "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)"
            );
        }
        assert_eq!(refused("bf-error-rate", "x"), "Invalid value for `bf-error-rate` ");
        assert_eq!(
            refused("bf-initial-size", "1073741825"),
            "Value for `bf-initial-size` must be in the range [1, 1073741824]"
        );
        assert_eq!(refused("cf-max-iterations", "1.5"), "Invalid value for `cf-max-iterations` ");
        assert!(refused("cf-expansion-factor", "32769").ends_with("[0, 32768]"));
        assert!(refused("cf-max-expansions", "0").ends_with("[1, 65536]"));
        assert!(refused("bf-layout", "guava").starts_with("Invalid"));
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn bucket_and_initial_size_limit_each_other() {
        let mut settings = Settings::default();
        settings.set("cf-initial-size", b"10").unwrap();
        assert!(settings.set("cf-bucket-size", b"6").is_err());
        settings.set("cf-bucket-size", b"5").unwrap();
        assert!(settings.set("cf-initial-size", b"9").is_err());
    }
}
