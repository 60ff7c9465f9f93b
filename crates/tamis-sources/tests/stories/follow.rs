//! Sources of a table of the shop.

use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use super::database::Database;
use tamis_sources::{
    ChangeColumn, IdSet, IdSetOptions, IdType, PollOptions, RequestKey, SnapshotOptions, Source,
    SourceKind, SourceOptions, SourceStatus, SyncState,
};

use crate::checker::*;
use crate::server::{Server, Session, Shop};
use crate::transactions::{self, Change};

pub type Options = <Server as Database>::Options;

pub type Lasting = crate::lasting::Lasting<Options>;

/// Returns a database of the server that most tests share.
pub fn shop() -> Shop {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start).shop()
}

/// Returns a database of the shared server with the ids from 1 to `last`.
pub fn shop_with(last: u64) -> Shop {
    let mut shop = shop();
    shop.fill(1, last);
    shop
}

/// Starts a server that no other test uses, with a database that has the ids from 1 to `last`.
pub fn own_shop(settings: &[&str], last: u64) -> (Server, Shop) {
    let server = Server::start_with(settings);
    let mut shop = server.shop();
    if last > 0 {
        shop.fill(1, last);
    }
    (server, shop)
}

/// Starts a server whose log a restarted source continues, with a database that has the ids from 1 to
/// `last`. Returns also a directory, and options with the snapshot `a` in it.
pub fn lasting_shop(last: u64) -> (Server, Shop, Dir, Lasting) {
    let (server, shop) = own_shop(Server::CONTINUED, last);
    let dir = Dir::new();
    let options = continued(&shop.options, &dir.path("a"));
    (server, shop, dir, options)
}

impl Shop {
    pub fn run(&mut self, sql: &str) {
        self.session.run(sql);
    }

    /// Runs statements, and waits until a set has some ids and lacks others.
    pub fn after(&mut self, ids: &IdSet, source: &Source, sql: &str, known: &[u64], gone: &[u64]) {
        self.run(sql);
        wait_until(source, sql, || {
            known.iter().all(|id| has(ids, id)) && !gone.iter().any(|id| has(ids, id))
        });
    }

    /// Opens another session in the same database.
    pub fn open(&self) -> Session {
        Session::open(&self.options.url)
    }

    /// Inserts the ids from `first` to `last`.
    pub fn fill(&mut self, first: u64, last: u64) {
        let numbers = Server::numbers(first, last);
        self.run(&format!("INSERT INTO products SELECT 'a product', id FROM ({numbers}) numbers"));
    }

    /// Returns the options of a source of another table.
    pub fn table(&self, table: &str) -> Options {
        Options { table: table.to_owned(), ..self.options.clone() }
    }

    /// Returns the options of a source that reaches the server at another address.
    pub fn at(&self, address: impl Display) -> Options {
        at(&self.options, address)
    }

    /// Returns the options of a source that logs in with `name:password`.
    pub fn as_user(&self, user: &str) -> Options {
        let address = self.options.url.split_once('@').expect("the URL has a user").1;
        let url = format!("{}://{user}@{address}", Server::SCHEME);
        Options { url, ..self.options.clone() }
    }

    /// Follows the products with an empty set, and waits until the set is synced.
    pub fn follow(&self) -> (Arc<IdSet>, Source) {
        follow(&self.options)
    }
}

/// Runs a random transaction of the products.
pub fn transact(shop: &mut Shop, committed: &Committed, random: &mut Random, next: &mut u64) {
    let sql = |change| match change {
        Change::Delete(id) => format!("DELETE FROM products WHERE id = {id}"),
        Change::Update(id) => Server::replace(id),
        Change::Insert(id) => format!("INSERT INTO products VALUES ('new', {id})"),
    };
    transactions::transact(&mut |sql| shop.run(sql), sql, committed, random, next);
}

pub fn at(options: &Options, address: impl Display) -> Options {
    let (user, rest) = options.url.split_once('@').expect("the URL has a user");
    let (_, database) = rest.split_once('/').expect("the URL has a database");
    Options { url: format!("{user}@{address}/{database}"), ..options.clone() }
}

pub fn start(ids: &Arc<IdSet>, database: &(impl SourceKind + Clone)) -> Source {
    Source::start(Arc::clone(ids), database.clone(), options())
}

/// As `start`, for a test that counts reads: a slow answer of a busy server ends no connection, and so
/// does not cost a read of all ids.
pub fn start_patient(ids: &Arc<IdSet>, database: &(impl SourceKind + Clone)) -> Source {
    let times = SourceOptions { stale_after: Duration::from_secs(60), ..options() };
    Source::start(Arc::clone(ids), database.clone(), times)
}

/// Starts a source of integers, and waits until its set is synced.
pub fn follow(database: &(impl SourceKind + Clone)) -> (Arc<IdSet>, Source) {
    follow_as(integers(), database)
}

pub fn follow_as(id: IdType, database: &(impl SourceKind + Clone)) -> (Arc<IdSet>, Source) {
    synced(id, |ids| start(ids, database))
}

pub fn follow_patiently(id: IdType, database: &(impl SourceKind + Clone)) -> (Arc<IdSet>, Source) {
    synced(id, |ids| start_patient(ids, database))
}

/// Starts a source of a set that keeps each 404 response for an hour, and waits until the set is synced.
pub fn follow_with_404s(database: &Options, id: IdType) -> (Arc<IdSet>, Source) {
    let ids = Arc::new(
        IdSet::new(IdSetOptions {
            recent_for: Duration::ZERO,
            negative_for: Duration::from_secs(3600),
            is_trusted: true,
            ..IdSetOptions::new(id)
        })
        .unwrap(),
    );
    let source = start_patient(&ids, database);
    wait_synced(&source);
    (ids, source)
}

/// Returns the request of all 404 responses.
fn request() -> RequestKey {
    static KEY: LazyLock<RequestKey> =
        LazyLock::new(|| RequestKey::of(&http::Request::new(()).into_parts().0).unwrap());
    *KEY
}

/// Records that the service responded with 404 for an id.
pub fn answer_404(ids: &IdSet, id: &str) {
    ids.not_found(id.as_bytes(), ids.passed(id.as_bytes()), request());
}

/// Tests whether the set refuses an id because of a 404 response.
pub fn is_404(ids: &IdSet, id: &str) -> bool {
    ids.is_not_found(id.as_bytes(), request())
}

/// Starts a source with an empty set, and waits until the set is synced.
pub fn restart(database: &(impl SourceKind + Clone)) -> (Arc<IdSet>, Source, SourceStatus) {
    let ids = id_set(integers());
    let source = start_patient(&ids, database);
    let status = wait_synced(&source);
    (ids, source, status)
}

/// Waits until a new source of integers is refused with a text in its error, which is one line.
pub fn refused(database: &(impl SourceKind + Clone), expected: &str) -> String {
    refused_as(integers(), database, expected)
}

pub fn refused_as(id: IdType, database: &(impl SourceKind + Clone), expected: &str) -> String {
    let ids = id_set(id);
    let source = start(&ids, database);
    // A busy server may not answer in time, at first.
    let error = wait_error(&source, expected).last_error.unwrap();
    assert!(!error.contains('\n'), "{error}");
    assert_eq!(ids.state(), SyncState::Warming);
    error
}

/// Returns options that read all ids again and again.
pub fn reread(database: &Options) -> Options {
    Options { poll: Some(PollOptions::default()), ..database.clone() }
}

/// Returns options that poll by a change column.
pub fn polled(database: &Options, column: &str, overlap_ms: u64) -> Options {
    let overlap = Duration::from_millis(overlap_ms);
    let changes = Some(ChangeColumn { overlap, ..ChangeColumn::new(column) });
    let poll = Some(PollOptions { changes, ..PollOptions::default() });
    Options { poll, ..database.clone() }
}

/// Returns the options with other settings of the poll.
pub fn with(database: &Options, change: impl FnOnce(&mut PollOptions)) -> Options {
    let mut database = database.clone();
    change(database.poll.as_mut().expect("the table is polled"));
    database
}

/// Returns the options of a source that continues the log after a restart. It writes its snapshot often.
pub fn continued(database: &Options, path: &Path) -> Lasting {
    let every = Duration::from_millis(20);
    let snapshot = SnapshotOptions { every, ..SnapshotOptions::new(path) };
    Lasting { options: Server::continued(database), snapshot }
}

/// Returns the integers that an audit finds, in order.
pub fn audited(database: &(impl SourceKind + Clone)) -> Vec<u64> {
    let mut rows = Vec::new();
    let mut each = |row: &[u8]| {
        rows.push(std::str::from_utf8(row).unwrap().parse().unwrap());
        Ok(())
    };
    database.audit(&integers()).unwrap().each_row(&mut each).unwrap();
    rows.sort_unstable();
    rows
}
