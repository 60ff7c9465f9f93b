//! One event after the other.

use std::sync::Arc;
use std::time::Duration;

use tamis_guard::source::{FileFormat, FileOptions, LeaderOptions, Source, SourceOptions};
use tamis_guard::{
    ChangeKind, IdSet, IdSetOptions, IdType, Publication, PublicationOptions, RequestKey, SyncState,
};

use super::instances::{Follower, Leader, Server, any_port, leader_options, token, write_list};
use crate::checker::*;
use crate::tcp_proxy::TcpProxy;

#[test]
fn followers_get_all_ids_and_then_each_change_at_once() {
    let (_dir, leader) = Leader::with_ids(1000);
    wait_synced(&leader.source);
    // A follower that looks for changes once an hour gets them at once nevertheless.
    let slow = SourceOptions {
        interval: Duration::from_secs(3600),
        stale_after: Duration::from_secs(7200),
        ..options()
    };
    let followers = [1, 2].map(|_| Follower::with(leader_options(leader.address()), slow.clone()));
    for follower in &followers {
        wait_synced(&follower.source);
        assert!((1..=1000).all(|id| knows(&follower.ids, id)));
        assert!(!has(&follower.ids, 1001));
    }
    leader.ids.insert(b"5000").unwrap();
    leader.ids.delete(b"7").unwrap();
    leader.ids.insert_recent(b"5001").unwrap();
    for follower in &followers {
        let is_done = || {
            let ids = &follower.ids;
            knows(ids, 5000) && !has(ids, 7) && knows(ids, 5001) && knows(ids, 8)
        };
        wait_until(&follower.source, "the changes", is_done);
        assert_eq!(follower.source.status().generations, 1);
    }
}

#[test]
fn a_new_generation_of_the_leader_replaces_that_of_its_followers() {
    let (dir, leader) = Leader::with_ids(100);
    let follower = Follower::synced(leader.address());
    write_list(&dir, 51..=200);
    let has_new = || knows(&follower.ids, 200) && !has(&follower.ids, 50);
    wait_until(&follower.source, "the new list", has_new);
    assert!((51..=200).all(|id| knows(&follower.ids, id)));
    // Both hash with the same key, so the same ids are false positives.
    let generations = [&leader.ids, &follower.ids].map(|ids| ids.generations());
    assert_eq!(generations[0].items(), generations[1].items());
    let wrong = |i: usize| {
        (1000..20_000_000_u64)
            .step_by(97)
            .filter(|id| generations[i].contains(id.to_string().as_bytes()))
            .collect::<Vec<_>>()
    };
    assert_eq!(wrong(0), wrong(1));
    // The operator of the follower asks for a snapshot.
    let before = follower.source.status().generations;
    follower.source.rebuild();
    wait(&follower.source, "the rebuild", |status| status.generations > before);
}

#[test]
fn a_follower_takes_each_key_of_a_folded_text() {
    let dir = Dir::new();
    std::fs::write(dir.path("ids.txt"), "abc\n").unwrap();
    let [leader, follower] = [(); 2].map(|()| id_set(IdType::Text { max_bytes: 8 }));
    let publication = PublicationOptions::new("products", token());
    let publication = Publication::new(Arc::clone(&leader), &publication);
    let mut file = FileOptions::new(dir.path("ids.txt"), FileFormat::Lines);
    file.quiet = Duration::from_millis(20);
    let _read = Source::start(Arc::clone(&leader), file, options());
    let server = Server::publish(any_port(), publication);
    let options_of_leader = leader_options(server.address);
    let source = Source::start(Arc::clone(&follower), options_of_leader, options());
    wait_synced(&source);
    // A source inserts keys. The key of a blank id is empty, and a key may be longer than its id.
    for key in ["", "longer than each id", "last"] {
        leader.apply_change(ChangeKind::Insert, key.as_bytes()).unwrap();
    }
    wait_until(&source, "the last change", || has(&follower, "last"));
    let generation = follower.generations();
    assert!(generation.contains(b"") && generation.contains(b"longer than each id"));
    assert_eq!(source.status().generations, 1);
}

#[test]
fn each_row_event_of_a_leader_ends_the_refusal_of_a_request_at_its_followers() {
    let (_dir, leader) = Leader::with_ids(100);
    let options_of_set = IdSetOptions {
        recent_for: Duration::ZERO,
        negative_for: Duration::from_secs(3600),
        ..IdSetOptions::new(integers())
    };
    let ids = Arc::new(IdSet::new(options_of_set).unwrap());
    let patient = SourceOptions { stale_after: Duration::from_secs(60), ..options() };
    let source = Source::start(Arc::clone(&ids), leader_options(leader.address()), patient);
    wait_synced(&source);
    let request = RequestKey::of(&http::Request::new(()).into_parts().0).unwrap();
    ids.not_found(b"6", ids.passed(b"6"), request);
    for kind in ChangeKind::ALL {
        ids.not_found(b"5", ids.passed(b"5"), request);
        assert!(ids.is_not_found(b"5", request), "{kind:?}");
        leader.ids.apply_change(kind, b"5").unwrap();
        let has_forgotten = || !ids.is_not_found(b"5", request) && ids.is_not_found(b"6", request);
        wait_until(&source, "the change", has_forgotten);
    }
    assert_eq!(source.status().generations, 1);
}

#[test]
fn a_follower_of_a_follower_has_all_ids() {
    let (_dir, leader) = Leader::with_ids(100);
    let middle = Leader::start(any_port(), 1 << 20, |ids| {
        Source::start(ids, leader_options(leader.address()), options())
    });
    let last = Follower::synced(middle.address());
    assert!((1..=100).all(|id| knows(&last.ids, id)));
    leader.ids.insert(b"777").unwrap();
    wait_until(&last.source, "the change", || knows(&last.ids, 777));
}

#[test]
fn without_its_leader_a_follower_is_stale_keeps_its_ids_and_goes_on_where_it_was() {
    let (_dir, leader) = Leader::with_ids(100);
    let proxy = TcpProxy::start(leader.address());
    let follower = Follower::synced(proxy.address);
    // A cut connection is replaced before the sync delay has passed.
    proxy.cut();
    leader.ids.insert(b"500").unwrap();
    wait_until(&follower.source, "500", || has(&follower.ids, 500));
    // A partition is not.
    proxy.partition();
    leader.ids.insert(b"501").unwrap();
    wait_stale(&follower.source);
    assert!(has(&follower.ids, 500));
    proxy.heal();
    wait_synced(&follower.source);
    wait_until(&follower.source, "501", || has(&follower.ids, 501));
    assert_eq!(follower.source.status().generations, 1, "it went on by changes");
}

#[test]
fn a_leader_that_loses_its_source_makes_its_followers_stale() {
    let (_dir, leader) = Leader::with_ids(100);
    // Its own sync delay does not end during the test.
    let patient = SourceOptions { stale_after: Duration::from_secs(3600), ..options() };
    let follower = Follower::with(leader_options(leader.address()), patient);
    wait_synced(&follower.source);
    let Leader { source, server, ids } = leader;
    source.stop();
    wait_stale(&follower.source);
    assert!(has(&follower.ids, 5));
    drop((server, ids));
}

#[test]
fn a_restarted_leader_is_another_one_and_its_followers_begin_again() {
    let (dir, leader) = Leader::with_ids(100);
    let address = leader.address();
    let follower = Follower::synced(address);
    drop(leader);
    write_list(&dir, 1..=200);
    // It has the same number of changes and of generations, but another epoch.
    let leader = Leader::of_list(&dir, address);
    wait_until(&follower.source, "the new ids", || knows(&follower.ids, 200));
    wait_synced(&follower.source);
    assert_eq!(follower.source.status().generations, 2);
    leader.ids.insert(b"777").unwrap();
    wait_until(&follower.source, "a change", || knows(&follower.ids, 777));
}

#[test]
fn a_follower_waits_for_a_leader_that_has_not_read_its_source() {
    let dir = Dir::new();
    let leader = Leader::of_list(&dir, any_port());
    let follower = Follower::start(leader.address());
    let status = wait(&follower.source, "a failure", |status| status.failures > 0);
    let error = status.last_error.unwrap();
    assert_eq!(error, "the leader: has not read its source yet");
    assert_eq!(follower.ids.state(), SyncState::Warming);
    write_list(&dir, 1..=10);
    wait_synced(&follower.source);
    assert!(knows(&follower.ids, 10) && !has(&follower.ids, 11));
}

#[test]
fn forgotten_changes_are_replaced_by_a_snapshot() {
    let dir = Dir::new();
    write_list(&dir, 1..=100);
    let leader = Leader::start(any_port(), 0, |ids| {
        Source::start(ids, FileOptions::new(dir.path("ids.txt"), FileFormat::Lines), options())
    });
    let proxy = TcpProxy::start(leader.address());
    let follower = Follower::synced(proxy.address);
    proxy.partition();
    // More than the leader keeps.
    for id in 1000..100_000_u64 {
        leader.ids.insert(id.to_string().as_bytes()).unwrap();
    }
    leader.ids.delete(b"5").unwrap();
    proxy.heal();
    let has_all = || knows(&follower.ids, 99_999) && !has(&follower.ids, 5);
    wait_until(&follower.source, "a snapshot", has_all);
    let generation = follower.ids.generations();
    assert!((1000..100_000_u64).all(|id| generation.contains(id.to_string().as_bytes())));
    assert_eq!(follower.source.status().generations, 2);
}

#[test]
fn wrong_settings_of_a_follower_are_one_clear_line() {
    let (_dir, leader) = Leader::with_ids(100);
    wait_synced(&leader.source);
    let right = leader_options(leader.address());
    let token = tamis_guard::BearerToken::new("another token").unwrap();
    let closed = "http://127.0.0.1:1/filters/products".parse().unwrap();
    let tls = format!("https://{}/filters/products", leader.address()).parse().unwrap();
    for (wrong, expected) in [
        (LeaderOptions { token, ..right.clone() }, "the leader: refuses the token"),
        (LeaderOptions { max_bytes: 1000, ..right.clone() }, "larger than 1000 bytes"),
        (LeaderOptions { url: closed, ..right.clone() }, "cannot connect: "),
        (LeaderOptions { url: tls, ..right }, ""),
    ] {
        let follower = Follower::with(wrong, options());
        let status = wait(&follower.source, "a failure", |status| status.failures > 0);
        assert_eq!(follower.ids.state(), SyncState::Warming);
        let error = status.last_error.unwrap();
        assert!(!error.contains('\n') && !error.contains("another"), "{error}");
        assert!(error.starts_with("the leader: ") && error.contains(expected), "{error}");
    }
    // The ids of another type are written in another way.
    let ids = id_set(IdType::Uuid);
    let source = Source::start(ids, leader_options(leader.address()), options());
    let status = wait(&source, "a failure", |status| status.failures > 0);
    let error = status.last_error.unwrap();
    let expected =
        format!("the leader: its ids are {:?}, and not \"uuid\"", integers().to_string());
    assert!(error.starts_with(&expected), "{error}");
}
