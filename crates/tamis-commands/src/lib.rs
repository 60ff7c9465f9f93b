//! The commands that every host shares.
//!
//! ```text
//! argv ──▶ row of the table ──▶ handler of value and argv ──▶ reply, change of the value
//!          name, arity, keys,   a filter, a bitmap, none      as RESP2 or RESP3
//!          flags, categories
//! ```
//!
//! A command is a row of one static [table](COMMANDS) and a handler. The handler knows no socket,
//! no file and no lock. The host looks the key up, takes the shared or exclusive lock that the row
//! requires, runs the handler and writes the reply. The handler checks its arguments before the
//! first change. Hosts, help, access rights and documentation read everything about a command from
//! its row.
//!
//! `BF.*` commands and `CF.*` commands answer exactly as RedisBloom does; bitmap and string
//! commands answer exactly as Redis 7.0 does. Clients match on these texts, which are in [`text`].
//! `TM.*` commands are Tamis' own and work on every kind of filter; their errors say what to do.

mod access;
mod argv;
mod batch;
mod bf;
mod bitmap;
mod cf;
mod command;
mod curve;
mod empty_filter;
mod facts;
mod handler;
mod image;
mod insert;
mod partial_load;
mod permission;
mod run;
mod scalable_bloom;
mod settings;
mod small_bytes;
mod string;
mod subcommands;
mod table;
pub mod text;
mod tm;
mod value;

pub use access::Access;
pub use argv::{Argv, parse_double, parse_integer};
pub use batch::{Batch, BatchAnswers, BatchItems, Family};
pub use bitmap::{BitOp, SparseBytes};
pub use command::{Arity, Category, Command, Data, Flag, InMulti, KeyOption, Keys, Secrets};
pub use curve::RatePoint;
pub use empty_filter::EmptyFilter;
pub use facts::{Facts, Forecast, Layer, Utilization};
pub use handler::{
    AnswerHandler, Handler, KeyHandler, ReadHandler, ReadKeys, ServerCommand, TimeUnit,
    WriteHandler, WriteKeys,
};
pub use image::ImageError;
pub use partial_load::PartialLoad;
pub use permission::Permission;
pub use run::{Change, Env, Expiry, KeyReply, Outcome};
pub use scalable_bloom::{ExpandError, ScalableBloom};
pub use settings::{BloomLayout, Setting, SettingError, Settings};
pub use small_bytes::SmallBytes;
pub use string::{get as get_string, set as set_string};
pub use subcommands::{SUBCOMMANDS, Subcommand};
pub use table::{COMMANDS, find};
pub use tamis::allocation_bytes;
pub use tm::{
    PlanCurve, decode_file, load_decoded, load_refusal, made_like, merge, plan, plan_curves,
    reserve_like,
};
pub use value::Value;
