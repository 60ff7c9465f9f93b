//! The rows of the commands for filters of any kind: `TM.*`.

use crate::batch::Family;
use crate::command::Command;
use crate::command::Flag::{DenyOom, File, Module, Write};
use crate::command::arity::Arity::{self, AtLeast, Exactly};
use crate::command::category::Category::{
    Fast as FastGroup, Read as ReadGroup, Slow, Tamis, Write as WriteGroup,
};
use crate::command::handler::{Handler, WriteKeys};
use crate::command::keys::{Access, Keys};
use crate::table::row::{ADDS, CHANGES, READS, READS_ALL, contains, insert, read, row, write};
use crate::tm;

/// Creates the row of a `TM.*` command. Every `TM.*` command exists since the first version of Tamis.
const fn tm_row(
    name: &'static str,
    arity: Arity,
    syntax: &'static str,
    handler: Handler,
) -> Command {
    row(name, arity, syntax, handler).since("0.1.0")
}

pub(super) const ROWS: &[Command] = &[
    tm_row("TM.ADD", Exactly(3), "key item", insert(Family::Tamis, true))
        .summary("Adds an item to a filter; returns whether it is new")
        .marks(ADDS, &[WriteGroup, Tamis, Slow]),
    tm_row("TM.ADVANCE", Exactly(3), "key unix-milliseconds", write(tm::advance))
        .summary("Moves the clock of a window forward, as replicas do; items out of the window expire")
        .marks(CHANGES, &[WriteGroup, Tamis, FastGroup]),
    tm_row("TM.CLEAR", Exactly(2), "key", write(tm::clear))
        .summary("Removes all items of a filter; keeps its kind and its plan")
        .marks(&[Write, Module], &[WriteGroup, Tamis, Slow]),
    tm_row("TM.COUNT", AtLeast(3), "key item [item ...]", read(tm::count))
        .summary("Estimates how many times items are in a counting or cuckoo filter")
        .complexity("O(n), n the number of items")
        .items_start(|_| Some(2))
        .marks(READS, &[ReadGroup, Tamis, Slow]),
    tm_row("TM.DEL", AtLeast(3), "key item [item ...]", write(tm::delete))
        .summary("Deletes one copy of each item from a counting or cuckoo filter")
        .complexity("O(n), n the number of items")
        .items_start(|_| Some(2))
        .marks(CHANGES, &[WriteGroup, Tamis, Slow]),
    tm_row("TM.DUMP", Exactly(2), "key", read(tm::dump))
        .summary("Returns a filter as a file for TM.LOAD and the program tamis")
        .complexity("O(n), n the memory of the filter")
        .marks(READS_ALL, &[ReadGroup, Tamis, Slow]),
    tm_row("TM.EXISTS", Exactly(3), "key item", contains(Family::Tamis, true))
        .summary("Tests whether an item may be in a filter; the answer no is certain")
        .marks(READS, &[ReadGroup, Tamis, FastGroup]),
    tm_row("TM.INFO", Exactly(2), "key", read(tm::info))
        .summary("Returns the kind, plan, items, free capacity and present rate of a filter")
        .complexity("O(n), n the memory of the filter up to 8 MiB: a larger filter is estimated from a part")
        .marks(READS_ALL, &[ReadGroup, Tamis, Slow]),
    tm_row("TM.LOAD", AtLeast(3), "key data [REPLACE]", write(tm::load))
        .summary("Creates a filter from a file of tamis build or TM.DUMP")
        .complexity("O(n), n the length of the data")
        .marks(&[Write, DenyOom, Module, File(2)], &[WriteGroup, Tamis, Slow]),
    tm_row("TM.MADD", AtLeast(3), "key item [item ...]", insert(Family::Tamis, false))
        .summary("Adds items to a filter; returns which are new")
        .complexity("O(n), n the number of items")
        .marks(ADDS, &[WriteGroup, Tamis, Slow]),
    tm_row("TM.MERGE", AtLeast(3), "destination source [source ...]", Handler::WriteKeys(WriteKeys::Merge))
        .summary("Adds all items of the source filters to a filter of the same layout; creates it if it does not exist")
        .complexity("O(n), n the memory of the filters")
        .keys(Keys::ALL.with(Access::WRITE).others(Access::READ))
        .marks(ADDS, &[WriteGroup, Tamis, Slow]),
    tm_row("TM.MEXISTS", AtLeast(3), "key item [item ...]", contains(Family::Tamis, false))
        .summary("Tests which items may be in a filter; the answer no is certain")
        .complexity("O(n), n the number of items")
        .marks(READS, &[ReadGroup, Tamis, Slow]),
    tm_row("TM.PLAN", AtLeast(3), "[KIND kind] [ITEMS n] [RATE p] [MEMORY bytes]", Handler::Answer(tm::plan))
        .summary("Computes memory, items or rate from the other two, for each kind of filter")
        .marks(READS, &[ReadGroup, Tamis, FastGroup]),
    tm_row("TM.RESERVE", AtLeast(4), "key KIND kind [ITEMS n] [RATE p] [MEMORY bytes] [COUNTER bits] [BUCKET slots] [WINDOW millis | WINDOW n ITEMS] [SLICES n] [REFRESH] | key LIKE other", write(tm::reserve))
        .summary("Creates an empty filter of a kind from two of items, rate and memory, or with the layout of another filter")
        .keys(Keys::ONE.with(Access::WRITE).and_behind("LIKE"))
        .marks(ADDS, &[WriteGroup, Tamis, Slow]),
];
