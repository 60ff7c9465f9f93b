//! Computes the sizes of filters that store their items in blocks of eight lanes.

#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::geometry::Geometry;
use crate::plan::rates::{LANES, blocks_deviation, blocks_rate, same_pattern_rate};
use crate::plan::search::{fewer, smallest_from};
use crate::plan::sizing::{Best, MAX_BITS, Sample, Sizing};

/// The number of bits of a cache line.
const LINE_BITS: u64 = 512;

/// The sizes of a kind with blocks. Kinds with blocks differ only in the values of their
/// `BlockSizing`.
pub(crate) struct BlockSizing {
    /// Restores a geometry from its number in files.
    pub geometry: fn(u32) -> Option<Geometry>,
    /// The one or two default geometries of the kind. Of two geometries, a plan takes the geometry
    /// with fewer bits.
    pub usual: &'static [Geometry],
    /// Returns the sizes of the blocks of a geometry.
    pub blocks: fn(Geometry) -> Blocks,
}

/// The blocks of a geometry.
///
/// A place contains all data that belongs to the position of an item. A place is one block, or one
/// block for each bit of a counter, or one block for each slice of a window.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    /// The number of bits of a lane. An item sets one bit in each of the eight lanes of a block.
    /// Counting filters and windows have several blocks at a place. The lanes of counting filters
    /// and windows are narrow, so that a place fits in one cache line where possible.
    pub lane_bits: u64,
    /// The number of blocks at a place.
    pub layers: u64,
    /// The number of bits before the places.
    pub head_bits: u64,
    /// The maximum number of places, if the file format limits this number.
    pub max_places: u64,
    /// The number of slices of a window's span. `None` for all kinds except windows.
    pub slices: Option<u32>,
}

impl Blocks {
    /// Blocks of a kind with one block at each place and lanes of 64 bits.
    pub const PLAIN: Blocks =
        Blocks { lane_bits: 64, layers: 1, head_bits: 0, max_places: u64::MAX, slices: None };

    /// Returns the number of bits of a place.
    pub const fn place_bits(self) -> u64 {
        LANES as u64 * self.lane_bits * self.layers
    }

    /// Returns how many places a filter of `bits` bits has.
    pub const fn places(self, bits: u64) -> u64 {
        bits.saturating_sub(self.head_bits) / self.place_bits()
    }

    /// Returns the maximum number of places in a filter of at most `max_bits` bits.
    fn most_places(self, max_bits: u64) -> u64 {
        self.places(max_bits.min(MAX_BITS)).min(self.max_places)
    }

    const fn bits(self, places: u64) -> u64 {
        self.head_bits + places * self.place_bits()
    }

    /// Returns the rate of a filter with `places` places, and the slope of the rate. In a window,
    /// `items` are distributed evenly over the slices. A lookup in a window tests one additional
    /// slice.
    fn rate(self, items: u64, places: u64) -> (f64, f64) {
        let Some(slices) = self.slices else { return self.rate_of_blocks(items, places) };
        let items = items.div_ceil(u64::from(slices));
        let (of_slice, slope) = self.rate_of_blocks(items, places);
        // The rate is 1 − (1 − r)ⁿ. The form with `ln_1p` and `exp_m1` keeps the digits of a low
        // rate.
        let n = f64::from(slices) + 1.0;
        let rate = -(n * (-of_slice).ln_1p()).exp_m1();
        (rate, slope * n * of_slice * (1.0 - rate) / ((1.0 - of_slice) * rate))
    }

    /// Returns the rate of a filter of single blocks, and the slope of the rate.
    fn rate_of_blocks(self, items: u64, places: u64) -> (f64, f64) {
        let (of_lanes, slope) = blocks_rate(items, places, self.lane_bits);
        let of_pattern = same_pattern_rate(items as f64, places as f64, self.lane_bits);
        let rate = (of_lanes + of_pattern).min(1.0);
        if rate == 0.0 { (rate, slope) } else { (rate, (of_lanes * slope + of_pattern) / rate) }
    }

    /// Guesses how many places keep `rate`. At most rates, the guess differs from the result by at
    /// most three percent.
    fn guess_places(self, items: u64, rate: f64) -> f64 {
        let (items, rate) = match self.slices {
            Some(slices) => {
                let n = f64::from(slices);
                (items as f64 / n, -((-rate).ln_1p() / (n + 1.0)).exp_m1())
            }
            None => (items as f64, rate),
        };
        let l = self.lane_bits as f64;
        // `filled` is the share of set bits in a lane at `rate`. `even` is the number of items in a
        // block that sets the share `filled` of the bits.
        let filled = rate.sqrt().sqrt().sqrt();
        let even = -l * (-filled).ln_1p();
        let mean = if even < 1.5 {
            // At a low mean, few blocks have more than two items. With mean λ, E f is about (λ +
            // 127λ²)/L⁸.
            ((1.0 + 508.0 * rate * l.powi(8)).sqrt() - 1.0) / 254.0
        } else {
            // E f is about f + f″·mean/2. The last term was fitted to computed rates.
            even * (1.0 - (8.0 * (1.0 - filled) - 1.0) / (2.0 * l * filled))
                + (1.0 - filled - (1.0 + l / 16.0) * filled * filled) / (0.28 + 0.11 * even)
        };
        items / mean
    }

    /// Returns the fewest bits, at most `max_bits`, that keep `rate`. The search starts from
    /// `guess`, an estimate of the number of places (block positions).
    fn fewest_from(self, guess: f64, items: u64, rate: f64, max_bits: u64) -> Option<u64> {
        let rate_of = |places| self.rate(items, places);
        let places = smallest_from(guess, self.most_places(max_bits), rate, rate_of)?;
        Some(self.bits(places))
    }

    /// Returns the fewest bits, at most `max_bits`, that keep `rate` at `items`.
    pub fn fewest_within(self, items: u64, rate: f64, max_bits: u64) -> Option<u64> {
        self.fewest_from(self.guess_places(items, rate), items, rate, max_bits)
    }
}

impl Sizing for BlockSizing {
    fn geometry(&self, number: u32) -> Option<Geometry> {
        (self.geometry)(number)
    }

    fn usual_geometry(&self, items: u64, rate: f64) -> Geometry {
        match self.usual {
            [geometry] => *geometry,
            all => self.fewest_usual(items, rate).map_or(all[0], |(_, geometry)| geometry),
        }
    }

    fn fewest(&self, geometry: Geometry, items: u64, rate: f64) -> Option<(u64, Geometry)> {
        let bits = (self.blocks)(geometry).fewest_within(items, rate, MAX_BITS)?;
        Some((bits, geometry))
    }

    fn fewest_usual(&self, items: u64, rate: f64) -> Option<(u64, Geometry)> {
        let [first, second] = *self.usual else { return self.fewest(self.usual[0], items, rate) };
        let guess = |geometry| (self.blocks)(geometry).guess_places(items, rate);
        fewer([first, second].map(guess), [first, second], MAX_BITS, |geometry, guess, max_bits| {
            (self.blocks)(geometry).fewest_from(guess, items, rate, max_bits)
        })
    }

    fn usable_bits(&self, geometry: Geometry, max_bytes: u64) -> Option<u64> {
        let blocks = (self.blocks)(geometry);
        let left = max_bytes.saturating_sub(blocks.head_bits / 8);
        let places = (left / (blocks.place_bits() / 8)).min(blocks.most_places(MAX_BITS));
        (places > 0).then(|| blocks.bits(places))
    }

    fn best(&self, geometry: Geometry, items: u64, bits: u64) -> Best {
        Best { rate: self.rate_at(geometry, bits, items), geometry, bits }
    }

    fn rate_at(&self, geometry: Geometry, bits: u64, items: u64) -> f64 {
        let blocks = (self.blocks)(geometry);
        blocks.rate(items, blocks.places(bits)).0
    }

    fn is_valid(&self, geometry: Geometry, bits: u64) -> bool {
        let blocks = (self.blocks)(geometry);
        bits.saturating_sub(blocks.head_bits).is_multiple_of(blocks.place_bits())
            && (1..=blocks.most_places(MAX_BITS)).contains(&blocks.places(bits))
    }

    fn sample(&self, geometry: Geometry, bits: u64, items: u64) -> Option<Sample> {
        let blocks = (self.blocks)(geometry);
        let (places, parts) = (blocks.places(bits), blocks.slices.map_or(1.0, f64::from));
        let n = items as f64 / parts;
        let deviation = blocks_deviation(n.ceil() as u64, places, blocks.lane_bits);
        Some(Sample {
            parts,
            // An item sets one random bit in each lane of a block.
            bits: (places * blocks.lane_bits) as f64,
            draws: n,
            rate_deviation: (parts + 1.0).sqrt() * deviation,
        })
    }

    fn part_bits(&self, geometry: Geometry, max_bits: u64) -> Option<u64> {
        let blocks = (self.blocks)(geometry);
        match blocks.places(max_bits) {
            0 => None,
            places => Some(blocks.bits(places)),
        }
    }

    fn cache_lines(&self, geometry: Geometry) -> u32 {
        // A place occupies adjacent cache lines. If the size of a place is neither a multiple of a
        // line nor half a line, some places touch one additional line.
        (self.blocks)(geometry).place_bits().div_ceil(LINE_BITS) as u32
    }
}
