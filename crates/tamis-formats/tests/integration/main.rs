//! Tests of the formats through the public interface. They are one program because each test
//! program is linked separately.

mod abloom;
mod bip158;
mod bip37;
mod bits_and_blooms;
mod bloom_filters;
mod byte_buffer;
mod c_hashcode;
mod cassandra;
mod charsets;
mod dcso;
mod every_format;
mod golden;
#[path = "../golden_data/mod.rs"]
mod golden_data;
mod guava;
mod hadoop;
mod hive;
mod items_of_python;
mod java_bitmap;
mod leveldb;
mod my_bloom_filter;
mod orc;
mod over_rate;
mod parquet;
mod pybloom_live;
mod pybloomfiltermmap;
mod rates;
mod rbloom;
mod rdb;
mod redis_bitmap;
mod redis_bitmaps;
mod redis_payload;
mod redisbloom;
mod redisson;
mod roaring;
mod rocksdb;
mod save;
mod spark;
mod state_machine;
mod stream_lib;
mod support;
mod tamis_file;
