//! Followers of a leader never refuse an id that was committed before the request and longer ago
//! than the sync delay, whatever happens to the leader, the followers and the network.

mod hostile;
mod http;
mod instances;
mod stories;
mod three;
