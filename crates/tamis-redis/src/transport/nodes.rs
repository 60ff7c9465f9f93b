//! The nodes of a URL: one server, a cluster, or a primary behind Sentinels.

use redis::{Cmd, Value};

use crate::error::RedisItemError;
use crate::transport::blocking::{Patience, SingleNode, Transport};
use crate::transport::cluster::ClusterNodes;
use crate::transport::request::{NodeReply, NodeRequest, value};
use crate::transport::sentinel::SentinelNode;
use crate::transport::server_url::{ServerUrlError, check_hosts, subject};

/// The nodes of a URL: one server, a cluster, or a primary behind Sentinels.
/// [`connect`](Self::connect) recognises a cluster. Clones share the connections.
///
/// # Examples
///
/// ```no_run
/// use tamis_redis::{Patience, RedisFilter, RedisNodes};
///
/// let nodes = RedisNodes::connect("redis://user:password@localhost:6379/0", Patience::default())?;
/// let users = RedisFilter::open(nodes, "users")?;
/// assert!(users.contains("alice")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub enum RedisNodes {
    /// One server.
    Single(SingleNode),
    /// The nodes of a cluster.
    Cluster(ClusterNodes),
    /// A primary behind Sentinels.
    Sentinel(SentinelNode),
}

/// The end of the schemes `redis+sentinel://` and `rediss+sentinel://`, which name a primary behind
/// Sentinels.
const SENTINEL: &str = "+sentinel://";

const SYNTAX: &str = "redis+sentinel://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT]/PRIMARY[/DATABASE]";

impl RedisNodes {
    /// Connects to the nodes of a URL, with one round trip. The client can recognise a cluster only
    /// if the user of the URL may run `INFO`.
    ///
    /// * `redis://user:password@host:port/database` is a server, or any node of a cluster.
    /// * `redis+sentinel://user:password@host:port,host:port/primary/database` is the primary with
    ///   the name `primary`. The Sentinels at the given addresses report the primary. The user, the
    ///   password and the database of the URL belong to the primary.
    /// * `rediss://` and `rediss+sentinel://` encrypt the connections (feature `tls`).
    ///
    /// # Errors
    ///
    /// [`RedisItemError::Url`] if the URL is not valid; [`RedisItemError::Connection`] if the
    /// password is wrong, or if no server replies.
    pub fn connect(url: &str, patience: Patience) -> Result<Self, RedisItemError> {
        let nodes = if url.contains(SENTINEL) {
            Self::Sentinel(behind_sentinels(url, patience)?)
        } else {
            Self::Single(SingleNode::new(url, patience)?)
        };
        let mut info = Cmd::new();
        info.arg("INFO").arg("cluster");
        match nodes.query(b"", info) {
            Ok(Value::BulkString(text)) if is_cluster(&text) => {
                Ok(Self::Cluster(ClusterNodes::new([url], patience)?))
            }
            Ok(_) => Ok(nodes),
            // If the user has no permission to run `INFO`, the client treats the server as a single
            // server.
            Err(RedisItemError::Server { code, .. }) if *code == *"NOPERM" => Ok(nodes),
            Err(error) => Err(error),
        }
    }

    /// Runs a command on the node of a key. If no reply arrives, the client sends the command
    /// again.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails.
    pub fn query(&self, key: &[u8], command: Cmd) -> Result<Value, RedisItemError> {
        self.run(&NodeRequest { key: key.to_vec(), command, is_repeatable: true })
    }

    /// Runs a command that must not run twice, such as a command that increments a counter. If no
    /// reply arrives, the server may or may not have executed the command.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails.
    pub fn query_once(&self, key: &[u8], command: Cmd) -> Result<Value, RedisItemError> {
        self.run(&NodeRequest { key: key.to_vec(), command, is_repeatable: false })
    }

    fn run(&self, request: &NodeRequest) -> Result<Value, RedisItemError> {
        let reply = self.send(std::slice::from_ref(request)).remove(0);
        value(&request.key, reply)
    }
}

impl Transport for RedisNodes {
    fn send(&self, requests: &[NodeRequest]) -> Vec<NodeReply> {
        match self {
            Self::Single(node) => node.send(requests),
            Self::Cluster(nodes) => nodes.send(requests),
            Self::Sentinel(node) => node.send(requests),
        }
    }
}

fn is_cluster(info: &[u8]) -> bool {
    String::from_utf8_lossy(info).contains("cluster_enabled:1")
}

/// Parses the URL of a primary behind Sentinels.
fn behind_sentinels(url: &str, patience: Patience) -> Result<SentinelNode, ServerUrlError> {
    let wrong = |why| ServerUrlError::new(url, why, SYNTAX);
    let (scheme, rest) = url.split_once(SENTINEL).expect("the caller has looked");
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    check_hosts(hosts).map_err(wrong)?;
    let (primary, database) = path.split_once('/').unwrap_or((path, "0"));
    if primary.is_empty() {
        return Err(wrong("names no primary"));
    }
    let sentinels: Vec<String> = hosts
        .split(',')
        .map(|host| if has_port(host) { host.to_owned() } else { format!("{host}:26379") })
        .map(|host| format!("{scheme}://{host}"))
        .collect();
    let node = format!("{scheme}://{user}localhost/{database}");
    let sentinels = sentinels.iter().map(String::as_str);
    // The caller did not write the URLs that this function composes.
    SentinelNode::new(sentinels, primary, &node, patience)
        .map_err(|error| ServerUrlError { subject: subject(url), ..error })
}

/// Tests whether a port follows the host. An IPv6 address is in brackets.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.ends_with(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_recognised() {
        let hosts = ["a", "a:1", "[::1]", "[::1]:1", "10.0.0.1"];
        assert_eq!(hosts.map(has_port), [false, true, false, true, false]);
    }

    #[test]
    fn urls_of_sentinels_are_parsed_and_wrong_ones_are_refused() {
        for good in [
            "redis+sentinel://a:1,b/primary",
            "redis+sentinel://user:p%40ss@a:1,b:2/primary/3",
            "redis+sentinel://:pass@[::1]/primary/0",
        ] {
            behind_sentinels(good, Patience::default()).map(|_| ()).unwrap();
        }
        for (bad, why) in [
            ("redis+sentinel://:secret@a:x/primary", "port"),
            ("redis+sentinel://:secret@a/primary/x", "database"),
            ("redis+sentinel://:secret@/primary", "no host"),
            ("redis+sentinel://:secret@a", "no primary"),
            ("http+sentinel://:secret@a/primary", "unknown scheme"),
        ] {
            let error = behind_sentinels(bad, Patience::default()).err().unwrap().to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
            assert!(error.contains("+sentinel://a") || why == "no host", "{error}");
        }
    }

    #[test]
    fn a_cluster_is_recognised() {
        assert!(is_cluster(b"# Cluster\r\ncluster_enabled:1\r\n"));
        assert!(!is_cluster(b"# Cluster\r\ncluster_enabled:0\r\n"));
    }
}
