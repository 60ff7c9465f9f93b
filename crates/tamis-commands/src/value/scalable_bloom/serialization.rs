//! Encodes a scalable filter to bytes for snapshots and the log, and decodes a filter from the bytes.

use std::io::Write as _;
use std::sync::atomic::Ordering;

use tamis::{Hasher, Kind};

use crate::value::scalable_bloom::{Reserved, ScalableBloom, grown};
use crate::value::serialization::{ImageError, Reader, Writer};

/// The hash function of an image that contains no hash function. Early releases of Tamis had only the hash function
/// `OLD_HASHER`.
const OLD_HASHER: Hasher = Hasher::xxh3(0);

impl ScalableBloom {
    /// Writes the filter for a snapshot. The image may or may not contain bits that other threads
    /// set during the call.
    pub(crate) fn write_image(&self, out: &mut Writer<'_>) -> std::io::Result<()> {
        out.f64(self.rate)?;
        out.u64(self.capacity)?;
        out.u64(self.expansion.map_or(0, |expansion| u64::from(expansion) + 1))?;
        let has_hasher = self.hasher() != OLD_HASHER;
        let parts = [self.reserved.is_some(), self.overflow.is_some(), has_hasher];
        out.u64(parts.iter().rev().fold(0, |bits, &part| bits << 1 | u64::from(part)))?;
        if has_hasher {
            let (number, seed) = self.hasher().to_parts();
            out.u64(u64::from(number))?;
            out.write_all(&seed)?;
        }
        if let Some(reserved) = &self.reserved {
            // If the filter has an overflow part, the reserved part no longer changes.
            let counted = out.counted_items.filter(|_| self.overflow.is_none());
            let items = counted.unwrap_or_else(|| reserved.items.load(Ordering::Relaxed));
            reserved.write_image(items, out)?;
        }
        match &self.overflow {
            Some(overflow) => out.file(overflow),
            None => Ok(()),
        }
    }

    /// Reads the output of [`write_image`](Self::write_image), to the end of the image.
    pub(crate) fn read_image(from: &mut Reader<'_>) -> Result<Self, ImageError> {
        let (rate, capacity) = (from.f64()?, from.u64()?);
        let expansion = match from.u64()? {
            0 => None,
            one_more => Some(u32::try_from(one_more - 1).map_err(|_| ImageError::Value)?),
        };
        let parts = from.u64()?;
        let hasher = if parts & 4 == 4 { from.hasher()? } else { OLD_HASHER };
        let reserved =
            if parts & 1 == 1 { Some(Reserved::read_image(from, hasher)?) } else { None };
        let overflow = if parts & 2 == 2 { Some(Box::new(from.filter()?)) } else { None };
        let is_sound = rate > 0.0
            && rate < 1.0
            && matches!(parts, 1..=3 | 5..=7)
            && overflow.as_deref().is_none_or(|overflow| {
                let is_its = grown(overflow).is_some_and(|filter| filter.hasher() == hasher);
                is_its && expansion.is_some()
            });
        if is_sound {
            Ok(Self { rate, capacity, expansion, reserved, overflow })
        } else {
            Err(ImageError::Value)
        }
    }
}

impl Reserved {
    fn write_image(&self, items: u64, out: &mut Writer<'_>) -> std::io::Result<()> {
        let plan = self.plan();
        out.plan(&plan)?;
        out.u64(items)?;
        if self.has_bits() { out.words(self.words()) } else { out.zeros(plan.bytes()) }
    }

    fn read_image(from: &mut Reader<'_>, hasher: Hasher) -> Result<Self, ImageError> {
        let plan = from.plan()?;
        if !matches!(plan.kind(), Kind::SplitBlock | Kind::Classic) {
            return Err(ImageError::Value);
        }
        // Later inserts must not overflow the count of a crafted image.
        let items = from.u64()?.min(i64::MAX as u64);
        if !from.is_new {
            from.expect_bytes(plan.bytes())?;
        }
        let mut reserved = Self::new(&plan, hasher).map_err(|_| ImageError::Memory)?;
        // The image of a new filter contains no bits.
        let len_words = if from.is_new { 0 } else { plan.bytes() / 8 };
        if reserved.has_bits() {
            let mut words = reserved.words()[..len_words as usize].iter();
            from.words(len_words, |bits| {
                words.next().expect("as many words").store(bits, Ordering::Relaxed);
            })?;
        } else {
            let mut small = Vec::new();
            from.words(len_words, |bits| small.push(bits))?;
            if small.iter().any(|&word| word != 0) {
                reserved.make_bits().map_err(|_| ImageError::Memory)?;
            }
            for (word, bits) in reserved.words().iter().zip(small) {
                word.store(bits, Ordering::Relaxed);
            }
        }
        reserved.items.store(items, Ordering::Relaxed);
        Ok(reserved)
    }
}
