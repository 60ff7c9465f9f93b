//! The forms in which the values of a Roaring bitmap are written.

/// How the values of a Roaring bitmap are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoaringForm {
    /// In the portable format, with 32 bits if all values fit, else with 64.
    Bits32,
    /// In the portable format with 64 bits.
    Bits64,
    /// In the legacy form of Java's `Roaring64NavigableMap`, with 64 bits.
    Java {
        /// Whether the Java program takes values from 2⁶³ on as negative numbers. They come first.
        is_signed: bool,
    },
}
