//! The module of Redis and Valkey: `redis-server --loadmodule libtamis.so`.
//!
//! ```text
//! server ──▶ callback.rs ──▶ call.rs ──▶ handler of tamis-commands ──▶ reply.rs ──▶ client
//!            of commands.rs   opens       value, argv                 replicate.rs ──▶ replicas, AOF
//!                             the key
//!                             long.rs: a long command in parts, one in each turn of the event loop
//! types.rs: RDB, AOF, digest, copy, memory, free        config.rs, info.rs: CONFIG, INFO
//! max_memory.rs: `maxmemory`
//! ```
//!
//! The module only adapts the server's interface. The other crates implement the commands, the filters and the formats.
//! A key of the module holds an `Option<Value>`, which is always `Some` between two commands.
//!
//! The module uses `unsafe` to call the C functions of the server and to read the pointers that the server passes to
//! callbacks. Each callback except [`free`](types) runs on the main thread or in a forked child. The server may call
//! `free` on another thread, after no key holds the value.

mod allocator;
mod api;
mod arguments;
mod call;
mod callback;
mod commands;
mod config;
mod info;
mod key_specs;
mod load;
mod long;
mod max_memory;
mod module_io;
mod open_key;
mod registered_name;
mod replicate;
mod reply;
mod rewrite;
mod types;
mod value_type;
mod write_value;

#[global_allocator]
static ALLOCATOR: allocator::ServerAllocator = allocator::ServerAllocator;
