//! The rows of the commands for Bloom filters: `BF.*`.

use crate::batch::Family;
use crate::bf;
use crate::command::Command;
use crate::command::arity::Arity::{AtLeast, Exactly};
use crate::command::category::Category::{
    Bloom, Fast as FastGroup, Read as ReadGroup, Slow, Write as WriteGroup,
};
use crate::table::row::{ADDS, READS, contains, insert, read, row, write};

pub(super) const ROWS: &[Command] = &[
    row("BF.ADD", Exactly(3), "key item", insert(Family::Bloom, true))
        .summary("Adds an item to a Bloom filter; creates the filter if it does not exist")
        .marks(ADDS, &[WriteGroup, Bloom, Slow]),
    row("BF.CARD", Exactly(2), "key", read(bf::card))
        .summary("Returns how many items were added to a Bloom filter as new")
        .since("2.4.4")
        .marks(READS, &[ReadGroup, FastGroup, Bloom]),
    row("BF.DEBUG", Exactly(2), "key", read(bf::debug))
        .summary("Describes the layers of a Bloom filter")
        .complexity("O(n), n the number of layers")
        .marks(READS, &[ReadGroup, Bloom, Slow]),
    row("BF.EXISTS", Exactly(3), "key item", contains(Family::Bloom, true))
        .summary("Tests whether an item may be in a Bloom filter; the answer no is certain")
        .marks(READS, &[ReadGroup, Bloom, Slow]),
    row(
        "BF.INFO",
        AtLeast(2),
        "key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]",
        read(bf::info),
    )
    .summary("Returns the capacity, memory, layers, items and expansion of a Bloom filter")
    .marks(READS, &[ReadGroup, FastGroup, Bloom]),
    row(
        "BF.INSERT",
        AtLeast(4),
        "key [CAPACITY n] [ERROR e] [EXPANSION n] [NOCREATE] [NONSCALING] ITEMS item [item ...]",
        write(bf::insert),
    )
    .summary("Adds items to a Bloom filter; creates it with the given options if it does not exist")
    .complexity("O(n), n the number of items")
    .items_start(bf::items_start)
    .marks(ADDS, &[WriteGroup, Bloom, Slow]),
    row("BF.LOADCHUNK", Exactly(4), "key iterator data", write(bf::load_chunk))
        .summary("Restores a Bloom filter from the chunks of BF.SCANDUMP")
        .complexity("O(n), n the length of the data")
        .marks(ADDS, &[WriteGroup, Bloom, Slow]),
    row("BF.MADD", AtLeast(3), "key item [item ...]", insert(Family::Bloom, false))
        .summary("Adds items to a Bloom filter; creates the filter if it does not exist")
        .complexity("O(n), n the number of items")
        .marks(ADDS, &[WriteGroup, Bloom, Slow]),
    row("BF.MEXISTS", AtLeast(3), "key item [item ...]", contains(Family::Bloom, false))
        .summary("Tests which items may be in a Bloom filter; the answer no is certain")
        .complexity("O(n), n the number of items")
        .marks(READS, &[ReadGroup, Bloom, Slow]),
    row(
        "BF.RESERVE",
        AtLeast(4),
        "key error_rate capacity [EXPANSION n] [NONSCALING]",
        write(bf::reserve),
    )
    .summary("Creates an empty Bloom filter with a false positive rate and a capacity")
    .marks(ADDS, &[WriteGroup, FastGroup, Bloom]),
    row("BF.SCANDUMP", Exactly(3), "key iterator", read(bf::scan_dump))
        .summary("Returns the next chunk of a Bloom filter for BF.LOADCHUNK")
        .complexity("O(n), n the length of the chunk")
        .marks(READS, &[ReadGroup, Bloom, Slow]),
];
