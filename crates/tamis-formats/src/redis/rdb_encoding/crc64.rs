//! The checksum of RDB files and of the result of `DUMP`: CRC-64 with the Jones polynomial, reflected, without
//! inversion.

use crc_fast::{CrcAlgorithm, checksum};

/// Computes the CRC-64 checksum of `bytes`.
pub(crate) fn crc64(bytes: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc64Redis, bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_check_value_is_that_of_redis() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    proptest! {
        // Tests lengths near the widths of whole SIMD vectors, at every alignment.
        #[test]
        fn vectors_sum_as_single_bits(bytes in prop::collection::vec(any::<u8>(), 0..2_000), start in 0..64_usize) {
            let bytes = bytes.get(start..).unwrap_or_default();
            prop_assert_eq!(crc64(bytes), bit_by_bit(bytes));
        }
    }

    fn bit_by_bit(bytes: &[u8]) -> u64 {
        // The polynomial 0xad93d23594c935a9 with its bits in reverse order.
        const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
        bytes.iter().fold(0, |crc, &byte| {
            (0..8).fold(crc ^ u64::from(byte), |crc, _| crc >> 1 ^ (POLYNOMIAL * (crc & 1)))
        })
    }
}
