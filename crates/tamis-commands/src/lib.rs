//! The commands of the server, as functions of a value and an argv.
//!
//! ```text
//! argv ──▶ row of the table ──▶ handler of value and argv ──▶ reply, change of the value
//!          name, arity, keys,   a filter, a bitmap, none      as RESP2 or RESP3
//!          flags, categories
//! ```
//!
//! ```
//! use tamis_commands::{Env, Handler, Settings, find};
//! use tamis_resp::{Protocol, Reply};
//!
//! let settings = Settings::default();
//! let env = Env::new(&settings, Protocol::Resp3, 0);
//! let mut seen = None; // The key does not exist.
//! let mut run = |argv: &[&[u8]]| {
//!     let Handler::Key(handler) = find(argv[0])?.handler else { return None };
//!     Some(handler.run(&mut seen, argv, &env).reply)
//! };
//! assert_eq!(run(&[b"BF.ADD", b"seen", b"user:1001"]), Some(Reply::Bool(true)));
//! assert_eq!(run(&[b"BF.EXISTS", b"seen", b"user:1002"]), Some(Reply::Bool(false)));
//! ```
//!
//! | type | meaning |
//! | --- | --- |
//! | [`COMMANDS`], [`Command`], [`find`] | the table; a row; the row with a name |
//! | [`Handler`], [`KeyHandler`] | the function of a command, by what it needs |
//! | [`Value`] | the value of a key: a filter or a string of bytes |
//! | [`Env`], [`Outcome`], [`Change`] | the other inputs of a handler; its reply; its log entry |
//! | [`Batch`] | several commands with items on one key, run as one |
//! | [`Settings`] | the parameters of new filters |
//!
//! A command is a row of one static [table](COMMANDS) and a handler. The handler knows no socket,
//! no file and no lock. The server looks the key up, takes the shared or exclusive lock that the
//! row requires, runs the handler and writes the reply. The handler checks its arguments before the
//! first change. The server, help, access rights and documentation read everything about a command
//! from its row.
//!
//! `BF.*` commands and `CF.*` commands answer exactly as RedisBloom does; bitmap and string
//! commands answer exactly as Redis 7.0 does. Clients match on these texts, which are in [`text`].
//! `TM.*` commands are Tamis' own and work on every kind of filter; their errors say what to do.

mod access;
mod argv;
mod arity;
mod batch;
mod bf;
mod bitmap;
mod category;
mod cf;
mod command;
mod curve;
mod empty_filter;
mod filter_info;
mod forecast;
mod handler;
mod heap;
mod insert;
mod keys;
mod load_commands;
mod new_filter;
mod partial_load;
mod permission;
mod run;
mod scalable_bloom;
mod serialization;
mod settings;
mod small_bytes;
mod sparse_bytes;
mod string;
mod subcommands;
mod table;
pub mod text;
mod tm;
mod utilization;
mod value;

pub use argv::{Argv, parse_double, parse_integer};
pub use arity::Arity;
pub use batch::{Batch, BatchAnswers, BatchItems, Family};
pub use bitmap::BitOp;
pub use category::Category;
pub use command::{Command, Data, Flag, InMulti, Secrets};
pub use curve::RatePoint;
pub use forecast::Forecast;
pub use handler::{
    AnswerHandler, Handler, KeyHandler, ReadHandler, ReadKeys, ServerCommand, TimeUnit,
    WriteHandler, WriteKeys,
};
pub use insert::BatchPart;
pub use keys::{Access, KeyOption, Keys};
pub use load_commands::{LoadCommand, load_commands};
pub use partial_load::PartialLoad;
pub use permission::Permission;
pub use run::{Change, Env, ErrorReply, Expiry, KeyReply, Outcome, Written};
pub use scalable_bloom::{ExpandError, ScalableBloom};
pub use serialization::{ImageError, MAX_STRING_BYTES};
pub use settings::{ArgumentLimits, BloomLayout, Setting, SettingError, Settings};
pub use small_bytes::SmallBytes;
pub use sparse_bytes::SparseBytes;
pub use string::{get as get_string, set as set_string};
pub use subcommands::{SUBCOMMANDS, Subcommand};
pub use table::{COMMANDS, find};
pub use tamis::{allocation_bytes, allocation_bytes_of_glibc};
pub use tm::{
    PlanCurve, decode_file, info_reply, load_decoded, load_refusal, made_like, merge, plan,
    plan_curves, reserve_like,
};
pub use utilization::Utilization;
pub use value::{EmptyFilter, Value};
