//! Connections to servers, clusters and Sentinels.

#[cfg(feature = "async")]
pub(crate) mod async_cluster;
#[cfg(feature = "async")]
pub(crate) mod asynchronous;
pub(crate) mod blocking;
pub(crate) mod cluster;
pub(crate) mod exchange;
pub(crate) mod key_url;
pub(crate) mod nodes;
pub(crate) mod request;
pub(crate) mod routes;
pub(crate) mod sentinel;
pub(crate) mod server_url;
pub(crate) mod slot;
