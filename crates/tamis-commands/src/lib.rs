//! Implements the commands of the server as functions of a value and an argv.
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
//! | [`COMMANDS`], [`Command`], [`find`] | all commands; one command; finds a command by name |
//! | [`Handler`], [`KeyHandler`] | the function that runs a command; the variant states the required access to keys |
//! | [`Value`] | the value of a key: a filter or a string of bytes |
//! | [`Env`], [`Outcome`], [`Change`] | the other inputs of a handler; its result; the change for the log |
//! | [`Batch`] | several commands with items on one key, which run as one batch |
//! | [`Settings`] | the parameters of new filters |
//!
//! Each command is one row of the static [table](COMMANDS), and the row contains the handler. A
//! handler uses no socket, no file and no lock. The server looks up the key, takes the shared or
//! exclusive lock that the row requires, runs the handler and writes the reply. The handler checks
//! all arguments before the first change. The server, the help, the permission checks and the
//! documentation read the metadata of a command from the row.
//!
//! `BF.*` and `CF.*` commands send the same replies as RedisBloom. Bitmap and string commands send
//! the same replies as Redis 7.0. Clients compare error texts with known texts. The module [`text`]
//! contains all error texts. `TM.*` commands exist only in Tamis and work on every kind of filter.
//! The error text of a `TM.*` command says how to fix the error.

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
