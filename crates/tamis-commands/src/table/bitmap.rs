//! The rows of the commands for bitmaps.

use crate::bitmap;
use crate::command::Command;
use crate::command::Flag::{DenyOom, Fast, ReadOnly, Write};
use crate::command::arity::Arity::{AtLeast, Exactly};
use crate::command::category::Category::{
    Bitmap as BitmapGroup, Fast as FastGroup, Read as ReadGroup, Slow, Write as WriteGroup,
};
use crate::command::handler::{Handler, WriteKeys};
use crate::command::keys::{Access, Keys};
use crate::table::row::{UPDATE_KEY, read, row, write};

pub(super) const ROWS: &[Command] = &[
    row("BITCOUNT", AtLeast(2), "key [start end [BYTE | BIT]]", read(bitmap::count))
        .summary("Counts the bits of a string that are set")
        .complexity("O(n), n the length of the range")
        .since("2.6.0")
        .marks(&[ReadOnly], &[ReadGroup, BitmapGroup, Slow]),
    row("BITFIELD", AtLeast(2), "key [GET type offset | [OVERFLOW WRAP|SAT|FAIL] SET type offset value | INCRBY type offset increment ...]", write(bitmap::bitfield))
        .summary("Reads and writes integers of any width in a bitmap")
        .complexity("O(1) for each integer")
        .since("3.2.0")
        .keys(UPDATE_KEY)
        .marks(&[Write, DenyOom], &[WriteGroup, BitmapGroup, Slow]),
    row("BITFIELD_RO", AtLeast(2), "key [GET type offset ...]", read(bitmap::bitfield_read_only))
        .summary("Reads integers of any width in a bitmap")
        .complexity("O(1) for each integer")
        .since("6.0.0")
        .marks(&[ReadOnly, Fast], &[ReadGroup, BitmapGroup, FastGroup]),
    row("BITOP", AtLeast(4), "AND|OR|XOR|NOT destkey key [key ...]", Handler::WriteKeys(WriteKeys::BitOp))
        .summary("Combines bitmaps and stores the result under a key")
        .complexity("O(n), n the length of the longest string")
        .since("2.6.0")
        .keys(Keys::at(2, -1, 1).with(Access::WRITE).others(Access::READ))
        .marks(&[Write, DenyOom], &[WriteGroup, BitmapGroup, Slow]),
    row("BITPOS", AtLeast(3), "key bit [start [end [BYTE | BIT]]]", read(bitmap::position))
        .summary("Finds the first bit of a string that is set, or that is clear")
        .complexity("O(n), n the length of the range")
        .since("2.8.7")
        .marks(&[ReadOnly], &[ReadGroup, BitmapGroup, Slow]),
    row("GETBIT", Exactly(3), "key offset", read(bitmap::get_bit))
        .summary("Returns a bit of a string")
        .since("2.2.0")
        .marks(&[ReadOnly, Fast], &[ReadGroup, BitmapGroup, FastGroup]),
    row("SETBIT", Exactly(4), "key offset value", write(bitmap::set_bit))
        .summary("Sets or clears a bit of a string and returns its old value")
        .since("2.2.0")
        .keys(UPDATE_KEY)
        .marks(&[Write, DenyOom], &[WriteGroup, BitmapGroup, Slow]),
];
