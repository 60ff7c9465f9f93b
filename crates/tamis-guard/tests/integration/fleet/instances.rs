//! Leaders and followers in the process of the test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tamis_guard::source::{FileFormat, FileOptions, LeaderOptions, Source, SourceOptions};
use tamis_guard::{BearerToken, HttpServer, IdSet, Publication, PublicationOptions};
use tokio::runtime::Runtime;

use crate::checker::{Dir, id_set, integers, options, wait_synced};

pub const TOKEN: &str = "a token of the fleet";

pub fn token() -> BearerToken {
    BearerToken::new(TOKEN).unwrap()
}

/// A server of the test. Dropping it closes all connections.
pub struct Server {
    pub address: SocketAddr,
    _runtime: Runtime,
}

impl Server {
    /// Publishes a set.
    pub fn publish(address: SocketAddr, publication: Publication) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let publication = Arc::new(publication);
        // The connections of a server that was killed may still end.
        let server = tamis_testing::wait_for(format_args!("{address} is free"), || {
            runtime.block_on(HttpServer::bind(address)).ok()
        });
        let address = server.address();
        runtime.spawn(server.run(move |request| {
            let publication = Arc::clone(&publication);
            async move { publication.answer(&request).await }
        }));
        Self { address, _runtime: runtime }
    }
}

/// A leader that reads a list of ids.
pub struct Leader {
    pub ids: Arc<IdSet>,
    pub source: Source,
    pub server: Server,
}

pub fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

impl Leader {
    pub fn start(
        address: SocketAddr,
        history_bytes: usize,
        source: impl FnOnce(Arc<IdSet>) -> Source,
    ) -> Self {
        let ids = id_set(integers());
        let options =
            PublicationOptions { history_bytes, ..PublicationOptions::new("products", token()) };
        let publication = Publication::new(Arc::clone(&ids), &options);
        let source = source(Arc::clone(&ids));
        Self { ids, source, server: Server::publish(address, publication) }
    }

    /// Starts a leader that reads a list with the ids from 1 to `last`.
    pub fn with_ids(last: u64) -> (Dir, Self) {
        let dir = Dir::new();
        write_list(&dir, 1..=last);
        let leader = Self::of_list(&dir, any_port());
        (dir, leader)
    }

    /// Starts a leader that reads `ids.txt` in a directory.
    pub fn of_list(dir: &Dir, address: SocketAddr) -> Self {
        let mut file = FileOptions::new(dir.path("ids.txt"), FileFormat::Lines);
        file.quiet = Duration::from_millis(20);
        file.min_share = 0.0;
        Self::start(address, 8 << 20, |ids| Source::file(ids, file, options()))
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address
    }
}

/// A follower.
pub struct Follower {
    pub ids: Arc<IdSet>,
    pub source: Source,
}

impl Follower {
    pub fn start(leader: SocketAddr) -> Self {
        Self::with(leader_options(leader), options())
    }

    /// Starts a follower, and waits until it has the ids of its leader.
    pub fn synced(leader: SocketAddr) -> Self {
        let follower = Self::start(leader);
        wait_synced(&follower.source);
        follower
    }

    pub fn with(leader: LeaderOptions, options: SourceOptions) -> Self {
        let ids = id_set(integers());
        let source = Source::leader(Arc::clone(&ids), leader, options);
        Self { ids, source }
    }
}

pub fn leader_options(leader: SocketAddr) -> LeaderOptions {
    let url = format!("http://{leader}/filters/products").parse().unwrap();
    LeaderOptions::new(url, token())
}

/// Writes a list of ids as a whole.
pub fn write_list(dir: &Dir, ids: impl IntoIterator<Item = u64>) {
    let text: String = ids.into_iter().map(|id| format!("{id}\n")).collect();
    std::fs::write(dir.path("new"), text).unwrap();
    std::fs::rename(dir.path("new"), dir.path("ids.txt")).unwrap();
}
