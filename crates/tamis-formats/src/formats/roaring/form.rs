//! The written forms of a Roaring bitmap.

/// The form in which the values of a Roaring bitmap are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoaringForm {
    /// The portable format. The width is 32 bits if all values fit into 32 bits, and 64 bits if a value does not fit
    /// into 32 bits.
    Bits32,
    /// The portable format with 64 bits.
    Bits64,
    /// The legacy form of Java's `Roaring64NavigableMap`, with 64 bits.
    Java {
        /// Whether the Java program reads values from 2⁶³ as negative numbers. Negative numbers are stored first.
        is_signed: bool,
    },
}
