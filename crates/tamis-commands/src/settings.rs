//! The settings of new filters, with RedisBloom's names and ranges.

use std::fmt;

use tamis::Hasher;

use crate::command::argv::{parse_double, parse_integer};

/// The upper limits of the arguments with which a command creates a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArgumentLimits {
    /// The maximum rate. A new filter uses the maximum rate instead of a higher rate.
    pub rate: f64,
    /// The maximum capacity, in items or slots.
    pub capacity: i64,
    /// The maximum expansion of a Bloom filter.
    pub expansion: i64,
}

impl ArgumentLimits {
    /// The upper limits of arguments in RedisBloom 8.
    pub const REDISBLOOM_8: Self = Self { rate: 0.25, capacity: 1 << 30, expansion: 1 << 15 };

    /// No limits, as in RedisBloom 2.
    pub const NONE: Self = Self { rate: 1.0, capacity: i64::MAX, expansion: i64::MAX };
}

/// The maximum expansion of a cuckoo filter.
pub(crate) const MAX_CUCKOO_EXPANSION: i64 = 1 << 15;

/// The layout of the filters that `BF.RESERVE` and other `BF.*` commands create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BloomLayout {
    /// The layout of Tamis. Each item sets bits in one cache line until the filter reaches its
    /// capacity. A growing filter stores all later items.
    #[default]
    Tamis,
    /// The layout of RedisBloom. The filter has the same bits and the same false positives as in
    /// RedisBloom.
    RedisBloom,
}

impl BloomLayout {
    /// Returns the value of the setting `bf-layout`: the layout of new Bloom filters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BloomLayout::Tamis => "tamis",
            BloomLayout::RedisBloom => "redisbloom",
        }
    }
}

/// The default parameters of new filters. A command can override parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `bf-layout`: the layout of new Bloom filters.
    pub bf_layout: BloomLayout,
    /// `bf-error-rate`, a probability. Commands use [`rate`](Settings::rate) instead of the field `bf_rate`.
    pub bf_rate: f64,
    /// `bf-initial-size`, in items.
    pub bf_capacity: u64,
    /// `bf-expansion-factor`: the growth factor of Bloom filters; 0 creates filters that do not grow.
    pub bf_expansion: u32,
    /// `cf-bucket-size`, in slots.
    pub cf_bucket_size: u16,
    /// `cf-initial-size`, in slots.
    pub cf_capacity: u64,
    /// `cf-max-iterations`: the number of item moves before a cuckoo filter grows.
    pub cf_max_iterations: u16,
    /// `cf-expansion-factor`: the growth factor of cuckoo filters; 0 disables growth.
    pub cf_expansion: u16,
    /// `cf-max-expansions`: a filter with this number of sub-filters accepts no further items.
    pub cf_max_expansions: u32,
    /// The upper limits of arguments. No named setting changes the upper limits.
    pub limits: ArgumentLimits,
    /// The maximum size of a new filter, in bytes. The usual limit is the memory of the machine. The operating system
    /// may grant more memory than the machine has, so a successful allocation is not a sufficient check. No named
    /// setting changes the maximum size.
    pub max_filter_bytes: u64,
    /// The hash function of new filters in Tamis' own layouts. The layouts of other systems
    /// prescribe the hash function. No named setting shows the hash function, because the hash
    /// function may contain a secret key.
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
            limits: ArgumentLimits::REDISBLOOM_8,
            max_filter_bytes: u64::MAX,
            hasher: Hasher::default(),
        }
    }
}

impl Settings {
    /// Returns the default settings for a replay. No limit rejects a change that the server
    /// accepted before.
    #[must_use]
    pub fn for_replay() -> Self {
        Self { cf_bucket_size: 1, ..Self::default() }.obeying()
    }

    /// Returns the settings for commands that another server accepted: a primary, or the server that wrote an
    /// append-only file. The returned settings have no limits, because a rejected command would lose items.
    ///
    /// A Tamis server first sends the parameters of a new filter, so its later commands create no filter. A command
    /// that creates a filter comes from RedisBloom, so the filter gets the layout of RedisBloom.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_commands::{BloomLayout, Settings};
    ///
    /// let mut settings = Settings::default();
    /// settings.set_argument("ERROR_RATE", b"0.9")?;
    /// assert_eq!((settings.rate(), settings.obeying().rate()), (0.25, 0.9));
    /// assert_eq!(settings.obeying().bf_layout, BloomLayout::RedisBloom);
    /// # Ok::<(), tamis_commands::SettingError>(())
    /// ```
    #[must_use]
    pub fn obeying(&self) -> Self {
        Self {
            bf_layout: BloomLayout::RedisBloom,
            cf_max_expansions: u32::MAX,
            limits: ArgumentLimits::NONE,
            max_filter_bytes: u64::MAX,
            ..self.clone()
        }
    }

    /// Returns the rate of a new filter if the command gives no rate.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.bf_rate.min(self.limits.rate)
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

const fn setting(name: &'static str, summary: &'static str) -> Setting {
    Setting { name, summary }
}

/// The reason why a setting rejects a value. In the reply, the text of the error follows `CONFIG
/// SET failed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// No setting has the given name.
    Unknown,
    /// The value does not have the type of the setting.
    Invalid {
        /// The name of the setting.
        name: &'static str,
    },
    /// The value is out of range.
    Range {
        /// The name of the setting.
        name: &'static str,
        /// The valid range, with brackets.
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
        setting("bf-layout", "Layout of new Bloom filters: tamis or redisbloom"),
        setting("bf-error-rate", "False positive rate of a Bloom filter that an insert creates"),
        setting("bf-initial-size", "Capacity of a Bloom filter that an insert creates"),
        setting("bf-expansion-factor", "Growth factor of Bloom filters; 0 disables growth"),
        setting("cf-bucket-size", "Slots per bucket of a cuckoo filter"),
        setting("cf-initial-size", "Capacity of a cuckoo filter that an insert creates, in slots"),
        setting("cf-max-iterations", "Moves of items before a cuckoo filter grows"),
        setting("cf-expansion-factor", "Growth factor of cuckoo filters; 0 disables growth"),
        setting("cf-max-expansions", "Largest number of sub-filters of a cuckoo filter"),
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

    /// Returns the value of a setting as text; `None` if no setting has the given name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        Some(match name {
            "bf-layout" => self.bf_layout.name().to_owned(),
            "bf-error-rate" => self.rate().to_string(),
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

    /// Changes a setting from a startup argument of the server. Also accepts the names and ranges
    /// of RedisBloom 2.
    ///
    /// # Errors
    ///
    /// [`SettingError`]. After an error, no setting has changed.
    pub fn set_argument(&mut self, name: &str, value: &[u8]) -> Result<(), SettingError> {
        let name = name.to_ascii_lowercase();
        let invalid = |name| SettingError::Invalid { name };
        let at_least_one = |name| {
            let number = parse_integer(value).ok_or(invalid(name))?;
            let range = || SettingError::Range { name, range: format!("[1, {}]", i64::MAX) };
            (number > 0).then_some(number as u64).ok_or_else(range)
        };
        match name.as_str() {
            "error_rate" => {
                self.set("bf-error-rate", value)?;
                // RedisBloom 2 has no maximum rate. A command from a primary with RedisBloom 2
                // needs the unlimited rate.
                self.bf_rate = parse_double(value).ok_or(invalid("ERROR_RATE"))?;
            }
            "initial_size" => self.bf_capacity = at_least_one("INITIAL_SIZE")?,
            "cf_max_expansions" => {
                self.cf_max_expansions = at_least_one("CF_MAX_EXPANSIONS")?.min(65_536) as u32;
            }
            name => return self.set(name, value),
        }
        Ok(())
    }

    /// Changes several settings. The values may depend on each other and may be in any order.
    ///
    /// # Errors
    ///
    /// The error of a value that the settings reject in every order. After an error, some settings may have changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_commands::Settings;
    ///
    /// let mut settings = Settings::default();
    /// // An initial size of 2 needs the bucket size 1.
    /// let values = [("cf-initial-size", &b"2"[..]), ("cf-bucket-size", b"1")];
    /// settings.set_each(&values)?;
    /// assert_eq!((settings.cf_capacity, settings.cf_bucket_size), (2, 1));
    /// # Ok::<(), tamis_commands::SettingError>(())
    /// ```
    pub fn set_each(&mut self, values: &[(&str, &[u8])]) -> Result<(), SettingError> {
        // A value may depend on one later value, so the first pass ignores errors. The second pass
        // sets every valid value.
        for (name, value) in values {
            _ = self.set(name, value);
        }
        values.iter().try_for_each(|(name, value)| self.set(name, value))
    }

    /// Changes a setting.
    ///
    /// # Errors
    ///
    /// [`SettingError`]. After an error, no setting has changed.
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
                self.bf_rate = rate.min(LIMITS.rate);
            }
            "bf-initial-size" => self.bf_capacity = integer(1, LIMITS.capacity)? as u64,
            "bf-expansion-factor" => self.bf_expansion = integer(0, LIMITS.expansion)? as u32,
            "cf-bucket-size" => {
                let most = 255.min(self.cf_capacity as i64 / 2);
                self.cf_bucket_size = integer(1, most)? as u16;
            }
            "cf-initial-size" => {
                let least = 2 * i64::from(self.cf_bucket_size);
                self.cf_capacity = integer(least, LIMITS.capacity)? as u64;
            }
            "cf-max-iterations" => self.cf_max_iterations = integer(1, 65_535)? as u16,
            "cf-expansion-factor" => self.cf_expansion = integer(0, MAX_CUCKOO_EXPANSION)? as u16,
            _ => self.cf_max_expansions = integer(1, 65_536)? as u32,
        }
        Ok(())
    }
}

/// The limits of the values that settings accept.
const LIMITS: ArgumentLimits = ArgumentLimits::REDISBLOOM_8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_with_the_names_of_redisbloom_2_have_its_ranges() {
        let mut settings = Settings::default();
        settings.set_argument("ERROR_RATE", b"0.9").unwrap();
        settings.set_argument("initial_size", b"1500000000").unwrap();
        settings.set_argument("CF_MAX_EXPANSIONS", b"100000").unwrap();
        settings.set_argument("cf-bucket-size", b"4").unwrap();
        assert_eq!((settings.bf_rate, settings.bf_capacity), (0.9, 1_500_000_000));
        assert_eq!((settings.cf_max_expansions, settings.cf_bucket_size), (65_536, 4));
        // The maximum rate still applies to commands of clients.
        assert_eq!(settings.get("bf-error-rate").as_deref(), Some("0.25"));
        for (name, value) in [
            ("ERROR_RATE", "1"),
            ("ERROR_RATE", "x"),
            ("INITIAL_SIZE", "0"),
            ("INITIAL_SIZE", "9223372036854775808"),
            ("bf-initial-size", "1500000000"),
            ("SIZE", "1"),
        ] {
            let before = settings.clone();
            assert!(settings.set_argument(name, value.as_bytes()).is_err(), "{name} {value}");
            assert_eq!(settings, before);
        }
    }

    #[test]
    fn every_setting_has_a_value_that_sets_it() {
        let mut settings = Settings::default();
        for setting in Settings::ALL {
            let value = settings.get(setting.name).unwrap();
            settings.set(setting.name, value.as_bytes()).unwrap();
        }
        assert_eq!(settings, Settings::default());
        assert_eq!(settings.get("bf"), None);
        assert_eq!(settings.set("", b"1"), Err(SettingError::Unknown));
    }

    #[test]
    fn a_hash_key_has_the_byte_order_of_siphash() {
        let mut keyed = Settings::default();
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        keyed.set_hash_key(Some(key));
        // SipHash reads the key in little-endian byte order.
        let words = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(keyed.hasher, Hasher::keyed(words));
    }

    #[test]
    fn bad_values_are_refused_with_redisblooms_texts() {
        let mut settings = Settings::default();
        let mut refused =
            |name, value: &str| settings.set(name, value.as_bytes()).unwrap_err().to_string();
        for value in ["0", "1", "-1", "inf"] {
            let range = "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)";
            assert_eq!(refused("bf-error-rate", value), range);
        }
        assert_eq!(refused("bf-error-rate", "x"), "Invalid value for `bf-error-rate` ");
        let range = "Value for `bf-initial-size` must be in the range [1, 1073741824]";
        assert_eq!(refused("bf-initial-size", "1073741825"), range);
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
