//! The rows of the commands for keys of any type.

use crate::command::Command;
use crate::command::Flag::{DenyOom, Fast, Payload, ReadOnly, Write};
use crate::command::arity::Arity::{AtLeast, Exactly};
use crate::command::category::Category::{
    Dangerous, Fast as FastGroup, Keyspace, Read as ReadGroup, Slow, Write as WriteGroup,
};
use crate::command::handler::ReadKeys::{self, ExpireTime, TimeLeft};
use crate::command::handler::TimeUnit::{Millis, Seconds};
use crate::command::handler::WriteKeys::{self, ExpireAfter, ExpireAt};
use crate::command::keys::{Access, Keys};
use crate::string;
use crate::table::row::{KEY, READ_KEY, WRITE_KEY, read, reads, row, writes};

pub(super) const ROWS: &[Command] = &[
    row("COPY", AtLeast(3), "source destination [DB 0] [REPLACE]", writes(WriteKeys::Copy))
        .summary("Copies a value and its expiry to another key")
        .complexity("O(n), n the memory of the value")
        .since("6.2.0")
        .keys(Keys::TWO.with(Access::READ).others(Access::WRITE))
        .marks(&[Write, DenyOom], &[Keyspace, WriteGroup, Slow]),
    row("DBSIZE", Exactly(1), "", reads(ReadKeys::CountAll))
        .summary("Returns the number of keys")
        .marks(&[ReadOnly, Fast], &[Keyspace, ReadGroup, FastGroup]),
    row("DEL", AtLeast(2), "key [key ...]", writes(WriteKeys::Delete))
        .summary("Deletes keys")
        .complexity("O(n), n the number of keys")
        .keys(Keys::ALL.with(Access::WRITE))
        .marks(&[Write], &[Keyspace, WriteGroup, Slow]),
    row("DUMP", Exactly(2), "key", reads(ReadKeys::Dump))
        .summary(
            "Serializes a value for RESTORE; Redis reads it unless the value has a layout of Tamis",
        )
        .complexity("O(n), n the memory of the value")
        .since("2.6.0")
        .keys(READ_KEY)
        .marks(&[ReadOnly], &[Keyspace, ReadGroup, Slow]),
    row("EXISTS", AtLeast(2), "key [key ...]", reads(ReadKeys::CountExisting))
        .summary("Counts how many of the given keys exist")
        .complexity("O(n), n the number of keys")
        .keys(Keys::ALL.with(Access::ABOUT))
        .marks(&[ReadOnly, Fast], &[Keyspace, ReadGroup, FastGroup]),
    row("EXPIRE", AtLeast(3), "key seconds [NX | XX | GT | LT]", writes(ExpireAfter(Seconds)))
        .summary("Sets the seconds after which a key expires")
        .keys(WRITE_KEY)
        .marks(&[Write, Fast], &[Keyspace, WriteGroup, FastGroup]),
    row("EXPIREAT", AtLeast(3), "key unix-seconds [NX | XX | GT | LT]", writes(ExpireAt(Seconds)))
        .summary("Sets the time at which a key expires, in seconds since 1970")
        .since("1.2.0")
        .keys(WRITE_KEY)
        .marks(&[Write, Fast], &[Keyspace, WriteGroup, FastGroup]),
    row("EXPIRETIME", Exactly(2), "key", reads(ExpireTime(Seconds)))
        .summary("Returns the time at which a key expires, in seconds since 1970")
        .since("7.0.0")
        .keys(KEY)
        .marks(&[ReadOnly, Fast], &[Keyspace, ReadGroup, FastGroup]),
    row("FLUSHALL", AtLeast(1), "[ASYNC | SYNC]", writes(WriteKeys::Flush))
        .summary("Deletes all keys; frees their memory in the background unless SYNC")
        .complexity("O(n), n the number of keys")
        .marks(&[Write], &[Keyspace, WriteGroup, Slow, Dangerous]),
    row("FLUSHDB", AtLeast(1), "[ASYNC | SYNC]", writes(WriteKeys::Flush))
        .summary("Deletes all keys; frees their memory in the background unless SYNC")
        .complexity("O(n), n the number of keys")
        .marks(&[Write], &[Keyspace, WriteGroup, Slow, Dangerous]),
    row("KEYS", Exactly(2), "pattern", reads(ReadKeys::List))
        .summary("Lists the keys that match a pattern")
        .complexity("O(n), n the number of keys")
        .marks(&[ReadOnly], &[Keyspace, ReadGroup, Slow, Dangerous]),
    row(
        "OBJECT",
        AtLeast(2),
        "ENCODING key | FREQ key | IDLETIME key | REFCOUNT key | HELP",
        reads(ReadKeys::Object),
    )
    .summary("Returns how the value of a key is stored")
    .since("2.2.3")
    .marks(&[ReadOnly], &[Keyspace, ReadGroup, Slow]),
    row("PERSIST", Exactly(2), "key", writes(WriteKeys::Persist))
        .summary("Removes the expiry of a key")
        .since("2.2.0")
        .keys(WRITE_KEY)
        .marks(&[Write, Fast], &[Keyspace, WriteGroup, FastGroup]),
    row("PEXPIRE", AtLeast(3), "key milliseconds [NX | XX | GT | LT]", writes(ExpireAfter(Millis)))
        .summary("Sets the milliseconds after which a key expires")
        .since("2.6.0")
        .keys(WRITE_KEY)
        .marks(&[Write, Fast], &[Keyspace, WriteGroup, FastGroup]),
    row(
        "PEXPIREAT",
        AtLeast(3),
        "key unix-milliseconds [NX | XX | GT | LT]",
        writes(ExpireAt(Millis)),
    )
    .summary("Sets the time at which a key expires, in milliseconds since 1970")
    .since("2.6.0")
    .keys(WRITE_KEY)
    .marks(&[Write, Fast], &[Keyspace, WriteGroup, FastGroup]),
    row("PEXPIRETIME", Exactly(2), "key", reads(ExpireTime(Millis)))
        .summary("Returns the time at which a key expires, in milliseconds since 1970")
        .since("7.0.0")
        .keys(KEY)
        .marks(&[ReadOnly, Fast], &[Keyspace, ReadGroup, FastGroup]),
    row("PTTL", Exactly(2), "key", reads(TimeLeft(Millis)))
        .summary("Returns the milliseconds until a key expires")
        .since("2.6.0")
        .keys(KEY)
        .marks(&[ReadOnly, Fast], &[Keyspace, ReadGroup, FastGroup]),
    row("RANDOMKEY", Exactly(1), "", reads(ReadKeys::Random))
        .summary("Returns a random key")
        .marks(&[ReadOnly], &[Keyspace, ReadGroup, Slow]),
    row("RENAME", Exactly(3), "key newkey", writes(WriteKeys::Rename))
        .summary("Renames a key; replaces the key of the new name")
        .keys(Keys::TWO.with(Access::BOTH).others(Access::WRITE))
        .marks(&[Write], &[Keyspace, WriteGroup, Slow]),
    row("RENAMENX", Exactly(3), "key newkey", writes(WriteKeys::RenameIfAbsent))
        .summary("Renames a key unless the new name exists")
        .keys(Keys::TWO.with(Access::BOTH).others(Access::WRITE))
        .marks(&[Write, Fast], &[Keyspace, WriteGroup, FastGroup]),
    row(
        "RESTORE",
        AtLeast(4),
        "key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
        writes(WriteKeys::Restore),
    )
    .summary("Creates a key from the result of DUMP, of this server or of Redis with RedisBloom")
    .complexity("O(n), n the length of the payload")
    .since("2.6.0")
    .keys(WRITE_KEY)
    .marks(&[Write, DenyOom, Payload(3)], &[Keyspace, WriteGroup, Slow, Dangerous]),
    row("SCAN", AtLeast(2), "cursor [MATCH pattern] [COUNT n] [TYPE type]", reads(ReadKeys::Scan))
        .summary("Iterates over the keys")
        .complexity("O(1) a call")
        .since("2.8.0")
        .marks(&[ReadOnly], &[Keyspace, ReadGroup, Slow]),
    row("TOUCH", AtLeast(2), "key [key ...]", reads(ReadKeys::CountExisting))
        .summary("Counts how many of the given keys exist")
        .complexity("O(n), n the number of keys")
        .since("3.2.1")
        .keys(Keys::ALL.with(Access::ABOUT))
        .marks(&[ReadOnly, Fast], &[Keyspace, ReadGroup, FastGroup]),
    row("TTL", Exactly(2), "key", reads(TimeLeft(Seconds)))
        .summary("Returns the seconds until a key expires")
        .keys(KEY)
        .marks(&[ReadOnly, Fast], &[Keyspace, ReadGroup, FastGroup]),
    row("TYPE", Exactly(2), "key", read(string::type_of))
        .summary("Returns the type of the value of a key")
        .keys(KEY)
        .marks(&[ReadOnly, Fast], &[Keyspace, ReadGroup, FastGroup]),
    row("UNLINK", AtLeast(2), "key [key ...]", writes(WriteKeys::Delete))
        .summary("Deletes keys")
        .complexity("O(n), n the number of keys")
        .since("4.0.0")
        .keys(Keys::ALL.with(Access::WRITE))
        .marks(&[Write, Fast], &[Keyspace, WriteGroup, FastGroup]),
];
