//! The answers of the program prove or refute a set of ids.

use std::fs;

use tamis::Plan;
use tamis_guard::source::{FileFormat, FileOptions, Source, SourceOptions};

use super::*;
use crate::checker::{Dir, INTERVAL, options as source_options, wait, wait_stale};
use crate::filter_file::filter_file;

/// A set of a file, with a guarded shop that has the products 1 to 99.
struct FromFile {
    guarded: Guarded,
    ids: Arc<IdSet>,
    source: Source,
    _dir: Dir,
}

impl FromFile {
    fn new(
        format: FileFormat,
        content: Vec<u8>,
        set: impl Fn(&mut IdSetOptions, &mut bool),
    ) -> Self {
        let dir = Dir::new();
        let path = dir.path("ids");
        fs::write(&path, content).unwrap();
        let mut options = IdSetOptions {
            rate: 1e-7,
            recent_for: Duration::from_millis(100),
            ..IdSetOptions::new(integers())
        };
        let mut is_shadow = false;
        set(&mut options, &mut is_shadow);
        let ids = Arc::new(IdSet::new(options).unwrap());
        let file = FileOptions { quiet: INTERVAL, ..FileOptions::new(&path, format) };
        // No state but the one that the test waits for: the watch thread is slow on a busy machine.
        let options = SourceOptions { stale_after: Duration::from_secs(60), ..source_options() };
        let source = Source::start(Arc::clone(&ids), file, options);
        wait(&source, "a generation", |status| status.generations == 1 && status.lag.is_some());
        let by_path = route("/products/{id}", &["path:id"], &ids);
        let by_path = super::set(by_path, |it| it.is_shadow = is_shadow);
        Self { guarded: Guarded::new(vec![by_path]), ids, source, _dir: dir }
    }

    async fn get(&mut self, id: u32) -> StatusCode {
        self.guarded.get(&format!("/products/{id}")).await
    }

    /// Waits until the answers of the program refute the set, and returns why.
    fn refuted(&self) -> String {
        wait_stale(&self.source).last_error.unwrap()
    }
}

/// Returns a filter file that has a text of each product.
fn filter(text: impl Fn(u32) -> String) -> Vec<u8> {
    filter_file(&Plan::new(1000, 1e-7).unwrap(), (1..100).map(text))
}

/// Returns a filter file of the products.
fn numbers() -> Vec<u8> {
    filter(|id| id.to_string())
}

fn untouched(_: &mut IdSetOptions, _: &mut bool) {}

#[tokio::test]
async fn no_id_that_exists_is_refused_if_the_filter_has_other_texts() {
    // A serializer has written the ids with quotes.
    let bytes = filter(|id| format!("\"{id}\""));
    let mut shop = FromFile::new(FileFormat::Filter, bytes, untouched);
    assert_eq!(shop.ids.state(), SyncState::Unproven);
    for id in 1..100 {
        assert_eq!(shop.get(id).await, StatusCode::OK, "{id}");
    }
    assert!(shop.refuted().contains("`funnel`"));
    for id in 1..100 {
        assert_eq!(shop.get(id).await, StatusCode::OK, "{id}");
    }
}

#[tokio::test]
async fn a_filter_refuses_ids_after_enough_answers_have_proved_it() {
    let mut shop = FromFile::new(FileFormat::Filter, numbers(), untouched);
    for id in 1..=60 {
        assert_eq!(shop.get(id).await, StatusCode::OK, "{id}");
        // A 404 shows nothing.
        shop.get(1000 + id).await;
    }
    assert_eq!(shop.ids.state(), SyncState::Synced);
    shop.guarded.reached();
    assert_eq!(shop.get(2000).await, StatusCode::NOT_FOUND);
    assert_eq!(shop.guarded.reached(), 0);
    let passed = |reason| shop.guarded.layer.routes()[0].counters.passed(reason);
    assert!(passed(PassReason::Unproven) >= 30, "{}", passed(PassReason::Unproven));
}

#[tokio::test]
async fn answers_to_other_methods_than_get_prove_nothing() {
    // The program may read the id of a POST from the body: an unknown id is no evidence, so neither
    // is an id that the filter has by chance.
    let mut shop = FromFile::new(FileFormat::Filter, numbers(), untouched);
    for id in 1..=60 {
        let request = post(&format!("/products/{id}"), "");
        assert_eq!(shop.guarded.answer(request).await.status(), StatusCode::OK, "{id}");
    }
    assert_eq!(shop.ids.state(), SyncState::Unproven);
}

#[tokio::test]
async fn a_trusted_filter_refuses_ids_at_once() {
    let mut shop =
        FromFile::new(FileFormat::Filter, numbers(), |options, _| options.is_trusted = true);
    assert_eq!(shop.ids.state(), SyncState::Synced);
    assert_eq!((shop.get(2000).await, shop.guarded.reached()), (StatusCode::NOT_FOUND, 0));
}

#[tokio::test]
async fn the_policy_limits_unknown_ids_of_a_filter_that_is_not_proven() {
    let mut shop = FromFile::new(FileFormat::Filter, numbers(), |options, _| {
        options.policies.unproven = Policy::Limit(3);
    });
    let mut unavailable = 0;
    for id in 2000..2020 {
        unavailable += u32::from(shop.get(id).await == StatusCode::SERVICE_UNAVAILABLE);
    }
    assert!(unavailable >= 10, "{unavailable}");
}

#[tokio::test]
async fn a_shadow_route_refutes_a_list_without_the_ids_of_the_program() {
    for is_trusted in [false, true] {
        let mut shop =
            FromFile::new(FileFormat::Lines, b"1\n2\n".to_vec(), |options, is_shadow| {
                options.is_trusted = is_trusted;
                *is_shadow = true;
            });
        for uri in ["/products/3", "/products/3;v=1", "/products/3?page=2", "/products/4"] {
            assert_eq!(shop.guarded.get(uri).await, StatusCode::OK);
        }
        assert_eq!(shop.guarded.answer(post("/products/5", "")).await.status(), StatusCode::OK);
        // Two ids are too few. The program has a new one that the source does not have yet.
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(shop.ids.state(), SyncState::Synced);
        shop.get(6).await;
        if is_trusted {
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(shop.ids.state(), SyncState::Synced);
        } else {
            assert!(shop.refuted().contains("`trust = true`"));
        }
    }
}
