//! HTTP and TLS: servers, clients and the proxy.

#[cfg(feature = "proxy")]
pub(crate) mod answer;
#[cfg(feature = "proxy")]
pub(crate) mod authorize;
#[cfg(feature = "proxy")]
pub(crate) mod bearer_token;
pub(crate) mod cache_control;
#[cfg(feature = "proxy")]
pub(crate) mod client;
#[cfg(feature = "proxy")]
pub(crate) mod entity_tag;
#[cfg(feature = "proxy")]
pub(crate) mod patient_stream;
#[cfg(feature = "proxy")]
pub(crate) mod proxy;
#[cfg(feature = "proxy")]
pub(crate) mod server;
