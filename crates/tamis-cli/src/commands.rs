//! Contains the commands. Each command has its own file or folder.

pub(crate) mod add;
pub(crate) mod build;
pub(crate) mod check;
#[cfg(feature = "network")]
pub(crate) mod check_data;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod dedup;
pub(crate) mod formats;
#[cfg(feature = "network")]
pub(crate) mod guard;
#[cfg(feature = "network")]
pub(crate) mod health;
pub(crate) mod info;
pub(crate) mod ints;
pub(crate) mod merge;
pub(crate) mod plan;
#[cfg(feature = "network")]
pub(crate) mod publish;
#[cfg(feature = "network")]
pub(crate) mod pull;
pub(crate) mod remove;
#[cfg(feature = "network")]
pub(crate) mod serve;
