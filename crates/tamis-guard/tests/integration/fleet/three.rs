//! Three instances: a leader that follows an SQLite database, and two followers, while a writer
//! changes the table and the test breaks what it can.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tamis_guard::SyncState;
use tamis_guard::source::{ChangeColumn, Source, SqliteOptions};

use super::instances::{Follower, Leader, any_port};
use crate::checker::{Committed, Random, check, options, wait_synced};
use crate::sources::sqlite::Shop;
use crate::tcp_proxy::TcpProxy;

fn leader(path: &Path, address: std::net::SocketAddr) -> Leader {
    let overlap = Duration::from_millis(200);
    let sqlite = SqliteOptions {
        changes: Some(ChangeColumn { column: "updated_at".to_owned(), overlap }),
        deletions: Some("SELECT id FROM deleted".to_owned()),
        ..SqliteOptions::new(path, "products", "id")
    };
    // Little history, so that followers lose it too.
    Leader::start(address, 0, |ids: Arc<_>| Source::sqlite(ids, sqlite, options()))
}

/// Writes transactions until the time is over.
struct Writer<'t> {
    connection: Connection,
    committed: &'t Committed,
    random: Random,
    next: u64,
}

impl Writer<'_> {
    fn run(&mut self, transactions: u64) {
        for _ in 0..transactions {
            let first = self.next;
            self.next += 1 + self.random.below(4);
            let transaction = self.connection.transaction().unwrap();
            for id in first..self.next {
                transaction
                    .execute("INSERT INTO products VALUES (?1, ?1, NULL)", [id as i64])
                    .unwrap();
            }
            let deleted = self.committed.pick(&mut self.random).filter(|id| id % 3 == 0);
            if let Some(id) = deleted {
                self.committed.remove([id]);
                transaction.execute("DELETE FROM products WHERE id = ?1", [id as i64]).unwrap();
                transaction.execute("INSERT INTO deleted VALUES (?1)", [id as i64]).unwrap();
            }
            transaction.commit().unwrap();
            self.committed.insert(first..self.next);
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}

#[test]
fn no_follower_refuses_a_committed_id_while_leader_followers_and_network_break() {
    let Shop { path, connection, _dir } = Shop::new("wal");
    let committed = Committed::default();
    let mut writer = Writer { connection, committed: &committed, random: Random(17), next: 1 };
    writer.run(20);
    let first = leader(&path, any_port());
    let address = first.address();
    let proxies = [(); 2].map(|()| TcpProxy::start(address));
    let followers = [0, 1].map(|i| Follower::start(proxies[i].address));
    for follower in &followers {
        wait_synced(&follower.source);
    }
    let [one, two] = &followers;
    check(&one.source, &one.ids, &committed, || {
        check(&two.source, &two.ids, &committed, || {
            writer.run(50);
            // A cut network.
            proxies[0].cut();
            writer.run(50);
            // A partition of one follower, longer than the sync delay.
            proxies[1].partition();
            while two.source.status().state == SyncState::Synced {
                writer.run(5);
            }
            proxies[1].heal();
            writer.run(50);
            // New generations while the followers pull.
            for _ in 0..5 {
                first.source.rebuild();
                writer.run(10);
                // Its snapshot may be older than the changes that it has.
                one.source.rebuild();
                writer.run(10);
            }
            // Another table under the same name.
            writer.connection.execute_batch("CREATE TABLE other (id INTEGER)").unwrap();
            writer.run(50);
            // A killed leader, and its successor.
            drop(first);
            writer.run(50);
            let _successor = leader(&path, address);
            writer.run(50);
            proxies[0].cut();
            proxies[1].cut();
            writer.run(50);
        });
    });
    assert!(followers.iter().all(|it| it.source.status().generations > 1));
    // A follower that starts late.
    let _leader = leader(&path, address);
    let late = Follower::start(address);
    wait_synced(&late.source);
    check(&late.source, &late.ids, &committed, || writer.run(50));
}
