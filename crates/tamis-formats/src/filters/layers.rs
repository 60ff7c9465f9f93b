//! Bloom filters of other systems that store their capacity. Some Bloom filters of other systems grow by adding layers.

mod layer;
mod scale;

pub use layer::Layer;
pub(crate) use scale::new_layer;
pub use scale::{Scale, plan};

use tamis::Answers;

use crate::errors::ChangeError;
use crate::filters::answer_each::try_answer_each;
use crate::filters::filter_info::FilterInfo;
use crate::filters::foreign_bloom::ForeignBloom;
use crate::filters::stored_filter::StoredFilter;

/// The behavior of a filter when an item is inserted into a full layer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Growth {
    /// The full layer accepts the item, and the rate of the layer rises.
    None,
    /// The filter rejects the item, as `pybloom_live.BloomFilter` does.
    Refuses,
    /// The filter adds a layer with a larger capacity and a lower rate than the full layer, as
    /// `pybloom_live.ScalableBloomFilter` does.
    Scales(Scale),
}

/// A list of Bloom filters of one system. An item is present if any layer contains the item. New items are inserted
/// into the last layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Layers {
    layers: Vec<Layer>,
    growth: Growth,
}

impl Layers {
    pub(crate) fn new(layers: Vec<Layer>, growth: Growth) -> Self {
        Self { layers, growth }
    }

    /// Returns the layers, oldest first. A filter that grows has no layer before the first item is inserted.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns the behavior of the filter when a layer is full.
    #[must_use]
    pub fn growth(&self) -> Growth {
        self.growth
    }

    /// Tests whether an item may be in the filter.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.layers.iter().any(|layer| layer.filter.contains(key))
    }

    /// Inserts an item as the original system does. Returns true if the item is new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the original system rejects the item, or if the allocation of a layer fails.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, ChangeError> {
        match (self.growth, &self.layers[..]) {
            (Growth::None, _) => {}
            (Growth::Refuses, layers) => {
                if let Some(full) = layers.iter().find(|layer| layer.added() > layer.capacity) {
                    let why = format!(
                        "full: {} of {} items were added, and the original rejects more: build a \
                        larger filter",
                        full.added(),
                        full.capacity
                    );
                    return Err(ChangeError::Full(why.into()));
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

    fn filters(&self) -> impl Iterator<Item = &ForeignBloom> + Clone {
        self.layers.iter().map(|layer| &layer.filter)
    }

    /// Inserts an item into the last layer. An item that no layer contained counts as new even if no bit changes.
    fn insert_in_last(&mut self, key: &[u8], was_absent: bool) -> bool {
        let Some(last) = self.layers.last_mut() else { return false };
        let is_new = last.filter.insert(key) | was_absent;
        last.added = last.added.map(|added| added.saturating_add(is_new.into()));
        is_new
    }

    /// Returns the planned rate of all layers together. The rate in the decode options takes precedence over the rate
    /// in the file.
    fn planned_rate(&self, options: Option<f64>) -> Option<f64> {
        match (self.growth, &self.layers[..]) {
            (Growth::Scales(scale), []) => Some(options.unwrap_or(scale.rate)),
            (Growth::Scales(scale), layers) => {
                let sum: f64 = layers.iter().map(|layer| layer.rate).sum();
                // The rate of each layer is proportional to the requested rate.
                Some(options.map_or(sum, |options| options / scale.rate * sum))
            }
            (_, [one]) => Some(options.unwrap_or(one.rate)),
            (_, _) => options,
        }
    }
}

impl StoredFilter for Layers {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        ForeignBloom::any_contains_each(self.filters(), keys, answers);
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        try_answer_each(keys, answers, |key| self.insert(key))
    }

    /// Merges each layer with the layer at the same index of `other`.
    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        let is_alike = self.growth == other.growth
            && self.layers.len() == other.layers.len()
            && self.filters().zip(other.filters()).all(|(one, other)| one.rule() == other.rule());
        if !is_alike {
            return Ok(false);
        }
        for (one, other) in self.layers.iter_mut().zip(&other.layers) {
            one.added = one.added.map(|added| added.saturating_add(other.added()));
            let is_merged = one.filter.merge(&other.filter);
            debug_assert!(is_merged, "the rules are equal");
        }
        Ok(true)
    }

    fn info(&self) -> FilterInfo {
        let capacity = self.layers.iter().map(|it| it.capacity).fold(0, u64::saturating_add);
        let added =
            self.layers.iter().try_fold(0_u64, |sum, it| Some(sum.saturating_add(it.added?)));
        let first = self.filters().next().map(ForeignBloom::info);
        let (rule, warnings) =
            first.map_or(("no layer yet".into(), vec![]), |it| (it.layout, it.warnings));
        let mut more = vec![("capacity", capacity.to_string())];
        more.extend(added.map(|added| ("added", added.to_string())));
        if let Growth::Scales(_) = self.growth {
            more.push(("layers", self.layers.len().to_string()));
        }
        FilterInfo {
            layout: rule,
            rate_planned: self.planned_rate(None),
            details: more,
            warnings,
            ..ForeignBloom::info_of_all(self.filters())
        }
    }

    fn exceeded_rate(&self, info: &FilterInfo, planned: Option<f64>) -> Option<f64> {
        self.planned_rate(planned).filter(|&planned| info.is_over(planned))
    }
}
