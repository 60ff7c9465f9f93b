//! A cuckoo filter of RedisBloom.

use tamis::Answers;
use tamis_redisbloom::RedisCuckoo;

use crate::errors::ChangeError;
use crate::filters::{FilterInfo, ItemCount, StoredFilter};
use crate::formats::redisbloom::insert::{NO_MERGE, insert_each, most_growth_bytes};

impl StoredFilter for RedisCuckoo {
    const MERGE_REFUSAL: Option<&'static str> = Some(NO_MERGE);

    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        self.contains_each(keys, answers);
    }

    /// Inserts items as `CF.INSERTNX` does: items that are present are skipped.
    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        self.limit_growth(most_growth_bytes(self.size_bytes()));
        insert_each(keys, answers, |keys, answer| self.insert_absent_each(keys, answer))
    }

    fn info(&self) -> FilterInfo {
        let bucket_size = u64::from(self.bucket_size());
        let slots = self.slots();
        let fill = self.len() as f64 / slots as f64;
        let mut warnings = Vec::new();
        if self.sub_filters() > 1 {
            let parts = self.sub_filters();
            warnings.push(format!(
                "it has grown to {parts} parts, each of which adds to the rate and to the time of \
                a lookup: reserve a larger filter"
            ));
        }
        if self.expansion() == 0 && fill > 0.5 {
            warnings.extend(refusals(self));
        }
        FilterInfo {
            layout: "murmur2 x64 64, RedisBloom's cuckoo filter".into(),
            bits: 8 * slots,
            fill,
            items: self.len() as f64,
            items_are: ItemCount::Inserted,
            rate_now: self.estimate_rate(u64::MAX),
            details: vec![
                ("sub-filters", self.sub_filters().to_string()),
                ("buckets", self.buckets().to_string()),
                ("bucket size", bucket_size.to_string()),
                ("iterations", self.max_iterations().to_string()),
                ("expansion", self.expansion().to_string()),
                ("removed", self.removed().to_string()),
            ],
            warnings,
            ..FilterInfo::default()
        }
    }
}

/// Returns a warning if the filter does not grow and rejects items. The test inserts some items into a copy of the
/// filter.
fn refusals(filter: &RedisCuckoo) -> Option<String> {
    const TRIED: u64 = 64;
    /// The maximum size of a filter that is copied for this test, in bytes.
    const MOST_BYTES: u64 = 256 << 20;
    if filter.size_bytes() > MOST_BYTES {
        return None;
    }
    let mut copy = filter.clone();
    let refused = (0..TRIED).filter(|item| copy.insert(item).is_err()).count() as u64;
    match refused {
        0 => None,
        _ if refused * 2 > TRIED => {
            Some("full: refuses adds, and does not grow: reserve a larger one".into())
        }
        _ => Some("nearly full, and does not grow: refuses some adds: reserve a larger one".into()),
    }
}
