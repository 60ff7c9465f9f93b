//! The commands, once, for every host.
//!
//! ```text
//! words ──▶ row of the table ──▶ function of value and words ──▶ reply, and whether the value changed
//!            name, arity, keys,    a filter, a bitmap, nothing     as RESP2 or RESP3
//!            flags, categories
//! ```
//!
//! A command is a row of one static [table](COMMANDS) and a function that knows neither socket nor file nor
//! lock: the host looks the key up, locks the value shared or exclusively as the row says, and writes the
//! reply. Arguments are checked before the first change. What hosts must know of a command, help, access
//! rights and documentation are all read from the row.
//!
//! `BF.*` and `CF.*` answer as RedisBloom does, bitmaps and strings as Redis 7.0, to the letter, because clients
//! match on their texts; these are in [`text`]. `TM.*` are our own, about every kind of filter; their errors say what to do.

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
pub use batch::{Batch, BatchAnswers, BatchItems, Family, Items};
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
pub use run::{Change, Env, Expiry, Outcome};
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
