//! Several tables of one set, on one server and on two servers.

use std::sync::Arc;

use tamis_sources::{IdSet, IdSetOptions, SourceKind, Sources, SyncState};

use super::database::Database;
use super::follow::{Options, own_shop, shop_with};
use crate::checker::*;
use crate::server::Server;

/// Starts a set of several tables, and waits until it is synced.
fn follow_all(tables: &[Options]) -> (Arc<IdSet>, Sources) {
    let settings = IdSetOptions { rate: 1e-7, items: 1000, ..IdSetOptions::new(integers()) };
    let ids = Arc::new(IdSet::with_sources(settings, tables.len()).unwrap());
    let kinds = tables.iter().map(|it| (Arc::new(it.clone()) as Arc<dyn SourceKind>, options()));
    let sources = Sources::start(Arc::clone(&ids), kinds);
    wait_all(&sources, "synced", || ids.state() == SyncState::Synced);
    (ids, sources)
}

fn wait_all(sources: &Sources, what: &str, is_done: impl FnMut() -> bool) {
    let what = std::fmt::from_fn(|f| write!(f, "{what}: {:?}", sources.status()));
    tamis_testing::wait_until(what, is_done);
}

#[test]
fn an_id_of_two_tables_passes_until_both_tables_have_deleted_it() {
    let mut shop = shop_with(100);
    shop.run(&Server::create_new("products"));
    shop.run("INSERT INTO new VALUES ('in both', 50), ('in one', 500)");
    let (ids, sources) = follow_all(&[shop.options.clone(), shop.table("new")]);
    assert!([1, 50, 100, 500].iter().all(|id| knows(&ids, id)) && !knows(&ids, 501));
    let after = |sql: &str, session: &mut crate::server::Session, known: &[u64], gone: &[u64]| {
        session.run(sql);
        wait_all(&sources, sql, || {
            known.iter().all(|id| knows(&ids, id)) && !gone.iter().any(|id| has(&ids, id))
        });
    };
    // The row 51 shows that the source has read the deletion of the row 50 of the same transaction.
    let deletion = "DELETE FROM products WHERE id IN (50, 51)";
    after(deletion, &mut shop.session, &[50], &[51]);
    after("INSERT INTO new VALUES ('new', 501)", &mut shop.session, &[50, 501], &[51]);
    after("DELETE FROM new WHERE id = 50", &mut shop.session, &[501], &[50]);
    assert!(!knows(&ids, 50));
    // A full read of one table does not bring the id back.
    let before = sources.status().generations;
    sources.rebuild();
    wait_all(&sources, "read again", || sources.status().generations == before + 2);
    assert!(!has(&ids, 50) && knows(&ids, 1) && knows(&ids, 500));
    assert_eq!(sources.status().last_error, None);
}

#[test]
fn a_set_names_the_server_that_is_down() {
    let (_one, mut first) = own_shop(&[], 100);
    let (mut two, mut second) = own_shop(&[], 0);
    second.fill(101, 200);
    let (ids, sources) = follow_all(&[first.options.clone(), second.options.clone()]);
    assert!(knows(&ids, 1) && knows(&ids, 200) && !knows(&ids, 201));
    two.kill();
    let address = two.address().to_string();
    wait_all(&sources, "stale", || {
        let status = sources.status();
        let names_server = |error: String| error.contains(&address);
        status.state == SyncState::Stale && status.last_error.is_some_and(names_server)
    });
    let states: Vec<_> = sources.iter().map(|(_, source)| source.status().state).collect();
    assert_eq!(states, [SyncState::Synced, SyncState::Stale]);
    let error = sources.status().last_error.unwrap();
    assert!(error.starts_with(Server::SCHEME) && error.contains("products.id at"), "{error}");
    assert!(!error.contains('@'), "the name has no user: {error}");
    assert!(has(&ids, 1) && has(&ids, 200), "the ids stay");
    assert!(knows(&ids, 201), "unknown ids pass");
    first.run("INSERT INTO products VALUES ('new', 300)");
    wait_all(&sources, "the other server is followed", || has(&ids, 300));
    two.run();
    second.session = second.open();
    wait_all(&sources, "synced again", || ids.state() == SyncState::Synced);
    assert!(knows(&ids, 200) && knows(&ids, 300) && !knows(&ids, 201));
    wait_all(&sources, "no error", || sources.status().last_error.is_none());
}
