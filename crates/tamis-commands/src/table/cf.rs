//! The rows of the commands for cuckoo filters: `CF.*`.

use crate::batch::Family;
use crate::command::Command;
use crate::command::arity::Arity::{AtLeast, Exactly};
use crate::command::category::Category::{
    Cuckoo, Fast as FastGroup, Read as ReadGroup, Slow, Write as WriteGroup,
};
use crate::table::row::{ADDS, CHANGES, CHANGES_ALL, READS, contains, read, row, write};
use crate::{bf, cf};

pub(super) const ROWS: &[Command] = &[
    row("CF.ADD", Exactly(3), "key item", write(cf::add))
        .summary("Adds an item to a cuckoo filter, also if the item is in it already")
        .complexity("O(n), n the number of sub-filters")
        .marks(ADDS, &[WriteGroup, Cuckoo, Slow]),
    row("CF.ADDNX", Exactly(3), "key item", write(cf::add_absent))
        .summary("Adds an item to a cuckoo filter unless the item may be in it")
        .complexity("O(n), n the number of sub-filters")
        .marks(ADDS, &[WriteGroup, Cuckoo, Slow]),
    row("CF.COMPACT", AtLeast(1), "key", write(cf::compact))
        .summary("Moves items of a cuckoo filter into free slots of its older sub-filters")
        .complexity("O(n), n the number of slots")
        .marks(CHANGES_ALL, &[WriteGroup, Cuckoo, Slow]),
    row("CF.COUNT", Exactly(3), "key item", read(cf::count))
        .summary("Estimates how many times an item is in a cuckoo filter")
        .complexity("O(n), n the number of sub-filters")
        .marks(READS, &[ReadGroup, Cuckoo, Slow]),
    row("CF.DEBUG", Exactly(2), "key", read(cf::debug))
        .summary("Describes the sub-filters of a cuckoo filter")
        .marks(READS, &[ReadGroup, Cuckoo, Slow]),
    row("CF.DEL", Exactly(3), "key item", write(cf::delete))
        .summary("Deletes one copy of an item from a cuckoo filter")
        .complexity("O(n), n the number of sub-filters")
        .marks(CHANGES, &[WriteGroup, Cuckoo, FastGroup]),
    row("CF.EXISTS", Exactly(3), "key item", contains(Family::Cuckoo, true))
        .summary("Tests whether an item may be in a cuckoo filter; the answer no is certain")
        .complexity("O(n), n the number of sub-filters")
        .marks(READS, &[ReadGroup, Cuckoo, Slow]),
    row("CF.INFO", Exactly(2), "key", read(cf::info))
        .summary("Returns the memory, sub-filters, items and options of a cuckoo filter")
        .marks(READS, &[ReadGroup, FastGroup, Cuckoo]),
    row("CF.INSERT", AtLeast(4), "key [CAPACITY n] [NOCREATE] ITEMS item [item ...]", write(cf::insert))
        .summary("Adds items to a cuckoo filter, also those in it already; creates it with the given options if it does not exist")
        .complexity("O(n * m), n the number of items, m of sub-filters")
        .items_start(bf::items_start)
        .marks(ADDS, &[WriteGroup, Cuckoo, Slow]),
    row("CF.INSERTNX", AtLeast(4), "key [CAPACITY n] [NOCREATE] ITEMS item [item ...]", write(cf::insert_absent))
        .summary("Adds to a cuckoo filter the items that are not in it; creates it with the given options if it does not exist")
        .complexity("O(n * m), n the number of items, m of sub-filters")
        .items_start(bf::items_start)
        .marks(ADDS, &[WriteGroup, Cuckoo, Slow]),
    row("CF.LOADCHUNK", Exactly(4), "key position data", write(cf::load_chunk))
        .summary("Restores a cuckoo filter from the chunks of CF.SCANDUMP")
        .complexity("O(n), n the length of the data")
        .marks(ADDS, &[WriteGroup, Cuckoo, Slow]),
    row("CF.MEXISTS", AtLeast(3), "key item [item ...]", contains(Family::Cuckoo, false))
        .summary("Tests which items may be in a cuckoo filter; the answer no is certain")
        .complexity("O(n * m), n the number of items, m of sub-filters")
        .marks(READS, &[ReadGroup, Cuckoo, Slow]),
    row("CF.RESERVE", AtLeast(3), "key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]", write(cf::reserve))
        .summary("Creates an empty cuckoo filter with a capacity")
        .marks(ADDS, &[WriteGroup, FastGroup, Cuckoo]),
    row("CF.SCANDUMP", Exactly(3), "key position", read(cf::scan_dump))
        .summary("Returns the next chunk of a cuckoo filter for CF.LOADCHUNK")
        .complexity("O(n), n the length of the chunk")
        .marks(READS, &[ReadGroup, Cuckoo, Slow]),
];
