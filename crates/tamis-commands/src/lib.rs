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

mod batch;
mod bf;
mod bitmap;
mod cf;
mod command;
mod filter_info;
mod insert;
mod load_commands;
mod new_filter;
mod settings;
mod string;
mod table;
pub mod text;
mod tm;
mod value;

pub use batch::{Batch, BatchAnswers, BatchItems, Family};
pub use bitmap::BitOp;
pub use command::argv::{Argv, parse_double, parse_integer};
pub use command::arity::Arity;
pub use command::category::Category;
pub use command::handler::{
    AnswerHandler, Handler, KeyHandler, ReadHandler, ReadKeys, ServerCommand, TimeUnit,
    WriteHandler, WriteKeys,
};
pub use command::keys::{Access, KeyOption, Keys};
pub use command::permission::Permission;
pub use command::run::{Change, Env, ErrorReply, Expiry, KeyReply, Outcome, Written};
pub use command::subcommands::{SUBCOMMANDS, Subcommand};
pub use command::{Command, Data, Flag, InMulti, Secrets};
pub use filter_info::curve::RatePoint;
pub use filter_info::forecast::Forecast;
pub use filter_info::utilization::Utilization;
pub use insert::BatchPart;
pub use load_commands::{LoadCommand, load_commands};
pub use settings::{ArgumentLimits, BloomLayout, Setting, SettingError, Settings};
pub use string::{get as get_string, set as set_string};
pub use table::{COMMANDS, find};
pub use tamis::{allocation_bytes, allocation_bytes_of_glibc};
pub use tm::{
    PlanCurve, decode_file, info_reply, load_decoded, load_refusal, made_like, merge, plan,
    plan_curves, reserve_like,
};
pub use value::partial_load::PartialLoad;
pub use value::scalable_bloom::{ExpandError, ScalableBloom};
pub use value::serialization::{ImageError, MAX_STRING_BYTES};
pub use value::small_bytes::SmallBytes;
pub use value::sparse_bytes::SparseBytes;
pub use value::{EmptyFilter, Value};
