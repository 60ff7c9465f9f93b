//! Takes the place of the module `redis_key` in the small program. `redis_url::parse` rejects each URL, so no value of
//! `RedisTarget` exists.

use std::convert::Infallible;

use tamis_formats::Format;

use crate::arguments::decode_options::DecodeArgs;
use crate::arguments::unused_options::FileKind;
use crate::exit::Failure;
use crate::filters::redis_url::RedisUrl;
use crate::records::items::{ItemBatch, ItemEncoding};

/// A filter on a server. The small program has no value of this type.
pub struct RedisTarget {
    /// The URL of the filter.
    pub name: String,
    /// The properties that decide which decode options have an effect.
    pub kind: FileKind,
    /// The note that the filter is over its rate.
    pub excess: Option<String>,
    never: Infallible,
}

impl RedisTarget {
    pub fn open(url: RedisUrl, _: &DecodeArgs) -> Result<Option<Self>, Failure> {
        match url.never {}
    }

    pub fn report(&self) -> bool {
        match self.never {}
    }

    pub fn encoding(&self) -> ItemEncoding {
        match self.never {}
    }

    pub fn insert_each(&mut self, _: &ItemBatch) -> Result<(), Failure> {
        match self.never {}
    }

    pub fn contains_each(&mut self, _: &ItemBatch) -> Result<Vec<bool>, Failure> {
        match self.never {}
    }

    pub fn reopened(self, _: &DecodeArgs) -> Result<Self, Failure> {
        match self.never {}
    }

    pub fn finish(&mut self) -> Result<(), Failure> {
        match self.never {}
    }
}

pub fn download(url: RedisUrl, _: &DecodeArgs) -> Result<Vec<u8>, Failure> {
    match url.never {}
}

pub fn upload(url: RedisUrl, _: &Format, _: &[u8]) -> Result<(), Failure> {
    match url.never {}
}

pub fn redisson_plan(_: &[u8]) -> Option<(u64, f64)> {
    None
}
