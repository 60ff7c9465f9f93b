//! Maps the slots of a cluster to nodes, and follows redirections.

use std::collections::BTreeMap;
use std::sync::Arc;

use redis::Value;

use crate::transport::request::{NodeReply, NodeRequest};
use crate::transport::slot::{SLOTS, cluster_slot};

/// The address of a node: the host and the port, separated by a colon.
pub(crate) type Address = Arc<str>;

/// The node of each slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    /// The node of each slot. The list is empty until a node has sent the slots.
    slots: Vec<Option<Address>>,
    is_outdated: bool,
}

/// A request that is assigned to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Routed {
    /// The index of the request.
    pub(crate) request: usize,
    /// Whether the client sends `ASKING` before the request.
    pub(crate) is_asking: bool,
}

/// The nodes to which `ASK` redirects single requests, because the cluster is moving the slots of
/// these requests.
pub(crate) type Asks = BTreeMap<usize, Address>;

impl Routes {
    /// Tests whether the client must read the slots from a node.
    pub(crate) fn is_outdated(&self) -> bool {
        self.slots.is_empty() || self.is_outdated
    }

    /// Marks the slots as outdated, so that the next attempt reads the slots again.
    pub(crate) fn expire(&mut self) {
        self.is_outdated = true;
    }

    /// Returns the nodes of all slots, without duplicates.
    pub(crate) fn nodes(&self) -> Vec<Address> {
        let mut nodes: Vec<_> = self.slots.iter().flatten().cloned().collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Stores the slots from the reply of the node `from` to `CLUSTER SLOTS`. Returns false if the
    /// reply contains no slots.
    pub(crate) fn load(&mut self, from: &str, reply: &Value) -> bool {
        let Value::Array(ranges) = reply else { return false };
        let mut slots = vec![None; SLOTS as usize];
        for range in ranges {
            let Value::Array(range) = range else { return false };
            let [Value::Int(first), Value::Int(last), Value::Array(node), ..] = &range[..] else {
                return false;
            };
            let [host, Value::Int(port), ..] = &node[..] else { return false };
            let host = match host {
                Value::BulkString(host) => String::from_utf8_lossy(host).into_owned(),
                Value::SimpleString(host) => host.clone(),
                _ => String::new(),
            };
            let address = resolve(from, &host, &port.to_string());
            let (Ok(first), Ok(last)) = (usize::try_from(*first), usize::try_from(*last)) else {
                return false;
            };
            let Some(slots) = slots.get_mut(first..=last) else { return false };
            slots.fill(Some(address));
        }
        self.is_outdated = false;
        self.slots = slots;
        !ranges.is_empty()
    }

    /// Returns the requests for each node. If the slot of a request has no node, the request goes
    /// to an arbitrary node, which replies with an error.
    pub(crate) fn distribute(
        &self,
        requests: &[NodeRequest],
        open: &[usize],
        asks: &Asks,
    ) -> BTreeMap<Address, Vec<Routed>> {
        let mut nodes: BTreeMap<Address, Vec<Routed>> = BTreeMap::new();
        for &request in open {
            let ask = asks.get(&request).cloned();
            let is_asking = ask.is_some();
            let slot = usize::from(cluster_slot(&requests[request].key));
            let known = self.slots.get(slot).cloned().flatten();
            let node = ask.or(known).or_else(|| self.nodes().into_iter().next());
            if let Some(node) = node {
                nodes.entry(node).or_default().push(Routed { request, is_asking });
            }
        }
        nodes
    }

    /// Updates the routes from a reply of the node `from`. Returns true if the reply redirects the
    /// request.
    pub(crate) fn learn(
        &mut self,
        from: &str,
        request: usize,
        reply: &NodeReply,
        asks: &mut Asks,
    ) -> bool {
        let Ok(Value::ServerError(error)) = reply else { return false };
        let target = || {
            let (slot, address) = error.details()?.split_once(' ')?;
            let (host, port) = address.rsplit_once(':')?;
            Some((slot.parse::<usize>().ok()?, resolve(from, host, port)))
        };
        match (error.code(), target()) {
            ("MOVED", Some((slot, node))) => {
                if let Some(known) = self.slots.get_mut(slot) {
                    *known = Some(node);
                }
                // The cluster has probably moved more than one slot, so the client reads all slots
                // again.
                self.is_outdated = true;
                true
            }
            ("ASK", Some((_, node))) => {
                asks.insert(request, node);
                true
            }
            ("READONLY" | "CLUSTERDOWN" | "MASTERDOWN", _) => {
                self.is_outdated = true;
                false
            }
            _ => false,
        }
    }
}

/// Returns the address of a node. If a reply contains no host, the node has the host of `from`.
fn resolve(from: &str, host: &str, port: &str) -> Address {
    let host = match host {
        "" | "?" => from.rsplit_once(':').map_or(from, |(host, _)| host),
        host => host,
    };
    format!("{host}:{port}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: i64, last: i64, host: &str, port: i64) -> Value {
        let node = vec![Value::BulkString(host.into()), Value::Int(port)];
        Value::Array(vec![Value::Int(first), Value::Int(last), Value::Array(node)])
    }

    fn routes() -> Routes {
        let mut routes = Routes::default();
        let reply = Value::Array(vec![range(0, 8191, "", 1), range(8192, 16383, "b", 2)]);
        assert!(routes.load("a:9", &reply));
        routes
    }

    #[test]
    fn requests_go_to_the_nodes_of_their_slots() {
        let routes = routes();
        let requests = [
            NodeRequest::new("GET", b"foo".to_vec()),
            NodeRequest::new("GET", b"bar".to_vec()),
            NodeRequest::new("GET", b"{foo}2".to_vec()),
        ];
        let nodes = routes.distribute(&requests, &[0, 1, 2], &Asks::new());
        let numbers = |node: &str| nodes[node].iter().map(|r| r.request).collect::<Vec<_>>();
        assert_eq!((numbers("b:2"), numbers("a:1")), (vec![0, 2], vec![1]));
        let asks = Asks::from([(1, "c:3".into())]);
        let nodes = routes.distribute(&requests, &[1], &asks);
        assert_eq!(nodes["c:3"], [Routed { request: 1, is_asking: true }]);
    }

    #[test]
    fn a_reply_that_is_no_list_of_slots_is_ignored() {
        let mut routes = routes();
        for reply in [
            Value::Nil,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 99_999, "a", 1)]),
            Value::Array(vec![range(-1, 5, "a", 1)]),
        ] {
            assert!(!routes.load("a:9", &reply));
        }
        assert_eq!(routes.nodes().len(), 2);
    }
}
