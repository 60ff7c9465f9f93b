//! Operations on filters, such as inserts, merges and rebuilds. The modules of operations open no
//! sockets.

pub(crate) mod batch;
pub(crate) mod create_shards;
pub(crate) mod generations;
pub(crate) mod growth;
pub(crate) mod lifecycle;
pub(crate) mod merge;
pub(crate) mod probe;
pub(crate) mod slices;
pub(crate) mod sweep;
