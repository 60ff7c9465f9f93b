//! Filters of other systems that know for how much they were made, and may grow by one layer behind the other.

use tamis::Answers;

use crate::contents::{ChangeError, FilterInfo, try_answer_each};
use crate::foreign_bloom::ForeignBloom;
use crate::pybloom_live;

/// A filter, and what its file says of the plan behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// The filter.
    pub filter: ForeignBloom,
    /// For how many items it was planned.
    pub capacity: u64,
    /// For which rate it was planned.
    pub rate: f64,
    /// How many new items were added; `None` if its file does not count them.
    pub added: Option<u64>,
}

impl Layer {
    fn added(&self) -> u64 {
        self.added.unwrap_or(0)
    }
}

/// What happens when a layer is full.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Growth {
    /// Nothing: the rate rises.
    None,
    /// Items are refused as soon as more than the capacity were added: `pybloom_live.BloomFilter`.
    Refuses,
    /// A layer follows, larger and of a lower rate: `pybloom_live.ScalableBloomFilter`.
    Scales(pybloom_live::Scale),
}

/// Filters of one system, one behind the other: an item is in if one of them has it, and new ones go to the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Layers {
    pub(crate) layers: Vec<Layer>,
    pub(crate) growth: Growth,
}

impl Layers {
    /// Returns the layers, the oldest first. A filter that grows has none before its first item.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns what happens when a layer is full.
    #[must_use]
    pub fn growth(&self) -> Growth {
        self.growth
    }

    /// Tells whether an item may be in.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.layers.iter().any(|layer| layer.filter.contains(key))
    }

    /// Inserts an item as the original does; true if it is new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the original refuses it, or there is no memory for a layer.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, ChangeError> {
        match (self.growth, &self.layers[..]) {
            (Growth::None, _) => {}
            (Growth::Refuses, layers) => {
                if let Some(full) = layers.iter().find(|layer| layer.added() > layer.capacity) {
                    return Err(ChangeError::refused(format!(
                        "full: {} of {} items were added, and the original refuses more: make a larger one",
                        full.added(),
                        full.capacity
                    )));
                }
            }
            (Growth::Scales(scale), layers) => {
                if self.contains(key) {
                    return Ok(false);
                }
                if layers.last().is_none_or(|last| last.added() >= last.capacity) {
                    let next = scale.next_layer(layers.last())?;
                    self.layers.push(next);
                }
                return Ok(self.insert_in_last(key, true));
            }
        }
        Ok(self.insert_in_last(key, false))
    }

    /// Inserts into the last layer. An item that no layer had counts as new whether or not a bit changes.
    fn insert_in_last(&mut self, key: &[u8], was_absent: bool) -> bool {
        let Some(last) = self.layers.last_mut() else { return false };
        let is_new = last.filter.insert(key) | was_absent;
        last.added = last.added.map(|added| added.saturating_add(is_new.into()));
        is_new
    }

    pub(crate) fn contains_each(&self, keys: &[impl AsRef<[u8]>], answers: &mut Answers) {
        let filters = self.layers.iter().map(|layer| &layer.filter);
        ForeignBloom::any_contains_each(filters, keys, answers);
    }

    pub(crate) fn insert_each(
        &mut self,
        keys: &[impl AsRef<[u8]>],
        answers: &mut Answers,
    ) -> Result<(), ChangeError> {
        try_answer_each(keys, answers, |key| self.insert(key))
    }

    /// Adds all items of another, layer by layer; false, and nothing is changed, if they are of other rules.
    #[must_use = "filters of different rules do not merge"]
    pub fn merge(&mut self, other: &Self) -> bool {
        let is_alike = self.growth == other.growth
            && self.layers.len() == other.layers.len()
            && self
                .layers
                .iter()
                .zip(&other.layers)
                .all(|(one, other)| one.filter.rule() == other.filter.rule());
        if !is_alike {
            return false;
        }
        for (one, other) in self.layers.iter_mut().zip(&other.layers) {
            one.added = one.added.map(|added| added.saturating_add(other.added()));
            let is_merged = one.filter.merge(&other.filter);
            debug_assert!(is_merged, "the rules are equal");
        }
        true
    }

    /// Returns what its layers together were planned for, if its program was asked for the rate that is told or in its bytes.
    pub(crate) fn planned_rate(&self, options: Option<f64>) -> Option<f64> {
        match (self.growth, &self.layers[..]) {
            (Growth::Scales(scale), []) => Some(options.unwrap_or(scale.rate)),
            (Growth::Scales(scale), layers) => {
                let sum: f64 = layers.iter().map(|layer| layer.rate).sum();
                // Each layer's rate is in proportion to the one asked for.
                Some(options.map_or(sum, |options| options / scale.rate * sum))
            }
            (_, [one]) => Some(options.unwrap_or(one.rate)),
            (_, _) => options,
        }
    }

    pub(crate) fn info(&self) -> FilterInfo {
        let filters = || self.layers.iter().map(|layer| &layer.filter);
        let bits: u64 = filters().map(|filter| filter.rule().bits()).sum();
        let ones: u64 = filters().map(ForeignBloom::count_ones).sum();
        let capacity = self.layers.iter().map(|it| it.capacity).fold(0, u64::saturating_add);
        let added =
            self.layers.iter().try_fold(0_u64, |sum, it| Some(sum.saturating_add(it.added?)));
        let probes = filters().map(|filter| filter.rule().probes());
        let mut info = FilterInfo {
            rule: filters().next().map_or("no layer yet".into(), |it| it.rule().to_string()),
            bits,
            probes: probes.clone().next().filter(|&first| probes.clone().all(|it| it == first)),
            fill: if bits == 0 { 0.0 } else { ones as f64 / bits as f64 },
            items: filters().map(ForeignBloom::estimate_items).sum(),
            // Each layer has its chance to be wrong.
            rate: 1.0 - filters().map(|filter| 1.0 - filter.estimate_rate()).product::<f64>(),
            rate_std_error: 0.0,
            planned_rate: self.planned_rate(None),
            more: vec![("capacity", capacity.to_string())],
            warnings: filters().next().map(|it| it.info().warnings).unwrap_or_default(),
        };
        if info.rate > 0.0 {
            let deviations = filters().map(|it| (it.estimate_rate() * it.rate_std_error()).powi(2));
            info.rate_std_error = deviations.sum::<f64>().sqrt() / info.rate;
        }
        info.more.extend(added.map(|added| ("added", added.to_string())));
        if let Growth::Scales(_) = self.growth {
            info.more.push(("layers", self.layers.len().to_string()));
        }
        info
    }
}
