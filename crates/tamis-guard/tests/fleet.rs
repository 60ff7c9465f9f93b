//! Followers of a leader never refuse an id that was committed before the request and longer ago
//! than the sync delay, whatever happens to the leader, the followers and the network.

#[path = "sources/checker.rs"]
mod checker;
#[path = "fleet/hostile.rs"]
mod hostile;
#[path = "fleet/http.rs"]
mod http;
#[path = "fleet/instances.rs"]
mod instances;
#[path = "fleet/stories.rs"]
mod stories;
#[path = "support/tcp_proxy.rs"]
mod tcp_proxy;
#[cfg(feature = "sqlite")]
#[path = "fleet/three.rs"]
mod three;
