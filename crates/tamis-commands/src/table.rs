//! The command table: every command, in alphabetical order.

use crate::arity::Arity::{AtLeast, Exactly};
use crate::batch::{BatchItems, Family};
use crate::category::Category::{
    Admin as AdminGroup, Bitmap as BitmapGroup, Bloom, Connection, Cuckoo, Dangerous,
    Fast as FastGroup, Keyspace, Read as ReadGroup, Slow, String as StringGroup, Tamis,
    Transaction, Write as WriteGroup,
};
use crate::command::Flag::{
    Admin, DenyOom, Fast, File, Loading, Module, NoAuth, NoReply, Payload, ReadOnly, Write,
};
use crate::command::{Command, InMulti, Secrets};
use crate::handler::{
    Handler, KeyHandler, ReadHandler, ReadKeys, ServerCommand, TimeUnit, WriteHandler, WriteKeys,
};
use crate::keys::Access;
use crate::keys::Keys;
use crate::subcommands::of;
use crate::{bf, bitmap, cf, string, tm};

const ADDS: &[crate::Flag] = &[Write, DenyOom, Module];
const CHANGES: &[crate::Flag] = &[Write, Fast, Module];
const READS: &[crate::Flag] = &[ReadOnly, Fast, Module];
const READS_ALL: &[crate::Flag] = &[ReadOnly, Module];

/// The handler of a command that looks up items.
const fn contains(family: Family, is_one: bool) -> Handler {
    Handler::Key(KeyHandler::Items(BatchItems { family, inserts: false, is_one }))
}

/// The handler of a command that inserts items.
const fn insert(family: Family, is_one: bool) -> Handler {
    Handler::Key(KeyHandler::Items(BatchItems { family, inserts: true, is_one }))
}

const KEY: Keys = Keys::ONE.with(Access::ABOUT);
const READ_KEY: Keys = Keys::ONE.with(Access::READ);
const WRITE_KEY: Keys = Keys::ONE.with(Access::WRITE);
const UPDATE_KEY: Keys = Keys::ONE.with(Access::BOTH);

const fn read(handler: ReadHandler) -> Handler {
    Handler::Key(KeyHandler::Read(handler))
}

const fn write(handler: WriteHandler) -> Handler {
    Handler::Key(KeyHandler::Write(handler))
}

/// The defaults of a row.
const DEFAULTS: Command = Command {
    name: "",
    arity: AtLeast(1),
    flags: &[],
    categories: &[],
    keys: Keys::NONE,
    syntax: "",
    summary: "",
    complexity: "",
    since: "",
    in_multi: InMulti::Queued,
    secrets: Secrets::None,
    items_start: None,
    subcommands: &[],
    handler: Handler::Server(ServerCommand::Ping),
};

/// Every command.
pub static COMMANDS: &[Command] = &[
    Command {
        name: "ACL",
        arity: AtLeast(2),
        flags: &[Loading],
        categories: &[Slow],
        syntax: "CAT [category] | DELUSER name [name ...] | DRYRUN name command [word ...] | GENPASS [bits] | GETUSER name | LIST | LOAD | LOG [count | RESET] | SAVE | SETUSER name [rule ...] | USERS | WHOAMI | HELP",
        summary: "Manages users, their passwords and their permissions",
        complexity: "O(n), n the number of users or rules",
        since: "6.0.0",
        secrets: Secrets::OfSubcommands(&["SETUSER", "DRYRUN"]),
        subcommands: of("ACL"),
        handler: Handler::Server(ServerCommand::Acl),
        ..DEFAULTS
    },
    Command {
        name: "APPEND",
        arity: Exactly(3),
        flags: &[Write, DenyOom, Fast],
        categories: &[StringGroup, WriteGroup, FastGroup],
        keys: WRITE_KEY,
        syntax: "key value",
        summary: "Appends to a string; creates it if it does not exist",
        complexity: "O(n), n the length of the value",
        since: "2.0.0",
        handler: write(string::append),
        ..DEFAULTS
    },
    Command {
        name: "AUTH",
        arity: AtLeast(2),
        flags: &[NoAuth, Fast, Loading],
        categories: &[Connection, FastGroup],
        syntax: "[username] password",
        summary: "Authenticates the connection",
        complexity: "O(1)",
        since: "1.0.0",
        in_multi: InMulti::Refused,
        secrets: Secrets::All,
        handler: Handler::Server(ServerCommand::Auth),
        ..DEFAULTS
    },
    Command {
        name: "BF.ADD",
        arity: Exactly(3),
        flags: ADDS,
        categories: &[WriteGroup, Bloom, Slow],
        keys: WRITE_KEY,
        syntax: "key item",
        summary: "Adds an item to a Bloom filter; creates the filter if it does not exist",
        complexity: "O(1)",
        since: "1.0.0",
        handler: insert(Family::Bloom, true),
        ..DEFAULTS
    },
    Command {
        name: "BF.CARD",
        arity: Exactly(2),
        flags: READS,
        categories: &[ReadGroup, FastGroup, Bloom],
        keys: READ_KEY,
        syntax: "key",
        summary: "Returns how many items were added to a Bloom filter as new",
        complexity: "O(1)",
        since: "2.4.4",
        handler: read(bf::card),
        ..DEFAULTS
    },
    Command {
        name: "BF.DEBUG",
        arity: Exactly(2),
        flags: READS,
        categories: &[ReadGroup, Bloom, Slow],
        keys: READ_KEY,
        syntax: "key",
        summary: "Describes the layers of a Bloom filter",
        complexity: "O(n), n the number of layers",
        since: "1.0.0",
        handler: read(bf::debug),
        ..DEFAULTS
    },
    Command {
        name: "BF.EXISTS",
        arity: Exactly(3),
        flags: READS,
        categories: &[ReadGroup, Bloom, Slow],
        keys: READ_KEY,
        syntax: "key item",
        summary: "Tests whether an item may be in a Bloom filter; the answer no is certain",
        complexity: "O(1)",
        since: "1.0.0",
        handler: contains(Family::Bloom, true),
        ..DEFAULTS
    },
    Command {
        name: "BF.INFO",
        arity: AtLeast(2),
        flags: READS,
        categories: &[ReadGroup, FastGroup, Bloom],
        keys: READ_KEY,
        syntax: "key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]",
        summary: "Returns the capacity, memory, layers, items and expansion of a Bloom filter",
        complexity: "O(1)",
        since: "1.0.0",
        handler: read(bf::info),
        ..DEFAULTS
    },
    Command {
        name: "BF.INSERT",
        arity: AtLeast(4),
        flags: ADDS,
        categories: &[WriteGroup, Bloom, Slow],
        keys: WRITE_KEY,
        syntax: "key [CAPACITY n] [ERROR e] [EXPANSION n] [NOCREATE] [NONSCALING] ITEMS item [item ...]",
        summary: "Adds items to a Bloom filter; creates it with the given options if it does not exist",
        complexity: "O(n), n the number of items",
        since: "1.0.0",
        items_start: Some(bf::items_start),
        handler: write(bf::insert),
        ..DEFAULTS
    },
    Command {
        name: "BF.LOADCHUNK",
        arity: Exactly(4),
        flags: ADDS,
        categories: &[WriteGroup, Bloom, Slow],
        keys: WRITE_KEY,
        syntax: "key iterator data",
        summary: "Restores a Bloom filter from the chunks of BF.SCANDUMP",
        complexity: "O(n), n the length of the data",
        since: "1.0.0",
        handler: write(bf::load_chunk),
        ..DEFAULTS
    },
    Command {
        name: "BF.MADD",
        arity: AtLeast(3),
        flags: ADDS,
        categories: &[WriteGroup, Bloom, Slow],
        keys: WRITE_KEY,
        syntax: "key item [item ...]",
        summary: "Adds items to a Bloom filter; creates the filter if it does not exist",
        complexity: "O(n), n the number of items",
        since: "1.0.0",
        handler: insert(Family::Bloom, false),
        ..DEFAULTS
    },
    Command {
        name: "BF.MEXISTS",
        arity: AtLeast(3),
        flags: READS,
        categories: &[ReadGroup, Bloom, Slow],
        keys: READ_KEY,
        syntax: "key item [item ...]",
        summary: "Tests which items may be in a Bloom filter; the answer no is certain",
        complexity: "O(n), n the number of items",
        since: "1.0.0",
        handler: contains(Family::Bloom, false),
        ..DEFAULTS
    },
    Command {
        name: "BF.RESERVE",
        arity: AtLeast(4),
        flags: ADDS,
        categories: &[WriteGroup, FastGroup, Bloom],
        keys: WRITE_KEY,
        syntax: "key error_rate capacity [EXPANSION n] [NONSCALING]",
        summary: "Creates an empty Bloom filter with a false positive rate and a capacity",
        complexity: "O(1)",
        since: "1.0.0",
        handler: write(bf::reserve),
        ..DEFAULTS
    },
    Command {
        name: "BF.SCANDUMP",
        arity: Exactly(3),
        flags: READS,
        categories: &[ReadGroup, Bloom, Slow],
        keys: READ_KEY,
        syntax: "key iterator",
        summary: "Returns the next chunk of a Bloom filter for BF.LOADCHUNK",
        complexity: "O(n), n the length of the chunk",
        since: "1.0.0",
        handler: read(bf::scan_dump),
        ..DEFAULTS
    },
    Command {
        name: "BGREWRITEAOF",
        arity: Exactly(1),
        flags: &[Admin],
        categories: &[AdminGroup, Slow, Dangerous],
        syntax: "",
        summary: "Writes a snapshot in the background and starts a new log",
        complexity: "O(n), n the memory of all values",
        since: "1.0.0",
        handler: Handler::Server(ServerCommand::RewriteLog),
        ..DEFAULTS
    },
    Command {
        name: "BGSAVE",
        arity: AtLeast(1),
        flags: &[Admin],
        categories: &[AdminGroup, Slow, Dangerous],
        syntax: "[SCHEDULE]",
        summary: "Writes a snapshot in the background",
        complexity: "O(n), n the memory of all values",
        since: "1.0.0",
        handler: Handler::Server(ServerCommand::SaveInBackground),
        ..DEFAULTS
    },
    Command {
        name: "BITCOUNT",
        arity: AtLeast(2),
        flags: &[ReadOnly],
        categories: &[ReadGroup, BitmapGroup, Slow],
        keys: READ_KEY,
        syntax: "key [start end [BYTE | BIT]]",
        summary: "Counts the bits of a string that are set",
        complexity: "O(n), n the length of the range",
        since: "2.6.0",
        handler: read(bitmap::count),
        ..DEFAULTS
    },
    Command {
        name: "BITFIELD",
        arity: AtLeast(2),
        flags: &[Write, DenyOom],
        categories: &[WriteGroup, BitmapGroup, Slow],
        keys: UPDATE_KEY,
        syntax: "key [GET type offset | [OVERFLOW WRAP|SAT|FAIL] SET type offset value | INCRBY type offset increment ...]",
        summary: "Reads and writes integers of any width in a bitmap",
        complexity: "O(1) for each integer",
        since: "3.2.0",
        handler: write(bitmap::bitfield),
        ..DEFAULTS
    },
    Command {
        name: "BITFIELD_RO",
        arity: AtLeast(2),
        flags: &[ReadOnly, Fast],
        categories: &[ReadGroup, BitmapGroup, FastGroup],
        keys: READ_KEY,
        syntax: "key [GET type offset ...]",
        summary: "Reads integers of any width in a bitmap",
        complexity: "O(1) for each integer",
        since: "6.0.0",
        handler: read(bitmap::bitfield_read_only),
        ..DEFAULTS
    },
    Command {
        name: "BITOP",
        arity: AtLeast(4),
        flags: &[Write, DenyOom],
        categories: &[WriteGroup, BitmapGroup, Slow],
        keys: Keys::at(2, -1, 1).with(Access::WRITE).others(Access::READ),
        syntax: "AND|OR|XOR|NOT destkey key [key ...]",
        summary: "Combines bitmaps and stores the result under a key",
        complexity: "O(n), n the length of the longest string",
        since: "2.6.0",
        handler: Handler::WriteKeys(WriteKeys::BitOp),
        ..DEFAULTS
    },
    Command {
        name: "BITPOS",
        arity: AtLeast(3),
        flags: &[ReadOnly],
        categories: &[ReadGroup, BitmapGroup, Slow],
        keys: READ_KEY,
        syntax: "key bit [start [end [BYTE | BIT]]]",
        summary: "Finds the first bit of a string that is set, or that is clear",
        complexity: "O(n), n the length of the range",
        since: "2.8.7",
        handler: read(bitmap::position),
        ..DEFAULTS
    },
    Command {
        name: "CF.ADD",
        arity: Exactly(3),
        flags: ADDS,
        categories: &[WriteGroup, Cuckoo, Slow],
        keys: WRITE_KEY,
        syntax: "key item",
        summary: "Adds an item to a cuckoo filter, also if the item is in it already",
        complexity: "O(n), n the number of sub-filters",
        since: "1.0.0",
        handler: write(cf::add),
        ..DEFAULTS
    },
    Command {
        name: "CF.ADDNX",
        arity: Exactly(3),
        flags: ADDS,
        categories: &[WriteGroup, Cuckoo, Slow],
        keys: WRITE_KEY,
        syntax: "key item",
        summary: "Adds an item to a cuckoo filter unless the item may be in it",
        complexity: "O(n), n the number of sub-filters",
        since: "1.0.0",
        handler: write(cf::add_absent),
        ..DEFAULTS
    },
    Command {
        name: "CF.COMPACT",
        arity: AtLeast(1),
        flags: READS,
        categories: &[ReadGroup, Cuckoo, Slow],
        keys: READ_KEY,
        syntax: "key",
        summary: "Moves items of a cuckoo filter into free slots of its older sub-filters",
        complexity: "O(n), n the number of slots",
        since: "1.0.0",
        handler: write(cf::compact),
        ..DEFAULTS
    },
    Command {
        name: "CF.COUNT",
        arity: Exactly(3),
        flags: READS,
        categories: &[ReadGroup, Cuckoo, Slow],
        keys: READ_KEY,
        syntax: "key item",
        summary: "Estimates how many times an item is in a cuckoo filter",
        complexity: "O(n), n the number of sub-filters",
        since: "1.0.0",
        handler: read(cf::count),
        ..DEFAULTS
    },
    Command {
        name: "CF.DEBUG",
        arity: Exactly(2),
        flags: READS,
        categories: &[ReadGroup, Cuckoo, Slow],
        keys: READ_KEY,
        syntax: "key",
        summary: "Describes the sub-filters of a cuckoo filter",
        complexity: "O(1)",
        since: "1.0.0",
        handler: read(cf::debug),
        ..DEFAULTS
    },
    Command {
        name: "CF.DEL",
        arity: Exactly(3),
        flags: CHANGES,
        categories: &[WriteGroup, Cuckoo, FastGroup],
        keys: WRITE_KEY,
        syntax: "key item",
        summary: "Deletes one copy of an item from a cuckoo filter",
        complexity: "O(n), n the number of sub-filters",
        since: "1.0.0",
        handler: write(cf::delete),
        ..DEFAULTS
    },
    Command {
        name: "CF.EXISTS",
        arity: Exactly(3),
        flags: READS,
        categories: &[ReadGroup, Cuckoo, Slow],
        keys: READ_KEY,
        syntax: "key item",
        summary: "Tests whether an item may be in a cuckoo filter; the answer no is certain",
        complexity: "O(n), n the number of sub-filters",
        since: "1.0.0",
        handler: contains(Family::Cuckoo, true),
        ..DEFAULTS
    },
    Command {
        name: "CF.INFO",
        arity: Exactly(2),
        flags: READS,
        categories: &[ReadGroup, FastGroup, Cuckoo],
        keys: READ_KEY,
        syntax: "key",
        summary: "Returns the memory, sub-filters, items and options of a cuckoo filter",
        complexity: "O(1)",
        since: "1.0.0",
        handler: read(cf::info),
        ..DEFAULTS
    },
    Command {
        name: "CF.INSERT",
        arity: AtLeast(4),
        flags: ADDS,
        categories: &[WriteGroup, Cuckoo, Slow],
        keys: WRITE_KEY,
        syntax: "key [CAPACITY n] [NOCREATE] ITEMS item [item ...]",
        summary: "Adds items to a cuckoo filter, also those in it already; creates it with the given options if it does not exist",
        complexity: "O(n * m), n the number of items, m of sub-filters",
        since: "1.0.0",
        items_start: Some(bf::items_start),
        handler: write(cf::insert),
        ..DEFAULTS
    },
    Command {
        name: "CF.INSERTNX",
        arity: AtLeast(4),
        flags: ADDS,
        categories: &[WriteGroup, Cuckoo, Slow],
        keys: WRITE_KEY,
        syntax: "key [CAPACITY n] [NOCREATE] ITEMS item [item ...]",
        summary: "Adds to a cuckoo filter the items that are not in it; creates it with the given options if it does not exist",
        complexity: "O(n * m), n the number of items, m of sub-filters",
        since: "1.0.0",
        items_start: Some(bf::items_start),
        handler: write(cf::insert_absent),
        ..DEFAULTS
    },
    Command {
        name: "CF.LOADCHUNK",
        arity: Exactly(4),
        flags: ADDS,
        categories: &[WriteGroup, Cuckoo, Slow],
        keys: WRITE_KEY,
        syntax: "key position data",
        summary: "Restores a cuckoo filter from the chunks of CF.SCANDUMP",
        complexity: "O(n), n the length of the data",
        since: "1.0.0",
        handler: write(cf::load_chunk),
        ..DEFAULTS
    },
    Command {
        name: "CF.MEXISTS",
        arity: AtLeast(3),
        flags: READS,
        categories: &[ReadGroup, Cuckoo, Slow],
        keys: READ_KEY,
        syntax: "key item [item ...]",
        summary: "Tests which items may be in a cuckoo filter; the answer no is certain",
        complexity: "O(n * m), n the number of items, m of sub-filters",
        since: "1.0.0",
        handler: contains(Family::Cuckoo, false),
        ..DEFAULTS
    },
    Command {
        name: "CF.RESERVE",
        arity: AtLeast(3),
        flags: ADDS,
        categories: &[WriteGroup, FastGroup, Cuckoo],
        keys: WRITE_KEY,
        syntax: "key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]",
        summary: "Creates an empty cuckoo filter with a capacity",
        complexity: "O(1)",
        since: "1.0.0",
        handler: write(cf::reserve),
        ..DEFAULTS
    },
    Command {
        name: "CF.SCANDUMP",
        arity: Exactly(3),
        flags: READS,
        categories: &[ReadGroup, Cuckoo, Slow],
        keys: READ_KEY,
        syntax: "key position",
        summary: "Returns the next chunk of a cuckoo filter for CF.LOADCHUNK",
        complexity: "O(n), n the length of the chunk",
        since: "1.0.0",
        handler: read(cf::scan_dump),
        ..DEFAULTS
    },
    Command {
        name: "CLIENT",
        arity: AtLeast(2),
        flags: &[Fast, Loading],
        categories: &[Connection, Slow],
        syntax: "ID | GETNAME | SETNAME name | SETINFO LIB-NAME|LIB-VER text | LIST | INFO | KILL ID id | KILL addr | NO-EVICT ON|OFF | NO-TOUCH ON|OFF | HELP",
        summary: "Lists, names and closes connections",
        complexity: "O(1), LIST and KILL O(n)",
        since: "2.4.0",
        subcommands: of("CLIENT"),
        handler: Handler::Server(ServerCommand::Client),
        ..DEFAULTS
    },
    Command {
        name: "COMMAND",
        arity: AtLeast(1),
        flags: &[Fast, Loading],
        categories: &[Connection, Slow],
        syntax: "[COUNT | LIST | INFO [name ...] | DOCS [name ...] | GETKEYS command [arg ...] | HELP]",
        summary: "Describes the commands of the server",
        complexity: "O(n), n the number of commands",
        since: "2.8.13",
        subcommands: of("COMMAND"),
        handler: Handler::Server(ServerCommand::Command),
        ..DEFAULTS
    },
    Command {
        name: "CONFIG",
        arity: AtLeast(2),
        flags: &[Admin, Loading],
        categories: &[AdminGroup, Dangerous, Slow],
        syntax: "GET pattern [pattern ...] | SET name value [name value ...] | REWRITE | RESETSTAT | HELP",
        summary: "Reads and sets the options of the server",
        complexity: "O(n), n the number of options",
        since: "2.0.0",
        secrets: Secrets::OptionValues("SET"),
        subcommands: of("CONFIG"),
        handler: Handler::Server(ServerCommand::Config),
        ..DEFAULTS
    },
    Command {
        name: "COPY",
        arity: AtLeast(3),
        flags: &[Write, DenyOom],
        categories: &[Keyspace, WriteGroup, Slow],
        keys: Keys::TWO.with(Access::READ).others(Access::WRITE),
        syntax: "source destination [DB 0] [REPLACE]",
        summary: "Copies a value and its expiry to another key",
        complexity: "O(n), n the memory of the value",
        since: "6.2.0",
        handler: Handler::WriteKeys(WriteKeys::Copy),
        ..DEFAULTS
    },
    Command {
        name: "DBSIZE",
        arity: Exactly(1),
        flags: &[ReadOnly, Fast],
        categories: &[Keyspace, ReadGroup, FastGroup],
        syntax: "",
        summary: "Returns the number of keys",
        complexity: "O(1)",
        since: "1.0.0",
        handler: Handler::ReadKeys(ReadKeys::CountAll),
        ..DEFAULTS
    },
    Command {
        name: "DEBUG",
        arity: AtLeast(2),
        flags: &[Admin],
        categories: &[AdminGroup, Slow, Dangerous],
        syntax: "RELOAD [NOSAVE] | HELP",
        summary: "Runs tests of the server; needs enable-debug-command",
        complexity: "O(n), n the memory of all values",
        since: "1.0.0",
        in_multi: InMulti::Refused,
        subcommands: of("DEBUG"),
        handler: Handler::Server(ServerCommand::Debug),
        ..DEFAULTS
    },
    Command {
        name: "DECR",
        arity: Exactly(2),
        flags: &[Write, DenyOom, Fast],
        categories: &[StringGroup, WriteGroup, FastGroup],
        keys: UPDATE_KEY,
        syntax: "key",
        summary: "Decrements a number by one",
        complexity: "O(1)",
        since: "1.0.0",
        handler: write(string::decrement),
        ..DEFAULTS
    },
    Command {
        name: "DECRBY",
        arity: Exactly(3),
        flags: &[Write, DenyOom, Fast],
        categories: &[StringGroup, WriteGroup, FastGroup],
        keys: UPDATE_KEY,
        syntax: "key decrement",
        summary: "Decrements a number",
        complexity: "O(1)",
        since: "1.0.0",
        handler: write(string::decrement_by),
        ..DEFAULTS
    },
    Command {
        name: "DEL",
        arity: AtLeast(2),
        flags: &[Write],
        categories: &[Keyspace, WriteGroup, Slow],
        keys: Keys::ALL.with(Access::WRITE),
        syntax: "key [key ...]",
        summary: "Deletes keys",
        complexity: "O(n), n the number of keys",
        since: "1.0.0",
        handler: Handler::WriteKeys(WriteKeys::Delete),
        ..DEFAULTS
    },
    Command {
        name: "DISCARD",
        arity: Exactly(1),
        flags: &[Fast, Loading],
        categories: &[Transaction, FastGroup],
        syntax: "",
        summary: "Discards the commands queued since MULTI",
        complexity: "O(n), n the number of commands",
        since: "2.0.0",
        in_multi: InMulti::AtOnce,
        handler: Handler::Server(ServerCommand::Discard),
        ..DEFAULTS
    },
    Command {
        name: "DUMP",
        arity: Exactly(2),
        flags: &[ReadOnly],
        categories: &[Keyspace, ReadGroup, Slow],
        keys: READ_KEY,
        syntax: "key",
        summary: "Serializes a value for RESTORE; Redis reads it unless the value has a layout of Tamis",
        complexity: "O(n), n the memory of the value",
        since: "2.6.0",
        handler: Handler::ReadKeys(ReadKeys::Dump),
        ..DEFAULTS
    },
    Command {
        name: "ECHO",
        arity: Exactly(2),
        flags: &[Fast, Loading],
        categories: &[Connection, FastGroup],
        syntax: "message",
        summary: "Returns the message",
        complexity: "O(1)",
        since: "1.0.0",
        handler: Handler::Server(ServerCommand::Echo),
        ..DEFAULTS
    },
    Command {
        name: "EXEC",
        arity: Exactly(1),
        flags: &[Loading],
        categories: &[Transaction, Slow],
        syntax: "",
        summary: "Runs the commands queued since MULTI as one transaction",
        complexity: "The sum of the queued commands",
        since: "1.2.0",
        in_multi: InMulti::AtOnce,
        handler: Handler::Server(ServerCommand::Exec),
        ..DEFAULTS
    },
    Command {
        name: "EXISTS",
        arity: AtLeast(2),
        flags: &[ReadOnly, Fast],
        categories: &[Keyspace, ReadGroup, FastGroup],
        keys: Keys::ALL.with(Access::ABOUT),
        syntax: "key [key ...]",
        summary: "Counts how many of the given keys exist",
        complexity: "O(n), n the number of keys",
        since: "1.0.0",
        handler: Handler::ReadKeys(ReadKeys::CountExisting),
        ..DEFAULTS
    },
    Command {
        name: "EXPIRE",
        arity: AtLeast(3),
        flags: &[Write, Fast],
        categories: &[Keyspace, WriteGroup, FastGroup],
        keys: WRITE_KEY,
        syntax: "key seconds [NX | XX | GT | LT]",
        summary: "Sets the seconds after which a key expires",
        complexity: "O(1)",
        since: "1.0.0",
        handler: Handler::WriteKeys(WriteKeys::ExpireAfter(TimeUnit::Seconds)),
        ..DEFAULTS
    },
    Command {
        name: "EXPIREAT",
        arity: AtLeast(3),
        flags: &[Write, Fast],
        categories: &[Keyspace, WriteGroup, FastGroup],
        keys: WRITE_KEY,
        syntax: "key unix-seconds [NX | XX | GT | LT]",
        summary: "Sets the time at which a key expires, in seconds since 1970",
        complexity: "O(1)",
        since: "1.2.0",
        handler: Handler::WriteKeys(WriteKeys::ExpireAt(TimeUnit::Seconds)),
        ..DEFAULTS
    },
    Command {
        name: "EXPIRETIME",
        arity: Exactly(2),
        flags: &[ReadOnly, Fast],
        categories: &[Keyspace, ReadGroup, FastGroup],
        keys: KEY,
        syntax: "key",
        summary: "Returns the time at which a key expires, in seconds since 1970",
        complexity: "O(1)",
        since: "7.0.0",
        handler: Handler::ReadKeys(ReadKeys::ExpireTime(TimeUnit::Seconds)),
        ..DEFAULTS
    },
    Command {
        name: "FLUSHALL",
        arity: AtLeast(1),
        flags: &[Write],
        categories: &[Keyspace, WriteGroup, Slow, Dangerous],
        syntax: "[ASYNC | SYNC]",
        summary: "Deletes all keys; frees their memory in the background unless SYNC",
        complexity: "O(n), n the number of keys",
        since: "1.0.0",
        handler: Handler::WriteKeys(WriteKeys::Flush),
        ..DEFAULTS
    },
    Command {
        name: "FLUSHDB",
        arity: AtLeast(1),
        flags: &[Write],
        categories: &[Keyspace, WriteGroup, Slow, Dangerous],
        syntax: "[ASYNC | SYNC]",
        summary: "Deletes all keys; frees their memory in the background unless SYNC",
        complexity: "O(n), n the number of keys",
        since: "1.0.0",
        handler: Handler::WriteKeys(WriteKeys::Flush),
        ..DEFAULTS
    },
    Command {
        name: "GET",
        arity: Exactly(2),
        flags: &[ReadOnly, Fast],
        categories: &[StringGroup, ReadGroup, FastGroup],
        keys: READ_KEY,
        syntax: "key",
        summary: "Returns a string",
        complexity: "O(1)",
        since: "1.0.0",
        handler: read(string::get),
        ..DEFAULTS
    },
    Command {
        name: "GETBIT",
        arity: Exactly(3),
        flags: &[ReadOnly, Fast],
        categories: &[ReadGroup, BitmapGroup, FastGroup],
        keys: READ_KEY,
        syntax: "key offset",
        summary: "Returns a bit of a string",
        complexity: "O(1)",
        since: "2.2.0",
        handler: read(bitmap::get_bit),
        ..DEFAULTS
    },
    Command {
        name: "GETEX",
        arity: AtLeast(2),
        flags: &[Write, Fast],
        categories: &[StringGroup, WriteGroup, FastGroup],
        keys: UPDATE_KEY,
        syntax: "key [EX seconds | PX milliseconds | EXAT time | PXAT time | PERSIST]",
        summary: "Returns a string and sets or removes its expiry",
        complexity: "O(1)",
        since: "6.2.0",
        handler: write(string::get_and_expire),
        ..DEFAULTS
    },
    Command {
        name: "GETRANGE",
        arity: Exactly(4),
        flags: &[ReadOnly],
        categories: &[StringGroup, ReadGroup, Slow],
        keys: READ_KEY,
        syntax: "key start end",
        summary: "Returns a part of a string",
        complexity: "O(n), n the length of the part",
        since: "2.4.0",
        handler: read(string::get_range),
        ..DEFAULTS
    },
    Command {
        name: "HELLO",
        arity: AtLeast(1),
        flags: &[NoAuth, Fast, Loading],
        categories: &[Connection, FastGroup],
        syntax: "[protover [AUTH username password] [SETNAME name]]",
        summary: "Selects the protocol version; with AUTH, authenticates the connection",
        complexity: "O(1)",
        since: "6.0.0",
        in_multi: InMulti::Refused,
        secrets: Secrets::TwoBehind("AUTH"),
        handler: Handler::Server(ServerCommand::Hello),
        ..DEFAULTS
    },
    Command {
        name: "INCR",
        arity: Exactly(2),
        flags: &[Write, DenyOom, Fast],
        categories: &[StringGroup, WriteGroup, FastGroup],
        keys: UPDATE_KEY,
        syntax: "key",
        summary: "Increments a number by one",
        complexity: "O(1)",
        since: "1.0.0",
        handler: write(string::increment),
        ..DEFAULTS
    },
    Command {
        name: "INCRBY",
        arity: Exactly(3),
        flags: &[Write, DenyOom, Fast],
        categories: &[StringGroup, WriteGroup, FastGroup],
        keys: UPDATE_KEY,
        syntax: "key increment",
        summary: "Increments a number",
        complexity: "O(1)",
        since: "1.0.0",
        handler: write(string::increment_by),
        ..DEFAULTS
    },
    Command {
        name: "INFO",
        arity: AtLeast(1),
        flags: &[Loading],
        categories: &[Slow, Dangerous],
        syntax: "[section ...]",
        summary: "Returns statistics of the server and its filters",
        complexity: "O(n), n the number of keys",
        since: "1.0.0",
        handler: Handler::ReadKeys(ReadKeys::Info),
        ..DEFAULTS
    },
    Command {
        name: "KEYS",
        arity: Exactly(2),
        flags: &[ReadOnly],
        categories: &[Keyspace, ReadGroup, Slow, Dangerous],
        syntax: "pattern",
        summary: "Lists the keys that match a pattern",
        complexity: "O(n), n the number of keys",
        since: "1.0.0",
        handler: Handler::ReadKeys(ReadKeys::List),
        ..DEFAULTS
    },
    Command {
        name: "LASTSAVE",
        arity: Exactly(1),
        flags: &[Loading, Fast],
        categories: &[AdminGroup, FastGroup, Dangerous],
        syntax: "",
        summary: "Returns the time of the last snapshot, in seconds since 1970",
        complexity: "O(1)",
        since: "1.0.0",
        handler: Handler::Server(ServerCommand::LastSave),
        ..DEFAULTS
    },
    Command {
        name: "LATENCY",
        arity: AtLeast(2),
        flags: &[Admin, Loading],
        categories: &[AdminGroup, Slow, Dangerous],
        syntax: "HISTOGRAM [command ...] | LATEST | HISTORY event | RESET [event ...] | DOCTOR | HELP",
        summary: "Returns histograms of the execution times of commands",
        complexity: "O(n), n the number of commands",
        since: "2.8.13",
        subcommands: of("LATENCY"),
        handler: Handler::Server(ServerCommand::Latency),
        ..DEFAULTS
    },
    Command {
        name: "MEMORY",
        arity: AtLeast(2),
        flags: &[ReadOnly],
        categories: &[ReadGroup, Slow],
        syntax: "USAGE key [SAMPLES n] | HELP",
        summary: "Returns the memory that a key uses, in bytes",
        complexity: "O(1)",
        since: "4.0.0",
        subcommands: of("MEMORY"),
        handler: Handler::ReadKeys(ReadKeys::Memory),
        ..DEFAULTS
    },
    Command {
        name: "MGET",
        arity: AtLeast(2),
        flags: &[ReadOnly, Fast],
        categories: &[StringGroup, ReadGroup, FastGroup],
        keys: Keys::ALL.with(Access::READ),
        syntax: "key [key ...]",
        summary: "Returns several strings",
        complexity: "O(n), n the number of keys",
        since: "1.0.0",
        handler: Handler::ReadKeys(ReadKeys::GetEach),
        ..DEFAULTS
    },
    Command {
        name: "MODULE",
        arity: AtLeast(2),
        flags: &[Admin],
        categories: &[AdminGroup, Slow, Dangerous],
        syntax: "LIST | HELP",
        summary: "Lists the module bf, whose commands this server implements",
        complexity: "O(1)",
        since: "4.0.0",
        subcommands: of("MODULE"),
        handler: Handler::Server(ServerCommand::Module),
        ..DEFAULTS
    },
    Command {
        name: "MONITOR",
        arity: Exactly(1),
        flags: &[Admin, Loading],
        categories: &[AdminGroup, Slow, Dangerous],
        syntax: "",
        summary: "Streams the commands of all clients; hides passwords and shortens long arguments",
        complexity: "O(1) for each command",
        since: "1.0.0",
        in_multi: InMulti::Refused,
        handler: Handler::Server(ServerCommand::Monitor),
        ..DEFAULTS
    },
    Command {
        name: "MSET",
        arity: AtLeast(3),
        flags: &[Write, DenyOom],
        categories: &[StringGroup, WriteGroup, Slow],
        keys: Keys::at(1, -1, 2).with(Access::WRITE),
        syntax: "key value [key value ...]",
        summary: "Sets several strings at once",
        complexity: "O(n), n the number of keys",
        since: "1.0.1",
        handler: Handler::WriteKeys(WriteKeys::SetEach),
        ..DEFAULTS
    },
    Command {
        name: "MULTI",
        arity: Exactly(1),
        flags: &[Fast, Loading],
        categories: &[Transaction, FastGroup],
        syntax: "",
        summary: "Starts a transaction",
        complexity: "O(1)",
        since: "1.2.0",
        in_multi: InMulti::AtOnce,
        handler: Handler::Server(ServerCommand::Multi),
        ..DEFAULTS
    },
    Command {
        name: "OBJECT",
        arity: AtLeast(2),
        flags: &[ReadOnly],
        categories: &[Keyspace, ReadGroup, Slow],
        syntax: "ENCODING key | FREQ key | IDLETIME key | REFCOUNT key | HELP",
        summary: "Returns how the value of a key is stored",
        complexity: "O(1)",
        since: "2.2.3",
        subcommands: of("OBJECT"),
        handler: Handler::ReadKeys(ReadKeys::Object),
        ..DEFAULTS
    },
    Command {
        name: "PERSIST",
        arity: Exactly(2),
        flags: &[Write, Fast],
        categories: &[Keyspace, WriteGroup, FastGroup],
        keys: WRITE_KEY,
        syntax: "key",
        summary: "Removes the expiry of a key",
        complexity: "O(1)",
        since: "2.2.0",
        handler: Handler::WriteKeys(WriteKeys::Persist),
        ..DEFAULTS
    },
    Command {
        name: "PEXPIRE",
        arity: AtLeast(3),
        flags: &[Write, Fast],
        categories: &[Keyspace, WriteGroup, FastGroup],
        keys: WRITE_KEY,
        syntax: "key milliseconds [NX | XX | GT | LT]",
        summary: "Sets the milliseconds after which a key expires",
        complexity: "O(1)",
        since: "2.6.0",
        handler: Handler::WriteKeys(WriteKeys::ExpireAfter(TimeUnit::Millis)),
        ..DEFAULTS
    },
    Command {
        name: "PEXPIREAT",
        arity: AtLeast(3),
        flags: &[Write, Fast],
        categories: &[Keyspace, WriteGroup, FastGroup],
        keys: WRITE_KEY,
        syntax: "key unix-milliseconds [NX | XX | GT | LT]",
        summary: "Sets the time at which a key expires, in milliseconds since 1970",
        complexity: "O(1)",
        since: "2.6.0",
        handler: Handler::WriteKeys(WriteKeys::ExpireAt(TimeUnit::Millis)),
        ..DEFAULTS
    },
    Command {
        name: "PEXPIRETIME",
        arity: Exactly(2),
        flags: &[ReadOnly, Fast],
        categories: &[Keyspace, ReadGroup, FastGroup],
        keys: KEY,
        syntax: "key",
        summary: "Returns the time at which a key expires, in milliseconds since 1970",
        complexity: "O(1)",
        since: "7.0.0",
        handler: Handler::ReadKeys(ReadKeys::ExpireTime(TimeUnit::Millis)),
        ..DEFAULTS
    },
    Command {
        name: "PING",
        arity: AtLeast(1),
        flags: &[Fast, Loading],
        categories: &[Connection, FastGroup],
        syntax: "[message]",
        summary: "Returns PONG, or the message",
        complexity: "O(1)",
        since: "1.0.0",
        handler: Handler::Server(ServerCommand::Ping),
        ..DEFAULTS
    },
    Command {
        name: "PSETEX",
        arity: Exactly(4),
        flags: &[Write, DenyOom],
        categories: &[StringGroup, WriteGroup, Slow],
        keys: WRITE_KEY,
        syntax: "key milliseconds value",
        summary: "Sets a string that expires after some milliseconds",
        complexity: "O(1)",
        since: "2.6.0",
        handler: write(string::set_millis),
        ..DEFAULTS
    },
    Command {
        name: "PTTL",
        arity: Exactly(2),
        flags: &[ReadOnly, Fast],
        categories: &[Keyspace, ReadGroup, FastGroup],
        keys: KEY,
        syntax: "key",
        summary: "Returns the milliseconds until a key expires",
        complexity: "O(1)",
        since: "2.6.0",
        handler: Handler::ReadKeys(ReadKeys::TimeLeft(TimeUnit::Millis)),
        ..DEFAULTS
    },
    Command {
        name: "QUIT",
        arity: AtLeast(1),
        flags: &[NoAuth, Fast, Loading],
        categories: &[Connection, FastGroup],
        syntax: "",
        summary: "Closes the connection",
        complexity: "O(1)",
        since: "1.0.0",
        in_multi: InMulti::AtOnce,
        handler: Handler::Server(ServerCommand::Quit),
        ..DEFAULTS
    },
    Command {
        name: "RANDOMKEY",
        arity: Exactly(1),
        flags: &[ReadOnly],
        categories: &[Keyspace, ReadGroup, Slow],
        syntax: "",
        summary: "Returns a random key",
        complexity: "O(1)",
        since: "1.0.0",
        handler: Handler::ReadKeys(ReadKeys::Random),
        ..DEFAULTS
    },
    Command {
        name: "RENAME",
        arity: Exactly(3),
        flags: &[Write],
        categories: &[Keyspace, WriteGroup, Slow],
        keys: Keys::TWO.with(Access::BOTH).others(Access::WRITE),
        syntax: "key newkey",
        summary: "Renames a key; replaces the key of the new name",
        complexity: "O(1)",
        since: "1.0.0",
        handler: Handler::WriteKeys(WriteKeys::Rename),
        ..DEFAULTS
    },
    Command {
        name: "RENAMENX",
        arity: Exactly(3),
        flags: &[Write, Fast],
        categories: &[Keyspace, WriteGroup, FastGroup],
        keys: Keys::TWO.with(Access::BOTH).others(Access::WRITE),
        syntax: "key newkey",
        summary: "Renames a key unless the new name exists",
        complexity: "O(1)",
        since: "1.0.0",
        handler: Handler::WriteKeys(WriteKeys::RenameIfAbsent),
        ..DEFAULTS
    },
    Command {
        name: "RESET",
        arity: Exactly(1),
        flags: &[NoAuth, Fast, Loading],
        categories: &[Connection, FastGroup],
        syntax: "",
        summary: "Resets the connection to its initial state",
        complexity: "O(1)",
        since: "6.2.0",
        in_multi: InMulti::AtOnce,
        handler: Handler::Server(ServerCommand::Reset),
        ..DEFAULTS
    },
    Command {
        name: "RESTORE",
        arity: AtLeast(4),
        flags: &[Write, DenyOom, Payload(3)],
        categories: &[Keyspace, WriteGroup, Slow, Dangerous],
        keys: WRITE_KEY,
        syntax: "key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
        summary: "Creates a key from the result of DUMP, of this server or of Redis with RedisBloom",
        complexity: "O(n), n the length of the payload",
        since: "2.6.0",
        handler: Handler::WriteKeys(WriteKeys::Restore),
        ..DEFAULTS
    },
    Command {
        name: "SAVE",
        arity: Exactly(1),
        flags: &[Admin],
        categories: &[AdminGroup, Slow, Dangerous],
        syntax: "",
        summary: "Writes a snapshot and waits until it is complete",
        complexity: "O(n), n the memory of all values",
        since: "1.0.0",
        in_multi: InMulti::Refused,
        handler: Handler::Server(ServerCommand::Save),
        ..DEFAULTS
    },
    Command {
        name: "SCAN",
        arity: AtLeast(2),
        flags: &[ReadOnly],
        categories: &[Keyspace, ReadGroup, Slow],
        syntax: "cursor [MATCH pattern] [COUNT n] [TYPE type]",
        summary: "Iterates over the keys",
        complexity: "O(1) a call",
        since: "2.8.0",
        handler: Handler::ReadKeys(ReadKeys::Scan),
        ..DEFAULTS
    },
    Command {
        name: "SELECT",
        arity: Exactly(2),
        flags: &[Fast, Loading],
        categories: &[Connection, FastGroup],
        syntax: "index",
        summary: "Selects a database; only database 0 exists",
        complexity: "O(1)",
        since: "1.0.0",
        handler: Handler::Server(ServerCommand::Select),
        ..DEFAULTS
    },
    Command {
        name: "SET",
        arity: AtLeast(3),
        flags: &[Write, DenyOom],
        categories: &[StringGroup, WriteGroup, Slow],
        keys: Keys::ONE.with(Access::WRITE).reading_with("GET"),
        syntax: "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT time | PXAT time | KEEPTTL]",
        summary: "Sets a string",
        complexity: "O(1)",
        since: "1.0.0",
        handler: write(string::set),
        ..DEFAULTS
    },
    Command {
        name: "SETBIT",
        arity: Exactly(4),
        flags: &[Write, DenyOom],
        categories: &[WriteGroup, BitmapGroup, Slow],
        keys: UPDATE_KEY,
        syntax: "key offset value",
        summary: "Sets or clears a bit of a string and returns its old value",
        complexity: "O(1)",
        since: "2.2.0",
        handler: write(bitmap::set_bit),
        ..DEFAULTS
    },
    Command {
        name: "SETEX",
        arity: Exactly(4),
        flags: &[Write, DenyOom],
        categories: &[StringGroup, WriteGroup, Slow],
        keys: WRITE_KEY,
        syntax: "key seconds value",
        summary: "Sets a string that expires after some seconds",
        complexity: "O(1)",
        since: "2.0.0",
        handler: write(string::set_seconds),
        ..DEFAULTS
    },
    Command {
        name: "SETNX",
        arity: Exactly(3),
        flags: &[Write, DenyOom, Fast],
        categories: &[StringGroup, WriteGroup, FastGroup],
        keys: WRITE_KEY,
        syntax: "key value",
        summary: "Sets a string if the key does not exist",
        complexity: "O(1)",
        since: "1.0.0",
        handler: write(string::set_absent),
        ..DEFAULTS
    },
    Command {
        name: "SETRANGE",
        arity: Exactly(4),
        flags: &[Write, DenyOom],
        categories: &[StringGroup, WriteGroup, Slow],
        keys: WRITE_KEY,
        syntax: "key offset value",
        summary: "Overwrites a part of a string",
        complexity: "O(n), n the length of the part",
        since: "2.2.0",
        handler: write(string::set_range),
        ..DEFAULTS
    },
    Command {
        name: "SHUTDOWN",
        arity: AtLeast(1),
        flags: &[Admin, Loading, NoReply],
        categories: &[AdminGroup, Slow, Dangerous],
        syntax: "[NOSAVE | SAVE] [NOW] [FORCE]",
        summary: "Stops the server",
        complexity: "O(1)",
        since: "1.0.0",
        in_multi: InMulti::Refused,
        handler: Handler::Server(ServerCommand::Shutdown),
        ..DEFAULTS
    },
    Command {
        name: "SLOWLOG",
        arity: AtLeast(2),
        flags: &[Admin, Loading],
        categories: &[AdminGroup, Slow, Dangerous],
        syntax: "GET [count] | LEN | RESET | HELP",
        summary: "Lists the latest slow commands",
        complexity: "O(n), n the number of entries",
        since: "2.2.12",
        subcommands: of("SLOWLOG"),
        handler: Handler::Server(ServerCommand::SlowLog),
        ..DEFAULTS
    },
    Command {
        name: "STRLEN",
        arity: Exactly(2),
        flags: &[ReadOnly, Fast],
        categories: &[StringGroup, ReadGroup, FastGroup],
        keys: KEY,
        syntax: "key",
        summary: "Returns the length of a string",
        complexity: "O(1)",
        since: "2.2.0",
        handler: read(string::len),
        ..DEFAULTS
    },
    Command {
        name: "TIME",
        arity: Exactly(1),
        flags: &[Fast, Loading],
        categories: &[FastGroup],
        syntax: "",
        summary: "Returns the server time, in seconds and microseconds",
        complexity: "O(1)",
        since: "2.6.0",
        handler: Handler::Server(ServerCommand::Time),
        ..DEFAULTS
    },
    Command {
        name: "TM.ADD",
        arity: Exactly(3),
        flags: ADDS,
        categories: &[WriteGroup, Tamis, Slow],
        keys: WRITE_KEY,
        syntax: "key item",
        summary: "Adds an item to a filter; returns whether it is new",
        complexity: "O(1)",
        since: "0.1.0",
        handler: insert(Family::Tamis, true),
        ..DEFAULTS
    },
    Command {
        name: "TM.CLEAR",
        arity: Exactly(2),
        flags: &[Write, Module],
        categories: &[WriteGroup, Tamis, Slow],
        keys: WRITE_KEY,
        syntax: "key",
        summary: "Removes all items of a filter; keeps its kind and its plan",
        complexity: "O(1)",
        since: "0.1.0",
        handler: write(tm::clear),
        ..DEFAULTS
    },
    Command {
        name: "TM.COUNT",
        arity: AtLeast(3),
        flags: READS,
        categories: &[ReadGroup, Tamis, Slow],
        keys: READ_KEY,
        syntax: "key item [item ...]",
        summary: "Estimates how many times items are in a counting or cuckoo filter",
        complexity: "O(n), n the number of items",
        since: "0.1.0",
        items_start: Some(|_| Some(2)),
        handler: read(tm::count),
        ..DEFAULTS
    },
    Command {
        name: "TM.DEL",
        arity: AtLeast(3),
        flags: CHANGES,
        categories: &[WriteGroup, Tamis, Slow],
        keys: WRITE_KEY,
        syntax: "key item [item ...]",
        summary: "Deletes one copy of each item from a counting or cuckoo filter",
        complexity: "O(n), n the number of items",
        since: "0.1.0",
        items_start: Some(|_| Some(2)),
        handler: write(tm::delete),
        ..DEFAULTS
    },
    Command {
        name: "TM.DUMP",
        arity: Exactly(2),
        flags: READS_ALL,
        categories: &[ReadGroup, Tamis, Slow],
        keys: READ_KEY,
        syntax: "key",
        summary: "Returns a filter as a file for TM.LOAD and the program tamis",
        complexity: "O(n), n the memory of the filter",
        since: "0.1.0",
        handler: read(tm::dump),
        ..DEFAULTS
    },
    Command {
        name: "TM.EXISTS",
        arity: Exactly(3),
        flags: READS,
        categories: &[ReadGroup, Tamis, FastGroup],
        keys: READ_KEY,
        syntax: "key item",
        summary: "Tests whether an item may be in a filter; the answer no is certain",
        complexity: "O(1)",
        since: "0.1.0",
        handler: contains(Family::Tamis, true),
        ..DEFAULTS
    },
    Command {
        name: "TM.INFO",
        arity: Exactly(2),
        flags: READS_ALL,
        categories: &[ReadGroup, Tamis, Slow],
        keys: READ_KEY,
        syntax: "key",
        summary: "Returns the kind, plan, items, free capacity and present rate of a filter",
        complexity: "O(n), n the memory of the filter: the present rate is computed from all bits",
        since: "0.1.0",
        handler: read(tm::info),
        ..DEFAULTS
    },
    Command {
        name: "TM.LOAD",
        arity: AtLeast(3),
        flags: &[Write, DenyOom, Module, File(2)],
        categories: &[WriteGroup, Tamis, Slow],
        keys: WRITE_KEY,
        syntax: "key data [REPLACE]",
        summary: "Creates a filter from a file of tamis build or TM.DUMP",
        complexity: "O(n), n the length of the data",
        since: "0.1.0",
        handler: write(tm::load),
        ..DEFAULTS
    },
    Command {
        name: "TM.MADD",
        arity: AtLeast(3),
        flags: ADDS,
        categories: &[WriteGroup, Tamis, Slow],
        keys: WRITE_KEY,
        syntax: "key item [item ...]",
        summary: "Adds items to a filter; returns which are new",
        complexity: "O(n), n the number of items",
        since: "0.1.0",
        handler: insert(Family::Tamis, false),
        ..DEFAULTS
    },
    Command {
        name: "TM.MERGE",
        arity: AtLeast(3),
        flags: ADDS,
        categories: &[WriteGroup, Tamis, Slow],
        keys: Keys::ALL.with(Access::WRITE).others(Access::READ),
        syntax: "destination source [source ...]",
        summary: "Adds all items of the source filters to a filter of the same layout; creates it if it does not exist",
        complexity: "O(n), n the memory of the filters",
        since: "0.1.0",
        handler: Handler::WriteKeys(WriteKeys::Merge),
        ..DEFAULTS
    },
    Command {
        name: "TM.MEXISTS",
        arity: AtLeast(3),
        flags: READS,
        categories: &[ReadGroup, Tamis, Slow],
        keys: READ_KEY,
        syntax: "key item [item ...]",
        summary: "Tests which items may be in a filter; the answer no is certain",
        complexity: "O(n), n the number of items",
        since: "0.1.0",
        handler: contains(Family::Tamis, false),
        ..DEFAULTS
    },
    Command {
        name: "TM.PLAN",
        arity: AtLeast(3),
        flags: READS,
        categories: &[ReadGroup, Tamis, FastGroup],
        syntax: "[KIND kind] [ITEMS n] [RATE p] [MEMORY bytes]",
        summary: "Computes memory, items or rate from the other two, for each kind of filter",
        complexity: "O(1)",
        since: "0.1.0",
        handler: Handler::Answer(tm::plan),
        ..DEFAULTS
    },
    Command {
        name: "TM.RESERVE",
        arity: AtLeast(4),
        flags: ADDS,
        categories: &[WriteGroup, Tamis, Slow],
        keys: Keys::ONE.with(Access::WRITE).and_behind("LIKE"),
        syntax: "key KIND kind [ITEMS n] [RATE p] [MEMORY bytes] [COUNTER bits] [BUCKET slots] [WINDOW millis | WINDOW n ITEMS] [SLICES n] [REFRESH] | key LIKE other",
        summary: "Creates an empty filter of a kind from two of items, rate and memory, or with the layout of another filter",
        complexity: "O(1)",
        since: "0.1.0",
        handler: write(tm::reserve),
        ..DEFAULTS
    },
    Command {
        name: "TOUCH",
        arity: AtLeast(2),
        flags: &[ReadOnly, Fast],
        categories: &[Keyspace, ReadGroup, FastGroup],
        keys: Keys::ALL.with(Access::ABOUT),
        syntax: "key [key ...]",
        summary: "Counts how many of the given keys exist",
        complexity: "O(n), n the number of keys",
        since: "3.2.1",
        handler: Handler::ReadKeys(ReadKeys::CountExisting),
        ..DEFAULTS
    },
    Command {
        name: "TTL",
        arity: Exactly(2),
        flags: &[ReadOnly, Fast],
        categories: &[Keyspace, ReadGroup, FastGroup],
        keys: KEY,
        syntax: "key",
        summary: "Returns the seconds until a key expires",
        complexity: "O(1)",
        since: "1.0.0",
        handler: Handler::ReadKeys(ReadKeys::TimeLeft(TimeUnit::Seconds)),
        ..DEFAULTS
    },
    Command {
        name: "TYPE",
        arity: Exactly(2),
        flags: &[ReadOnly, Fast],
        categories: &[Keyspace, ReadGroup, FastGroup],
        keys: KEY,
        syntax: "key",
        summary: "Returns the type of the value of a key",
        complexity: "O(1)",
        since: "1.0.0",
        handler: read(string::type_of),
        ..DEFAULTS
    },
    Command {
        name: "UNLINK",
        arity: AtLeast(2),
        flags: &[Write, Fast],
        categories: &[Keyspace, WriteGroup, FastGroup],
        keys: Keys::ALL.with(Access::WRITE),
        syntax: "key [key ...]",
        summary: "Deletes keys",
        complexity: "O(n), n the number of keys",
        since: "4.0.0",
        handler: Handler::WriteKeys(WriteKeys::Delete),
        ..DEFAULTS
    },
    Command {
        name: "UNWATCH",
        arity: Exactly(1),
        flags: &[Fast, Loading],
        categories: &[Transaction, FastGroup],
        syntax: "",
        summary: "Stops watching keys",
        complexity: "O(1)",
        since: "2.2.0",
        in_multi: InMulti::AtOnce,
        handler: Handler::Server(ServerCommand::Unwatch),
        ..DEFAULTS
    },
    Command {
        name: "WATCH",
        arity: AtLeast(2),
        flags: &[Fast, Loading],
        categories: &[Transaction, FastGroup],
        keys: Keys::ALL.with(Access::ABOUT),
        syntax: "key [key ...]",
        summary: "Watches keys: EXEC runs only if none of them has changed",
        complexity: "O(n), n the number of keys",
        since: "2.2.0",
        in_multi: InMulti::AtOnce,
        handler: Handler::Server(ServerCommand::Watch),
        ..DEFAULTS
    },
];

/// Finds a command by its name, ignoring case.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    // The buffer fits every name, so a longer word is no command.
    let mut capitals = [0; 32];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    let capitals: &[u8] = capitals;
    let at = COMMANDS.binary_search_by(|row| row.name.as_bytes().cmp(capitals)).ok()?;
    Some(&COMMANDS[at])
}

impl Command {
    /// Returns the index of the row in [`COMMANDS`]. Constant time.
    ///
    /// # Panics
    ///
    /// If the command is not a row of the table.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_commands::{COMMANDS, find};
    ///
    /// let command = find(b"ping").unwrap();
    /// assert_eq!(COMMANDS[command.index()].name, "PING");
    /// ```
    #[must_use]
    pub fn index(&self) -> usize {
        COMMANDS.element_offset(self).expect("a command is a row of the table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.name < b.name));
        for command in COMMANDS {
            let small = command.name.to_ascii_lowercase();
            assert_eq!(find(small.as_bytes()).map(|it| it.name), Some(command.name));
        }
        for name in ["", "BF", "BF.AD", "BF.ADDD", &"x".repeat(1000)] {
            assert!(find(name.as_bytes()).is_none());
        }
    }

    #[test]
    fn rows_are_consistent() {
        for command in COMMANDS {
            assert!(!(command.has(Write) && command.has(ReadOnly)), "{}", command.name);
            let has_keys_of_handler = match command.handler {
                Handler::Key(_) => (command.keys.first, command.keys.last) == (1, 1),
                Handler::Answer(_) => command.keys == Keys::NONE,
                Handler::ReadKeys(_) => !command.has(Write),
                Handler::WriteKeys(_) => command.has(Write),
                Handler::Server(_) => !command.has(Write) && !command.has(ReadOnly),
            };
            assert!(has_keys_of_handler, "{}", command.name);
            let is_ping = matches!(command.handler, Handler::Server(ServerCommand::Ping));
            assert_eq!(is_ping, command.name == "PING", "{} has a handler", command.name);
            assert!(!command.since.is_empty() && !command.complexity.is_empty());
            assert!(!command.has(DenyOom) || command.has(Write), "{}", command.name);
            assert!(!command.summary.ends_with('.') && !command.summary.is_empty());
            let speeds = command.categories.iter().filter(|it| [FastGroup, Slow].contains(it));
            assert_eq!(speeds.count(), 1, "{} is either fast or slow", command.name);
            if let Some(items) = command.batch_items() {
                assert_eq!(items.inserts, command.has(Write), "{}", command.name);
                assert_eq!(items.is_one, command.arity == Exactly(3), "{}", command.name);
            }
        }
    }
}
