//! The rows of the commands for strings.

use crate::command::Command;
use crate::command::Flag::{DenyOom, Fast, ReadOnly, Write};
use crate::command::arity::Arity::{AtLeast, Exactly};
use crate::command::category::Category::{
    Fast as FastGroup, Read as ReadGroup, Slow, String as StringGroup, Write as WriteGroup,
};
use crate::command::handler::{Handler, ReadKeys, WriteKeys};
use crate::command::keys::{Access, Keys};
use crate::string;
use crate::table::row::{KEY, UPDATE_KEY, read, row, write};

pub(super) const ROWS: &[Command] = &[
    row("APPEND", Exactly(3), "key value", write(string::append))
        .summary("Appends to a string; creates it if it does not exist")
        .complexity("O(n), n the length of the value")
        .since("2.0.0")
        .marks(&[Write, DenyOom, Fast], &[StringGroup, WriteGroup, FastGroup]),
    row("DECR", Exactly(2), "key", write(string::decrement))
        .summary("Decrements a number by one")
        .keys(UPDATE_KEY)
        .marks(&[Write, DenyOom, Fast], &[StringGroup, WriteGroup, FastGroup]),
    row("DECRBY", Exactly(3), "key decrement", write(string::decrement_by))
        .summary("Decrements a number")
        .keys(UPDATE_KEY)
        .marks(&[Write, DenyOom, Fast], &[StringGroup, WriteGroup, FastGroup]),
    row("GET", Exactly(2), "key", read(string::get))
        .summary("Returns a string")
        .marks(&[ReadOnly, Fast], &[StringGroup, ReadGroup, FastGroup]),
    row("GETEX", AtLeast(2), "key [EX seconds | PX milliseconds | EXAT time | PXAT time | PERSIST]", write(string::get_and_expire))
        .summary("Returns a string and sets or removes its expiry")
        .since("6.2.0")
        .keys(UPDATE_KEY)
        .marks(&[Write, Fast], &[StringGroup, WriteGroup, FastGroup]),
    row("GETRANGE", Exactly(4), "key start end", read(string::get_range))
        .summary("Returns a part of a string")
        .complexity("O(n), n the length of the part")
        .since("2.4.0")
        .marks(&[ReadOnly], &[StringGroup, ReadGroup, Slow]),
    row("INCR", Exactly(2), "key", write(string::increment))
        .summary("Increments a number by one")
        .keys(UPDATE_KEY)
        .marks(&[Write, DenyOom, Fast], &[StringGroup, WriteGroup, FastGroup]),
    row("INCRBY", Exactly(3), "key increment", write(string::increment_by))
        .summary("Increments a number")
        .keys(UPDATE_KEY)
        .marks(&[Write, DenyOom, Fast], &[StringGroup, WriteGroup, FastGroup]),
    row("MGET", AtLeast(2), "key [key ...]", Handler::ReadKeys(ReadKeys::GetEach))
        .summary("Returns several strings")
        .complexity("O(n), n the number of keys")
        .keys(Keys::ALL.with(Access::READ))
        .marks(&[ReadOnly, Fast], &[StringGroup, ReadGroup, FastGroup]),
    row("MSET", AtLeast(3), "key value [key value ...]", Handler::WriteKeys(WriteKeys::SetEach))
        .summary("Sets several strings at once")
        .complexity("O(n), n the number of keys")
        .since("1.0.1")
        .keys(Keys::at(1, -1, 2).with(Access::WRITE))
        .marks(&[Write, DenyOom], &[StringGroup, WriteGroup, Slow]),
    row("PSETEX", Exactly(4), "key milliseconds value", write(string::set_millis))
        .summary("Sets a string that expires after some milliseconds")
        .since("2.6.0")
        .marks(&[Write, DenyOom], &[StringGroup, WriteGroup, Slow]),
    row("SET", AtLeast(3), "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT time | PXAT time | KEEPTTL]", write(string::set))
        .summary("Sets a string")
        .keys(Keys::ONE.with(Access::WRITE).reading_with("GET"))
        .marks(&[Write, DenyOom], &[StringGroup, WriteGroup, Slow]),
    row("SETEX", Exactly(4), "key seconds value", write(string::set_seconds))
        .summary("Sets a string that expires after some seconds")
        .since("2.0.0")
        .marks(&[Write, DenyOom], &[StringGroup, WriteGroup, Slow]),
    row("SETNX", Exactly(3), "key value", write(string::set_absent))
        .summary("Sets a string if the key does not exist")
        .marks(&[Write, DenyOom, Fast], &[StringGroup, WriteGroup, FastGroup]),
    row("SETRANGE", Exactly(4), "key offset value", write(string::set_range))
        .summary("Overwrites a part of a string")
        .complexity("O(n), n the length of the part")
        .since("2.2.0")
        .marks(&[Write, DenyOom], &[StringGroup, WriteGroup, Slow]),
    row("STRLEN", Exactly(2), "key", read(string::len))
        .summary("Returns the length of a string")
        .since("2.2.0")
        .keys(KEY)
        .marks(&[ReadOnly, Fast], &[StringGroup, ReadGroup, FastGroup]),
];
