//! The module in a cluster of three masters: redirections, migration of slots, and a crash.

use std::collections::HashMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tamis_resp::Reply;
use tamis_testing::{CommandExt as _, SetOnDrop, join, try_connect, wait_until};

use crate::client::{Client, with_items};
use crate::server::{Host, TestServer};
use crate::status::{array, assert_equal, assert_refused, bulk, bulks, run, wait_for_replica};

/// Three masters, each with a third of the slots.
struct Cluster {
    nodes: Vec<TestServer>,
    ids: Vec<String>,
}

impl Cluster {
    fn start(host: Host, arguments: &[&str]) -> Self {
        // A node that answers late on a busy machine is not taken for a dead one.
        let mut words = vec!["--cluster-enabled", "yes", "--cluster-node-timeout", "20000"];
        words.extend(arguments);
        let nodes: Vec<TestServer> = (0..3).map(|_| TestServer::start(host, &words)).collect();
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create", "--cluster-yes"]);
        let created = create.args(nodes.iter().map(|node| node.address().to_string())).run();
        assert!(created.status.success(), "{host:?}: redis-cli has created the cluster");
        let id = |node: &TestServer| {
            String::from_utf8(bulk(run(&mut node.connect(), "CLUSTER MYID"))).unwrap()
        };
        let ids = nodes.iter().map(id).collect();
        let cluster = Self { nodes, ids };
        cluster.wait();
        cluster
    }

    /// Waits until all nodes serve all slots.
    fn wait(&self) {
        wait_until("the cluster is sound", || {
            self.nodes.iter().all(|node| {
                let text = bulk(run(&mut node.connect(), "CLUSTER INFO"));
                let text = String::from_utf8_lossy(&text);
                text.contains("cluster_state:ok") && text.contains("cluster_known_nodes:3")
            })
        });
    }

    fn client(&self) -> ClusterClient {
        let ports = self.nodes.iter().map(|node| node.port).collect();
        ClusterClient { ports, connections: HashMap::new(), owners: HashMap::new() }
    }

    fn slot(&self, key: &str) -> u16 {
        let slot = run(&mut self.nodes[0].connect(), &format!("CLUSTER KEYSLOT {key}"));
        let Reply::Integer(slot) = slot else { panic!("{slot:?}") };
        slot as u16
    }

    /// Returns the number of the node that owns a slot.
    fn owner(&self, slot: u16) -> usize {
        let ranges = array(run(&mut self.nodes[0].connect(), "CLUSTER SLOTS"));
        let id = ranges.iter().find_map(|range| {
            let Reply::Array(range) = range else { panic!("{range:?}") };
            let [Reply::Integer(first), Reply::Integer(last), Reply::Array(node), ..] = &range[..]
            else {
                panic!("{range:?}")
            };
            (*first..=*last).contains(&i64::from(slot)).then(|| bulk(node[2].clone()))
        });
        let id = id.expect("a node owns each slot");
        self.ids.iter().position(|it| it.as_bytes() == id).expect("it is one of the nodes")
    }

    /// Returns the slot of a key, the node that owns it, and the node that is `step` nodes further.
    fn route(&self, key: &str, step: usize) -> (u16, usize, usize) {
        let slot = self.slot(key);
        let from = self.owner(slot);
        (slot, from, (from + step) % 3)
    }

    /// Moves a slot with its keys, a few at a time.
    fn migrate(&self, slot: u16, from: usize, to: usize) {
        self.begin_migration(slot, from, to);
        self.move_keys(slot, from, to);
        self.end_migration(slot, from, to);
    }

    /// Marks a slot as migrating. Keys that do not exist are then created on the other node.
    fn begin_migration(&self, slot: u16, from: usize, to: usize) {
        let [source, target] = [&self.ids[from], &self.ids[to]];
        let importing = format!("CLUSTER SETSLOT {slot} IMPORTING {source}");
        run(&mut self.nodes[to].connect(), &importing);
        let migrating = format!("CLUSTER SETSLOT {slot} MIGRATING {target}");
        run(&mut self.nodes[from].connect(), &migrating);
    }

    /// Moves the keys of a migrating slot, a few at a time.
    fn move_keys(&self, slot: u16, from: usize, to: usize) {
        let mut source = self.nodes[from].connect();
        let port = self.nodes[to].port.to_string();
        wait_until("all keys of the slot have moved", || {
            let keys = bulks(run(&mut source, &format!("CLUSTER GETKEYSINSLOT {slot} 2")));
            if keys.is_empty() {
                return true;
            }
            let mut words: Vec<&[u8]> =
                vec![b"MIGRATE", b"127.0.0.1", port.as_bytes(), b"", b"0", b"10000", b"KEYS"];
            words.extend(keys.iter().map(Vec::as_slice));
            let moved = source.say(&words);
            assert!(matches!(moved, Reply::Simple(_)), "{moved:?}");
            false
        });
    }

    /// Moves a slot with all of its keys, as Valkey 9 can, and waits until all nodes agree.
    fn migrate_at_once(&self, slot: u16, from: usize, to: usize) {
        let target = &self.ids[to];
        let migrate = format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {target}");
        run(&mut self.nodes[from].connect(), &migrate);
        wait_until("the target owns the slot", || {
            let jobs = run(&mut self.nodes[from].connect(), "CLUSTER GETSLOTMIGRATIONS");
            let has_failed = format!("{jobs:?}").contains("failed");
            assert!(!has_failed, "{jobs:?}: {}", self.nodes[to].log());
            self.owner(slot) == to && self.nodes_agree()
        });
    }

    /// Makes the other node the owner of a slot, and waits until all nodes agree on all slots.
    ///
    /// The new owner takes the next configuration epoch. A node that begins another migration
    /// before it has heard of that epoch would take the same one, and the nodes would then undo
    /// one of the two migrations.
    fn end_migration(&self, slot: u16, from: usize, to: usize) {
        for node in [to, from, 3 - from - to] {
            let owner = format!("CLUSTER SETSLOT {slot} NODE {}", self.ids[to]);
            run(&mut self.nodes[node].connect(), &owner);
        }
        wait_until("the nodes agree on the owners of the slots", || self.nodes_agree());
    }

    fn nodes_agree(&self) -> bool {
        let mut views = self.nodes.iter().map(slots_and_epochs);
        let first = views.next();
        views.all(|view| Some(view) == first)
    }
}

/// Returns what a node knows of each node: its id, its configuration epoch, and its slots.
fn slots_and_epochs(node: &TestServer) -> Vec<String> {
    let text = String::from_utf8(bulk(run(&mut node.connect(), "CLUSTER NODES"))).unwrap();
    let about = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let slots = words[8..].iter().filter(|slots| !slots.starts_with('['));
        [words[0], words[6]].into_iter().chain(slots.copied()).collect::<Vec<_>>().join(" ")
    };
    let mut nodes: Vec<String> = text.lines().map(about).collect();
    nodes.sort_unstable();
    nodes
}

/// A client that follows redirections.
struct ClusterClient {
    ports: Vec<u16>,
    connections: HashMap<u16, Client>,
    /// The port of the node that last answered for a key.
    owners: HashMap<String, u16>,
}

impl ClusterClient {
    /// Runs a command until a node accepts it. The second word is the key.
    fn say<W: AsRef<str>>(&mut self, words: &[W]) -> Reply {
        let key = words[1].as_ref().to_owned();
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        let (mut asks, mut answer) = (None, None);
        wait_until("a node accepts the command", || {
            let owner = *self.owners.entry(key.clone()).or_insert(self.ports[0]);
            let asked: Option<u16> = asks.take();
            match self.try_say(asked.unwrap_or(owner), asked.is_some(), &words) {
                None => {}
                Some(Reply::Error(text)) => {
                    let port = || text.rsplit(':').next().and_then(|port| port.parse().ok());
                    match text.split(' ').next() {
                        Some("MOVED") => _ = self.owners.insert(key.clone(), port().unwrap()),
                        Some("ASK") => asks = port(),
                        Some("TRYAGAIN" | "CLUSTERDOWN") => {}
                        _ => answer = Some(Reply::Error(text)),
                    }
                }
                Some(reply) => answer = Some(reply),
            }
            answer.is_some()
        });
        answer.expect("a node has accepted the command")
    }

    /// Sends a command to a node; `None` if the node is down.
    fn try_say(&mut self, port: u16, asks: bool, words: &[&str]) -> Option<Reply> {
        let mut client = match self.connections.remove(&port) {
            Some(client) => client,
            None => Client::of(try_connect(([127, 0, 0, 1], port).into()).ok()?),
        };
        if asks {
            client.try_send(&["ASKING"]).ok()?;
            client.try_receive()?;
        }
        client.try_send(words).ok()?;
        let reply = client.try_receive()?;
        self.connections.insert(port, client);
        Some(reply)
    }

    /// Runs a command with items: `count` of them, from the number `first` on.
    fn say_items(&mut self, start: &str, first: u32, count: u32) -> Vec<Reply> {
        array(self.say(&with_items(start, first..first + count)))
    }

    /// Asserts that a filter contains the first `count` items. `start` is the start of a lookup.
    fn assert_items(&mut self, context: &str, start: &str, count: u32) {
        let found = self.say_items(start, 0, count);
        let lost = found.iter().filter(|reply| **reply != Reply::Integer(1)).count();
        assert_eq!((found.len(), lost), (count as usize, 0), "{context}: {start}");
    }
}

fn errors(replies: &[Reply]) -> usize {
    replies.iter().filter(|reply| matches!(reply, Reply::Error(_))).count()
}

#[test]
fn commands_name_their_keys_to_the_cluster() {
    for host in Host::ALL {
        let cluster = Cluster::start(host, &[]);
        let mut client = cluster.client();
        // The slots of `a` and `b` are in different thirds.
        let [a, b] = ["a", "b"].map(|key| cluster.owner(cluster.slot(key)));
        assert_ne!(a, b, "{host:?}");
        for key in ["a", "b", "{a}2"] {
            let reply = client.say(&["TM.RESERVE", key, "KIND", "classic", "ITEMS", "100"]);
            assert_eq!(reply, Reply::ok(), "{host:?}");
            client.say(&["TM.ADD", key, key]);
        }
        let mut node = cluster.nodes[a].connect();
        for refused in ["TM.MERGE a b", "TM.MERGE {a}3 a b", "TM.RESERVE {a}4 LIKE b"] {
            assert_refused(&mut node, refused, "CROSSSLOT");
        }
        for moved in ["TM.ADD b x", "BF.EXISTS b x", "CF.ADD b x", "TM.MERGE b b", "TM.DUMP b"] {
            assert_refused(&mut node, moved, "MOVED");
        }
        run(&mut node, "TM.MERGE a {a}2");
        run(&mut node, "TM.RESERVE {a}4 LIKE a");
        assert_eq!(errors(&array(run(&mut node, "TM.MEXISTS a a {a}2"))), 0);
        for (command, keys) in [
            ("BF.ADD k x", "k"),
            ("BF.MADD k x y", "k"),
            ("BF.INSERT k CAPACITY 10 ITEMS x", "k"),
            ("CF.INSERT k ITEMS x", "k"),
            ("TM.MERGE d k l", "d k l"),
            ("TM.RESERVE k LIKE l", "k l"),
            ("TM.RESERVE k like l", "k l"),
            ("TM.RESERVE k KIND classic ITEMS 10", "k"),
            ("TM.LOAD k LIKE", "k"),
            ("BF.LOADCHUNK k 1 x", "k"),
        ] {
            let found = bulks(run(&mut node, &format!("COMMAND GETKEYS {command}")));
            let keys: Vec<&[u8]> = keys.split(' ').map(str::as_bytes).collect();
            assert_eq!(found, keys, "{host:?}, {command}");
        }
    }
}

/// The start of a command that creates a filter, that adds to it, and that looks up.
const KINDS: [[&str; 3]; 8] = [
    ["BF.ADD bloom x", "BF.MADD", "BF.MEXISTS"],
    ["BF.RESERVE reserved 0.001 10", "BF.MADD", "BF.MEXISTS"],
    ["CF.ADD cuckoo x", "CF.INSERT ITEMS", "CF.MEXISTS"],
    ["TM.RESERVE split KIND split-block ITEMS 100000", "TM.MADD", "TM.MEXISTS"],
    ["TM.RESERVE growing KIND growing ITEMS 10", "TM.MADD", "TM.MEXISTS"],
    ["TM.RESERVE counting KIND counting ITEMS 100000", "TM.MADD", "TM.MEXISTS"],
    ["TM.RESERVE tm-cuckoo KIND cuckoo ITEMS 100000", "TM.MADD", "TM.MEXISTS"],
    ["TM.RESERVE window KIND window WINDOW 3600000 ITEMS 100000", "TM.MADD", "TM.MEXISTS"],
];

/// A filter to which a thread adds items, and the number of items that a node has acknowledged.
struct Load {
    key: String,
    kind: [&'static str; 3],
    added: AtomicU32,
}

impl Load {
    /// Returns a filter of each kind for each of these tags, which all keys of a slot have.
    fn of_tags(tags: &[&str]) -> Vec<Self> {
        let of_tag = |tag: &&str| {
            let tag = (*tag).to_owned();
            KINDS.map(move |kind| {
                let name = kind[0].split(' ').nth(1).expect("the key is the second word");
                Load { key: format!("{{{tag}}}{name}"), kind, added: AtomicU32::new(0) }
            })
        };
        tags.iter().flat_map(of_tag).collect()
    }

    fn create(&self, client: &mut ClusterClient) {
        let mut words: Vec<&str> = self.kind[0].split(' ').collect();
        words[1] = &self.key;
        let reply = client.say(&words);
        assert!(!matches!(reply, Reply::Error(_)), "{words:?}: {reply:?}");
    }

    fn words(&self, command: usize) -> String {
        let (name, rest) = self.kind[command].split_once(' ').unwrap_or((self.kind[command], ""));
        format!("{name} {} {rest}", self.key)
    }

    /// Adds a few items. They count as added only if no reply of them is an error.
    fn add(&self, client: &mut ClusterClient, count: u32) {
        let first = self.added.load(Ordering::Relaxed);
        let words = with_items(&self.words(1), first..first + count);
        if let Reply::Array(replies) = client.say(&words)
            && replies.len() == count as usize
            && errors(&replies) == 0
        {
            self.added.store(first + count, Ordering::Relaxed);
        }
    }
}

fn assert_none_lost(context: &str, cluster: &Cluster, load: &[Load]) {
    let mut client = cluster.client();
    for load in load {
        let added = load.added.load(Ordering::Relaxed);
        assert!(added > 0, "{context}: nothing was added to {}", load.key);
        client.assert_items(context, &load.words(2), added);
    }
}

/// Runs a function while a thread adds items to each filter in turn.
fn under_load(cluster: &mut Cluster, load: &[Load], run: impl FnOnce(&mut Cluster)) {
    let ends = &AtomicBool::new(false);
    let mut client = cluster.client();
    load.iter().for_each(|load| load.create(&mut client));
    std::thread::scope(|scope| {
        let _end = SetOnDrop(ends);
        scope.spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                load.iter().for_each(|load| load.add(&mut client, 7));
            }
        });
        let added = || load.iter().map(|load| load.added.load(Ordering::Relaxed)).min();
        wait_until("all filters have items", || added() > Some(0));
        run(cluster);
        let before = added();
        wait_until("all filters get items again", || added() > before);
    });
}

/// Moves a slot from one node to another.
type Migrate = fn(&Cluster, u16, usize, usize);

#[test]
fn slots_migrate_under_load() {
    for (host, migrate) in [
        (Host::Redis, Cluster::migrate as Migrate),
        (Host::Valkey, Cluster::migrate),
        (Host::Valkey, Cluster::migrate_at_once),
    ] {
        let mut cluster = Cluster::start(host, &[]);
        let tags = ["s", "t", "u"];
        let load = Load::of_tags(&tags);
        under_load(&mut cluster, &load, |cluster| {
            for step in [1, 2, 1] {
                for tag in tags {
                    let (slot, from, to) = cluster.route(tag, step);
                    migrate(cluster, slot, from, to);
                }
            }
        });
        assert_none_lost(&format!("{host:?}, migrated"), &cluster, &load);
    }
}

/// Runs a command of `items` items, and migrates its slot meanwhile. Asserts that the node ends the
/// command with an error, and that no part of it is lost. Returns how many items were added.
fn migrate_during_a_long_command(host: Host, items: u32, migrate: Migrate) -> u32 {
    let cluster = Cluster::start(host, &[]);
    let (slot, from, to) = cluster.route("long", 1);
    let (mut client, mut other) = (cluster.nodes[from].connect(), cluster.nodes[from].connect());
    client.send(&with_items("BF.MADD long", 0..items));
    wait_until(
        "the first items are in the filter",
        || matches!(other.say(&["BF.CARD", "long"]), Reply::Integer(items) if items > 0),
    );
    migrate(&cluster, slot, from, to);
    let replies = array(client.receive());
    let (last, added) = replies.split_last().unwrap();
    assert!(matches!(last, Reply::Error(_)), "{host:?}: {} items, {last:?}", added.len());
    cluster.client().assert_items(&format!("{host:?}"), "BF.MEXISTS long", added.len() as u32);
    let left = format!("CLUSTER COUNTKEYSINSLOT {slot}");
    wait_until("the old node has no key", || run(&mut other, &left) == Reply::Integer(0));
    added.len() as u32
}

#[test]
fn a_long_command_stops_when_its_slot_has_migrated_at_once() {
    // Parts run during the snapshot and after it.
    migrate_during_a_long_command(Host::Valkey, 4_000_000, Cluster::migrate_at_once);
}

#[test]
fn a_slot_migrates_at_once_to_a_node_with_other_limits_and_to_its_replica() {
    let cluster = Cluster::start(Host::Valkey, &[]);
    let (slot, from, to) = cluster.route("{m}", 1);
    let words = ["--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0"];
    let replica = TestServer::start(Host::Valkey, &words);
    let mut other = replica.connect();
    run(&mut other, &format!("CLUSTER MEET 127.0.0.1 {}", cluster.nodes[to].port));
    let replicate = format!("CLUSTER REPLICATE {}", cluster.ids[to]);
    wait_until("the replica knows its primary", || other.ask(&replicate) == Reply::ok());
    wait_for_replica(&cluster.nodes[to], &replica);
    run(&mut cluster.nodes[to].connect(), "CONFIG SET tamis.cf-max-expansions 1");

    let mut source = cluster.nodes[from].connect();
    run(&mut source, "CF.RESERVE {m}cuckoo 8 EXPANSION 2");
    run(&mut source, "TM.RESERVE {m}window KIND window WINDOW 400 ITEMS 1000 SLICES 4");
    let adding = std::thread::spawn(move || {
        for item in 0.. {
            for command in ["BF.ADD {m}bloom", "CF.ADD {m}cuckoo", "TM.ADD {m}window"] {
                let reply = source.ask(&format!("{command} item:{item}"));
                if let Reply::Error(text) = reply {
                    return (item, text);
                }
            }
        }
        unreachable!("the slot migrates")
    });
    cluster.migrate_at_once(slot, from, to);
    let (added, refusal) = join("the thread that adds", adding);
    assert!(refusal.starts_with("MOVED"), "{refusal}");
    for lookup in ["BF.MEXISTS {m}bloom", "CF.MEXISTS {m}cuckoo"] {
        cluster.client().assert_items("migrated", lookup, added);
    }
    wait_for_replica(&cluster.nodes[to], &replica);
    assert_equal("migrated", &cluster.nodes[to], &replica);
}

#[test]
fn a_new_filter_of_a_migrating_slot_is_created_on_the_importing_node() {
    for host in Host::ALL {
        let cluster = Cluster::start(host, &[]);
        let (slot, from, to) = cluster.route("{m}", 1);
        let mut client = cluster.client();
        client.say(&["BF.ADD", "{m}old", "x"]);
        cluster.begin_migration(slot, from, to);
        assert_refused(&mut cluster.nodes[from].connect(), "BF.ADD {m}new x", "ASK ");
        client.say(&["BF.ADD", "{m}new", "x"]);
        // The importing node runs a long command of a client that has sent ASKING.
        for key in ["{m}long", "{m}old"] {
            let replies = client.say_items(&format!("BF.MADD {key}"), 0, 20_000);
            let last = replies.last();
            assert_eq!((replies.len(), errors(&replies)), (20_000, 0), "{host:?}: {last:?}");
        }
        cluster.move_keys(slot, from, to);
        cluster.end_migration(slot, from, to);
        for key in ["{m}new", "{m}old"] {
            assert_eq!(client.say(&["BF.EXISTS", key, "x"]), Reply::Integer(1), "{host:?}, {key}");
        }
        for key in ["{m}long", "{m}old"] {
            client.assert_items(&format!("{host:?}"), &format!("BF.MEXISTS {key}"), 20_000);
        }
    }
}

#[test]
fn a_long_command_stops_when_its_slot_migrates() {
    for host in Host::ALL {
        let added = migrate_during_a_long_command(host, 100_000, Cluster::migrate);
        assert!(added < 100_000, "{host:?}");
    }
}

#[test]
fn a_killed_node_comes_back_with_all_acknowledged_items() {
    for host in Host::ALL {
        let durable = ["--appendonly", "yes", "--appendfsync", "always"];
        let mut cluster = Cluster::start(host, &durable);
        let load = Load::of_tags(&["s", "t", "u"]);
        under_load(&mut cluster, &load, |cluster| {
            let owner = cluster.owner(cluster.slot("s"));
            cluster.nodes[owner].kill();
            cluster.nodes[owner].restart();
            cluster.wait();
        });
        assert_none_lost(&format!("{host:?}, killed"), &cluster, &load);
    }
}
