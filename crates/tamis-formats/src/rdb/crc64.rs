//! The checksum of RDB files and of what `DUMP` gives: CRC-64 with Jones' polynomial, reflected, without a first or last inversion.
//!
//! Sixteen bytes at a time by a table for each of them: one byte at a time each step waits for the one before, 0.3 GB/s.
//!
//! Source: Kounavis and Berry, "Novel Table Lookup-Based Algorithms for High-Performance CRC Generation" (2008).

/// Computes the checksum.
pub(crate) fn crc64(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<WIDTH>();
    let mut crc = 0_u64;
    for block in blocks {
        let mut mixed = *block;
        for (byte, of_crc) in mixed.iter_mut().zip(crc.to_le_bytes()) {
            *byte ^= of_crc;
        }
        crc = 0;
        for (i, &byte) in mixed.iter().enumerate() {
            crc ^= TABLES[WIDTH - 1 - i][usize::from(byte)];
        }
    }
    rest.iter().fold(crc, |crc, &byte| TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

/// Bytes that are taken at a time.
const WIDTH: usize = 16;

/// The checksums of single bytes, with as many zeros behind them as the table's number.
static TABLES: [[u64; 256]; WIDTH] = tables();

const fn tables() -> [[u64; 256]; WIDTH] {
    // 0xad93d23594c935a9 with its bits in reverse.
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    let mut tables = [[0; 256]; WIDTH];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u64, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < WIDTH {
        byte = 0;
        while byte < 256 {
            let crc = tables[zeros - 1][byte];
            tables[zeros][byte] = tables[0][(crc & 0xff) as usize] ^ crc >> 8;
            byte += 1;
        }
        zeros += 1;
    }
    tables
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
        #[test]
        fn blocks_sum_as_single_bytes(bytes: Vec<u8>) {
            let one_by_one = bytes
                .iter()
                .fold(0, |crc, &byte| TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8);
            prop_assert_eq!(crc64(&bytes), one_by_one);
        }
    }
}
