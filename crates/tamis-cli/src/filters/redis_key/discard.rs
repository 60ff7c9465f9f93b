//! Deletes the keys of an unfinished filter.

use tamis_redis::{RedisGeneration, RedisNodes};

use crate::filters::redis_key::value::patience;
use crate::filters::redis_url::RedisUrl;
use crate::io::temporary::at_interruption;

/// Deletes the keys of an unfinished filter if the program is interrupted.
pub fn discard_at_interruption(url: &RedisUrl, generation: &RedisGeneration) {
    let (url, generation) = (url.clone(), generation.clone());
    at_interruption(move || discard(&url, &generation));
}

/// Deletes the keys of an unfinished filter. The keys remain if the server does not respond.
pub fn discard(url: &RedisUrl, generation: &RedisGeneration) {
    let nodes = RedisNodes::connect(&url.server, patience());
    if let Err(error) = nodes.and_then(|nodes| generation.discard(&nodes)) {
        note!("{}: the keys of the unfinished filter were not deleted: {error}", url.name);
    }
}
