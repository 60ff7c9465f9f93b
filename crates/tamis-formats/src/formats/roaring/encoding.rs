//! Writes the containers of a Roaring bitmap.

use tamis::CompressedSet;

use crate::formats::roaring::containers::{
    BITMAP_BYTES, COOKIE, COOKIE_WITH_RUNS, MAX_LIST, MIN_OFFSETS,
};

/// The plan of a container, which stores the values in a range of 65,536 integers.
pub(super) struct ContainerPlan {
    /// The common high bits of the values: the values shifted right by 16 bits.
    pub(super) key: u64,
    count: u32,
    runs: u32,
    is_run: bool,
}

impl ContainerPlan {
    pub(super) fn of(key: u64, lows: &[u16], has_runs: bool) -> Self {
        let breaks = lows.windows(2).filter(|pair| pair[1] - pair[0] != 1).count() as u32;
        let (count, runs) = (lows.len() as u32, breaks + 1);
        let otherwise = if count <= MAX_LIST { 2 * count } else { BITMAP_BYTES as u32 };
        Self { key, count, runs, is_run: has_runs && 2 + 4 * runs < otherwise }
    }

    pub(super) fn len_bytes(&self) -> u32 {
        match self.count {
            _ if self.is_run => 2 + 4 * self.runs,
            ..=MAX_LIST => 2 * self.count,
            _ => BITMAP_BYTES as u32,
        }
    }

    pub(super) fn write(&self, lows: &[u16], out: &mut Vec<u8>) {
        if self.is_run {
            out.extend((self.runs as u16).to_le_bytes());
            for run in lows.chunk_by(|a, b| b - a == 1) {
                out.extend(run[0].to_le_bytes());
                out.extend(((run.len() - 1) as u16).to_le_bytes());
            }
        } else if self.count <= MAX_LIST {
            out.extend(lows.iter().flat_map(|low| low.to_le_bytes()));
        } else {
            let start = out.len();
            out.resize(start + BITMAP_BYTES, 0);
            for &low in lows {
                out[start + usize::from(low) / 8] |= 1 << (low % 8);
            }
        }
    }
}

/// Calls `visit` for each range that contains values, in order.
pub(super) fn each_container<E>(
    set: &CompressedSet,
    mut visit: impl FnMut(u64, &[u16]) -> Result<(), E>,
) -> Result<(), E> {
    let mut lows = Vec::new();
    let mut values = set.iter().peekable();
    while let Some(&first) = values.peek() {
        lows.clear();
        while let Some(value) = values.next_if(|value| value >> 16 == first >> 16) {
            lows.push(value as u16);
        }
        visit(first >> 16, &lows)?;
    }
    Ok(())
}

/// Returns the bytes before the containers of a 32-bit bitmap.
pub(super) fn header(map: &[ContainerPlan]) -> Vec<u8> {
    let mut header = Vec::new();
    let has_runs = map.iter().any(|it| it.is_run);
    if has_runs {
        header.extend((COOKIE_WITH_RUNS | (map.len() as u32 - 1) << 16).to_le_bytes());
        let flags = map.chunks(8).map(|eight| {
            eight.iter().enumerate().fold(0, |flags, (i, it)| flags | u8::from(it.is_run) << i)
        });
        header.extend(flags);
    } else {
        header.extend(COOKIE.to_le_bytes());
        header.extend((map.len() as u32).to_le_bytes());
    }
    for it in map {
        header.extend((it.key as u16).to_le_bytes());
        header.extend(((it.count - 1) as u16).to_le_bytes());
    }
    if !has_runs || map.len() >= MIN_OFFSETS {
        let mut at = (header.len() + 4 * map.len()) as u32;
        for it in map {
            header.extend(at.to_le_bytes());
            at += it.len_bytes();
        }
    }
    header
}
