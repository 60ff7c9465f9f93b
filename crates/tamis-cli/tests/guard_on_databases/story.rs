//! Random changes, and faults of a guard, its database and the network between them, in an order that
//! a seed decides.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::changes::{Changes, Database, Deletion};
use crate::client::Client;
use crate::freeze::freeze;
use crate::guard::{Guard, STALE_AFTER, status};
use crate::promise::{Checker, MARGIN, NEVER};
use crate::tcp_proxy::TcpProxy;
use tamis_testing::wait_until;

/// A database in front of which a guard stands.
pub trait Attacked: Database {
    /// Returns the `source` of a guard whose connections go to `address`.
    fn source(&self, address: SocketAddr) -> String;
    /// Returns the processes of the running server.
    fn processes(&self) -> Vec<u32>;
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    KillGuard,
    StopGuard,
    /// The guard starts while the network is broken, long after it was killed.
    StartWithoutDatabase,
    ReloadGuard,
    /// The guard stands still for longer than the sync delay. Requests wait for it.
    FreezeGuard,
    CutNetwork,
    PartitionNetwork,
    FreezeDatabase,
    /// The guard starts while the database stands still.
    StartWithFrozenDatabase,
    CrashDatabase,
    /// The guard and the database are killed, and start at the same time.
    CrashBoth,
    /// The table is replaced again while the guard reads it.
    SwapTable,
    TruncateTable,
}

impl Fault {
    const ALL: [Self; 13] = [
        Self::KillGuard,
        Self::StopGuard,
        Self::StartWithoutDatabase,
        Self::ReloadGuard,
        Self::FreezeGuard,
        Self::CutNetwork,
        Self::PartitionNetwork,
        Self::FreezeDatabase,
        Self::StartWithFrozenDatabase,
        Self::CrashDatabase,
        Self::CrashBoth,
        Self::SwapTable,
        Self::TruncateTable,
    ];
}

/// How often each fault happens.
const ROUNDS: u32 = 2;

/// Runs a guard in front of a database, with all faults, and checks the promise meanwhile.
pub fn run(database: &mut impl Attacked, seed: u64) {
    let mut changes = Changes::new(seed, Deletion::Row);
    changes.commit(database);
    let network = TcpProxy::start(database.address());
    let guard = Guard::start(database.source(network.address));
    let committed = Arc::clone(&changes.committed.0);
    let checker = Checker::start(guard.addresses(), guard.life(), committed);
    let mut story = Story { database, changes, network, guard, start: Instant::now() };
    let faults: Vec<Fault> = (0..ROUNDS).flat_map(|_| story.shuffled()).collect();
    for fault in faults {
        if checker.has_failed() {
            break;
        }
        story.step(fault);
    }
    story.network.heal();
    let counts = checker.end();
    let counts = counts.unwrap_or_else(|why| {
        panic!("the promise is broken: {why}\nlog of the guard:\n{}", story.guard.log_end())
    });
    story.wait_until_exact();
    println!("{:?}: {counts:?}", story.start.elapsed());
    let log = story.guard.log();
    assert!(!log.contains("panicked"), "{log}");
    // Otherwise the faults hit a guard that passes everything.
    assert!(counts.checks_in_use > counts.checks / 50, "{counts:?}");
}

struct Story<'a, D> {
    database: &'a mut D,
    changes: Changes,
    network: TcpProxy,
    guard: Guard,
    start: Instant,
}

impl<D: Attacked> Story<'_, D> {
    fn shuffled(&mut self) -> [Fault; Fault::ALL.len()] {
        let mut faults = Fault::ALL;
        for i in (1..faults.len()).rev() {
            faults.swap(i, self.changes.random.below(i as u64 + 1) as usize);
        }
        faults
    }

    /// Makes changes and a fault.
    fn step(&mut self, fault: Fault) {
        // Some faults hit a guard that refuses absent ids, and some meet the fault before.
        if self.changes.random.below(4) > 0 {
            self.wait_until_in_use();
        }
        self.change(4);
        println!("{:?}: {fault:?}", self.start.elapsed());
        let is_partitioned = self.changes.random.below(5) == 0;
        if is_partitioned {
            self.network.partition();
            // The database keeps the locks of a session until it notices that the guard is lost. A
            // change that replaces the table would wait for the end of the partition, and the end of
            // the partition for the change.
            self.network.cut();
        }
        self.make(fault);
        if is_partitioned {
            self.network.heal();
        }
        self.change(2);
    }

    fn make(&mut self, fault: Fault) {
        match fault {
            Fault::KillGuard => {
                self.guard.kill();
                self.change(2);
                self.guard.run();
            }
            Fault::StopGuard => {
                self.guard.stop();
                self.change(2);
                self.guard.run();
            }
            Fault::StartWithoutDatabase => {
                self.guard.kill();
                self.change_for(STALE_AFTER + Duration::from_millis(200));
                self.network.partition();
                self.guard.run();
                self.change_for(STALE_AFTER + Duration::from_millis(200));
                self.network.heal();
            }
            Fault::ReloadGuard => {
                for _ in 0..2 {
                    self.guard.reload();
                    self.change(2);
                }
            }
            Fault::FreezeGuard => self.freeze_guard(),
            Fault::CutNetwork => self.network.cut(),
            Fault::PartitionNetwork => {
                self.network.partition();
                self.change_for(STALE_AFTER + MARGIN + Duration::from_millis(800));
                self.network.heal();
            }
            Fault::FreezeDatabase => {
                let pause = 500 + self.changes.random.below(1500);
                freeze(&self.database.processes(), Duration::from_millis(pause), || {});
            }
            Fault::StartWithFrozenDatabase => {
                self.guard.kill();
                self.change_for(Duration::from_millis(500));
                freeze(&self.database.processes(), Duration::from_millis(1800), || {
                    self.guard.run();
                });
            }
            Fault::CrashDatabase => {
                self.changes.kill(self.database);
                self.database.run();
            }
            Fault::CrashBoth => {
                self.changes.kill(self.database);
                self.guard.kill();
                if self.changes.random.below(2) == 0 {
                    self.guard.run();
                    self.database.run();
                } else {
                    self.database.run();
                    self.change(2);
                    self.guard.run();
                }
            }
            Fault::SwapTable => {
                for _ in 0..5 {
                    self.changes.swap(self.database);
                    self.changes.pause(80);
                }
            }
            Fault::TruncateTable => self.changes.truncate(self.database),
        }
    }

    /// Freezes the guard. Meanwhile ids are committed and requests for them are sent.
    fn freeze_guard(&mut self) {
        let new_client = |absent| {
            let mut client = Client::new(self.guard.addresses().proxy);
            client.get(&format!("/products/{absent}")).unwrap();
            client
        };
        let mut clients: Vec<Client> = (NEVER - 20..NEVER).map(new_client).collect();
        let process = self.guard.pid().as_raw_nonzero().get().unsigned_abs();
        let mut asked = Vec::new();
        freeze(&[process], STALE_AFTER + MARGIN + Duration::from_millis(500), || {
            let before = self.changes.committed.ids();
            self.changes.commit(self.database);
            std::thread::sleep(STALE_AFTER + MARGIN);
            asked
                .extend(self.changes.committed.ids().into_iter().filter(|id| !before.contains(id)));
            for (client, id) in clients.iter_mut().zip(asked.iter().cycle()) {
                client.send(&format!("/products/{id}")).unwrap();
            }
        });
        for (client, id) in clients.iter_mut().zip(asked.iter().cycle()) {
            let answer = client.receive().unwrap();
            assert_eq!(answer.status, 200, "id {id}: {}", answer.text);
        }
    }

    /// Makes some changes.
    fn change(&mut self, most: u64) {
        for _ in 0..=self.changes.random.below(most) {
            self.changes.change(self.database);
            self.changes.pause(60);
        }
    }

    /// Makes changes for some time.
    fn change_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.changes.commit(self.database);
            self.changes.pause(100);
        }
    }

    /// Waits until the guard is synced and refuses an absent id.
    fn wait_until_in_use(&self) {
        let mut client = Client::new(self.guard.addresses().proxy);
        let mut absent = NEVER;
        self.wait("the guard is synced and refuses an absent id", || {
            absent -= 1;
            self.is_synced() && has_status(&mut client, absent, 404)
        });
    }

    /// Waits until the guard passes exactly the ids that exist.
    fn wait_until_exact(&self) {
        let mut client = Client::new(self.guard.addresses().proxy);
        let ids = self.changes.committed.ids();
        self.wait("the guard passes exactly the ids that exist", || {
            self.is_synced()
                && self.changes.gone.iter().all(|&id| has_status(&mut client, id, 404))
                && ids.iter().all(|&id| has_status(&mut client, id, 200))
        });
    }

    fn is_synced(&self) -> bool {
        let mut admin = Client::new(self.guard.addresses().admin);
        status(&mut admin).is_ok_and(|status| status["state"] == "synced")
    }

    fn wait(&self, what: &str, is_done: impl FnMut() -> bool) {
        let what = fmt::from_fn(|f| {
            let status = status(&mut Client::new(self.guard.addresses().admin));
            write!(f, "{what}: {status:?}\n{}", self.guard.log_end())
        });
        wait_until(what, is_done);
    }
}

fn has_status(client: &mut Client, id: u64, status: u16) -> bool {
    client.get(&format!("/products/{id}")).is_ok_and(|answer| answer.status == status)
}
