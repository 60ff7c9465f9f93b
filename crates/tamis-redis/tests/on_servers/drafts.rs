//! Filters that are filled before other clients see them.

use crate::support::{Hooked, Server, keys_of, patience, small_shards};
use redis::Value;
use tamis_redis::{
    NodeReply, RedisCreateError, RedisDraft, RedisFilter, RedisNodes, RedisOpenError, RedisPlan,
    SendError,
};

fn plan() -> RedisPlan {
    small_shards(20_000)
}

#[test]
fn a_draft_is_seen_when_it_is_complete() {
    let server = Server::start();
    let items: Vec<u64> = (0..20_000).collect();
    for plan in [plan(), plan().growing().unwrap()] {
        let draft = RedisDraft::new(server.node(), "f", &plan).unwrap();
        draft.start().unwrap();
        assert!(draft.insert_each(&items).iter().all(Result::is_ok));
        let opened = RedisFilter::open(server.node(), "f");
        assert!(matches!(opened, Err(RedisOpenError::NotFound { .. })));
        let filter = draft.publish().unwrap();
        let other = RedisFilter::open(server.node(), "f").unwrap();
        assert!(other.contains_each(&items).iter().all(|found| *found == Ok(true)));
        assert_eq!(other.plan(), filter.plan());
        filter.delete().unwrap();
        assert_eq!(keys_of(&mut server.connection(), "*"), [""; 0]);
    }
}

#[test]
fn of_two_drafts_one_is_published_and_the_other_leaves_nothing() {
    let server = Server::start();
    let mut drafts = [0, 1].map(|_| RedisDraft::new(server.node(), "f", &plan()).unwrap());
    drafts.iter_mut().for_each(|draft| draft.start().unwrap());
    let [one, other] = drafts;
    one.insert_each(&["one"]);
    other.insert_each(&["other"]);
    let generation = one.generation();
    let filter = one.publish().unwrap();
    let before = keys_of(&mut server.connection(), "*").len();
    assert!(matches!(other.publish(), Err(RedisCreateError::Exists { .. })));
    assert!(keys_of(&mut server.connection(), "*").len() < before);
    // A filter that is in use is not discarded.
    generation.discard(&server.node()).unwrap();
    assert_eq!((filter.contains("one"), filter.contains("other")), (Ok(true), Ok(false)));
}

#[test]
fn what_was_begun_is_discarded() {
    let server = Server::start();
    let draft = RedisDraft::new(server.node(), "f", &plan()).unwrap();
    let generation = draft.generation();
    draft.start().unwrap();
    draft.insert_each(&["a"]);
    generation.discard(&server.node()).unwrap();
    assert_eq!(keys_of(&mut server.connection(), "*"), [""; 0]);

    let filter = RedisFilter::create(server.node(), "f", &plan()).unwrap();
    filter.insert("a").unwrap();
    let before = keys_of(&mut server.connection(), "*").len();
    let generation = filter.next_generation(&plan()).unwrap();
    let _left_behind = filter.rebuild_as(&generation).unwrap();
    assert!(keys_of(&mut server.connection(), "*").len() > before);
    generation.discard(&server.node()).unwrap();
    assert_eq!(keys_of(&mut server.connection(), "*").len(), before);
    let filter = RedisFilter::open(server.node(), "f").unwrap();
    assert_eq!(filter.contains("a"), Ok(true));
    // Another rebuild is not that of the generation.
    let rebuild = filter.rebuild(&plan()).unwrap();
    generation.discard(&server.node()).unwrap();
    rebuild.swap().unwrap();
}

#[test]
fn shards_that_cannot_be_created_are_deleted() {
    let server = Server::start();
    let mut creations = 0;
    let fails = move |words: &[Vec<u8>], reply: &mut NodeReply| {
        if words[0] == *b"EVAL" && words[1].starts_with(b"if redis.call('GETRANGE'") {
            creations += 1;
            if creations % 4 == 0 {
                *reply = Err(SendError { message: "cut".into() });
            }
        }
    };
    let draft = RedisDraft::new(Hooked::new(server.node(), fails), "f", &plan()).unwrap();
    assert!(matches!(draft.start(), Err(RedisCreateError::Redis(_))));
    assert_eq!(keys_of(&mut server.connection(), "*"), [""; 0]);
    RedisFilter::create(server.node(), "f", &plan()).unwrap();
    let before = keys_of(&mut server.connection(), "*").len();
    let filter = RedisFilter::open(Hooked::new(server.node(), fails), "f").unwrap();
    assert!(filter.rebuild(&plan()).is_err());
    assert_eq!(keys_of(&mut server.connection(), "*").len(), before);
}

#[test]
fn nodes_are_what_the_url_names() {
    let server = Server::with(&["--requirepass", "p@ss"]);
    let url = format!("redis://:p%40ss@127.0.0.1:{}/3", server.port);
    let nodes = RedisNodes::connect(&url, patience()).unwrap();
    assert!(matches!(nodes, RedisNodes::Single(_)));
    let mut set = redis::Cmd::new();
    set.arg("INCR").arg("n");
    assert_eq!(nodes.query_once(b"n", set.clone()), Ok(Value::Int(1)));
    assert_eq!(nodes.query(b"n", set), Ok(Value::Int(2)));
    for wrong in [format!("redis://127.0.0.1:{}", server.port), "redis://127.0.0.1:1".to_owned()] {
        assert!(RedisNodes::connect(&wrong, patience()).is_err(), "{wrong}");
    }
}
