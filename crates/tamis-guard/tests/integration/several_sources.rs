//! Sets with several sources: their configuration, their status, and reloads that add a source.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tamis_guard::{AuditOptions, Config, Guard, GuardHandle, GuardSets, SyncState, audit};

use crate::admin::get;
use crate::proxy::support::wait_until;

/// Returns a configuration whose set `orders` has these sources.
fn config_of(sources: &[&str]) -> String {
    let sources = sources.iter().map(|it| format!("[[ids.orders.source]]\n{it}\n"));
    format!(
        r#"
        proxy = {{ listen = "127.0.0.1:0", upstream = "http://127.0.0.1:9" }}
        admin = {{ listen = "127.0.0.1:0" }}

        [ids.orders]
        interval = "20ms"
        {}
        [[route]]
        path = "/orders/{{id}}"
        ids = {{ "path:id" = "orders" }}
        "#,
        sources.collect::<String>()
    )
}

fn list(name: &str) -> String {
    format!("kind = \"lines\"\npath = \"{name}\"\nquiet = \"20ms\"")
}

fn tables(kind: &str, fields: &str) -> String {
    format!(
        "kind = \"{kind}\"\nurl = \"{kind}://guard:geheim@db1/shop\"\ncolumn = \"id\"\n{fields}"
    )
}

fn parse(sources: &[&str]) -> Result<Config, String> {
    Config::parse(&config_of(sources), "guard.toml").map_err(|error| error.to_string())
}

#[test]
fn a_set_may_have_several_lists_and_tables() {
    let mysql = tables("mysql", "tables = [\"orders_00\", \"orders_{01..15}\"]");
    let other = mysql.replace("db1", "db2");
    let postgres = tables("postgres", "table = \"orders\"");
    parse(&[&list("a.txt"), &mysql, &other, &postgres]).unwrap();
    parse(&[&list("a.txt")]).unwrap();
    let sqlite =
        "kind = \"sqlite\"\npath = \"shop.db\"\ncolumn = \"id\"\ntables = \"orders_{0..3}\"";
    parse(&[sqlite]).unwrap();
    // One slot for each table.
    let with_slot = |table: &str| {
        tables("postgres", &format!("table = \"{table}\"\nslot = \"tamis_guard_{table}\""))
    };
    let (one, two) = (with_slot("a"), with_slot("b"));
    let text = format!("snapshots = {{ folder = \"a\" }}\n{}", config_of(&[&one, &two]));
    Config::parse(&text, "guard.toml").unwrap();
    let equal = text.replace("tamis_guard_b", "tamis_guard_a");
    let error = Config::parse(&equal, "guard.toml").unwrap_err().to_string();
    assert!(error.contains("ids.orders.source.slot: another source has this slot"), "{error}");
}

#[test]
fn wrong_sources_are_refused_with_the_way_out() {
    let (a, b) = (list("a.txt"), list("b.txt"));
    let mysql = |fields: &str| tables("mysql", fields);
    for (sources, expected) in [
        (&[&*mysql("table = \"a\"\ntables = \"b\"")][..], "source 1: tables: write `table` or"),
        (&[&*mysql("")], "source 1: table: write the name of the table"),
        (&[&a, &*mysql("tables = []")], "ids.orders.source 2: tables: the list is empty"),
        (&[&*mysql("tables = \"a_{0..x}\"")], "\"a_{0..x}\" has no range such as {00..15}"),
        (&[&*mysql("tables = \"a_{0..5000}\"")], "tables: a set has at most 1024 tables"),
        (
            &[&*mysql("tables = \"a_{0..999}\""), &*mysql("tables = \"b_{0..999}\"")],
            "ids.orders.source: a set has at most 1024 tables",
        ),
        (
            &[&*mysql("tables = \"a_{0..3}\""), &*mysql("table = \"a_2\"")],
            "ids.orders.source: two sources are equal: mysql shop.a_2.id at db1:3306",
        ),
        (&[&a, &b, &a], "two sources are equal: lines "),
        (
            &[&*mysql("tables = \"a_{0..3}\"\nserver_id = 7")],
            "server_id: each table needs its own server id: remove `server_id`",
        ),
        (
            &[&*tables("postgres", "tables = \"a_{0..3}\"\nslot = \"tamis_guard\"")],
            "slot: each table needs its own slot: write one [[ids.NAME.source]] for each table",
        ),
        (&[&a, "kind = \"filter\"\npath = \"ids.tamis\""], "are the only source of their set"),
        (
            &[&a, "kind = \"leader\"\nurl = \"http://a:1/filters/b\"\ntoken = \"c\""],
            "are the only source of their set",
        ),
        (&[&a, "kind = \"redis\"\nurl = \"redis://a/b\""], "are the only source of their set"),
        (&[&a, "kind = \"lines\"\npth = \"b\""], "unknown field `pth`"),
        (&[&a, "kind = \"pipe\""], "unknown variant `pipe`"),
    ] {
        let error = parse(sources).unwrap_err();
        assert!(error.contains(expected), "{sources:?}: {error}");
        assert!(!error.contains("geheim"), "{error}");
    }
    let published = config_of(&[&a, &b])
        .replace("[ids.orders]", "[ids.orders]\npublish = { token = \"secret\" }");
    let error = Config::parse(&published, "guard.toml").unwrap_err().to_string();
    assert!(error.contains("ids.orders.publish: a set with several sources cannot"), "{error}");
    let empty = config_of(&[]).replace("[ids.orders]", "[ids.orders]\nsource = []");
    let error = Config::parse(&empty, "guard.toml").unwrap_err().to_string();
    assert!(error.contains("ids.orders.source: the list is empty"), "{error}");
    let number = config_of(&[]).replace("[ids.orders]", "[ids.orders]\nsource = 7");
    let error = Config::parse(&number, "guard.toml").unwrap_err().to_string();
    assert!(error.contains("expected a source such as { kind = \"lines\""), "{error}");
}

#[test]
fn the_configuration_of_the_guide_is_valid() {
    for (guide, heading) in [
        (include_str!("../../../../docs/guard.md"), "### Several tables and servers\n"),
        (include_str!("../../../../docs/guard.zh-CN.md"), "### 分库分表\n"),
    ] {
        let section = guide.split_once(heading).expect(heading).1;
        let sources = section.split("```").nth(1).unwrap().strip_prefix("toml\n").unwrap();
        let text = config_of(&[]).replace("[ids.orders]\n", "[ids.products]\n");
        let text = text.replace("\"orders\"", "\"products\"");
        let text = format!("{text}\n{}", sources.replace("${DB_PASSWORD}", "geheim"));
        Config::parse(&text, "guard.toml").unwrap_or_else(|error| panic!("{text}\n{error}"));
    }
}

fn write(folder: &Path, name: &str, ids: &str) {
    std::fs::write(folder.join(name), ids).unwrap();
}

async fn synced(handle: &GuardHandle) {
    let is_synced = || handle.sets().iter().all(|set| set.ids.state() == SyncState::Synced);
    wait_until("the set is synced", async || is_synced()).await;
}

fn passes(handle: &GuardHandle, id: &str) -> bool {
    handle.sets()[0].ids.decide(id.as_bytes()).passes()
}

#[tokio::test]
async fn the_status_names_the_source_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.txt", "1\n7\n");
    let text = config_of(&[&list("a.txt"), &list("b.txt")]);
    let config = Config::parse(&text, folder.path().join("guard.toml")).unwrap();
    let guard = Guard::start(config).await.unwrap();
    let (admin, handle) = (guard.admin_address().unwrap(), guard.handle());
    tokio::spawn(guard.run(std::future::pending()));
    let status = async || {
        let (_, body) = get(admin, "/api/status").await;
        let status: Value = serde_json::from_str(&body).unwrap();
        status["ids"]["orders"].clone()
    };
    wait_until("an error", async || status().await["last_error"].is_string()).await;
    let found = status().await;
    let error = found["last_error"].as_str().unwrap();
    assert!(error.starts_with("lines ") && error.contains("b.txt: "), "{error}");
    assert_eq!((&found["state"], &found["lag_seconds"]), (&"warming".into(), &Value::Null));
    assert_eq!(found["sources"][1]["state"], "warming");
    assert!(found["sources"][1]["last_error"].as_str().unwrap().contains("b.txt"), "{found}");
    assert!(passes(&handle, "9"), "unknown ids pass");

    // The same id in both lists.
    write(folder.path(), "b.txt", "2\n7\n");
    synced(&handle).await;
    let found = status().await;
    assert_eq!((&found["state"], &found["items"]), (&"synced".into(), &4.into()));
    assert_eq!(found["sources"].as_array().unwrap().len(), 2);
    assert_eq!((&found["sources"][0]["items"], &found["generations"]), (&2.into(), &2.into()));
    assert!(["1", "2", "7"].iter().all(|id| passes(&handle, id)) && !passes(&handle, "9"));
    let rate = found["planned_rate"].as_f64().unwrap();
    assert!((rate - 0.001).abs() < 1e-12, "{rate}");
    let (_, metrics) = get(admin, "/metrics").await;
    for line in ["tamis_guard_items{ids=\"orders\"} 4", "tamis_guard_is_synced{ids=\"orders\"} 1"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    // The id 7 is deleted from one list.
    write(folder.path(), "a.txt", "1\n3\n");
    wait_until("the new list", async || handle.sets()[0].sources[0].status.generations == 2).await;
    assert!(passes(&handle, "7") && passes(&handle, "3"));
    write(folder.path(), "b.txt", "2\n4\n");
    wait_until("the other list", async || !passes(&handle, "7")).await;
}

#[tokio::test]
async fn a_source_that_is_added_by_a_reload_lets_unknown_ids_pass_until_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.txt", "1\n");
    let config = |sources: &[&str]| {
        Config::parse(&config_of(sources), folder.path().join("guard.toml")).unwrap()
    };
    let guard = Guard::start(config(&[&list("a.txt")])).await.unwrap();
    let handle = guard.handle();
    synced(&handle).await;
    assert!(!passes(&handle, "2"));
    handle.reload(config(&[&list("a.txt"), &list("b.txt")])).unwrap();
    wait_until("an error", async || handle.sets()[0].status.as_ref().unwrap().last_error.is_some())
        .await;
    assert_eq!(handle.sets()[0].ids.state(), SyncState::Warming);
    assert!(passes(&handle, "2") && passes(&handle, "3"));
    write(folder.path(), "b.txt", "2\n");
    synced(&handle).await;
    assert!(passes(&handle, "1") && passes(&handle, "2") && !passes(&handle, "3"));
    guard.run(std::future::ready(())).await;
}

#[test]
fn each_source_has_its_own_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    std::fs::create_dir(&state).unwrap();
    write(folder.path(), "a.txt", "1\n");
    write(folder.path(), "b.txt", "2\n");
    let start = |sources: &[&str]| {
        let text = format!("snapshots = {{ folder = \"state\" }}\n{}", config_of(sources));
        let config = Config::parse(&text, folder.path().join("guard.toml")).unwrap();
        let sets = GuardSets::start(&config).unwrap();
        tamis_testing::wait_until("synced", || sets.list()[0].ids.state() == SyncState::Synced);
        sets
    };
    let files = || {
        let mut names: Vec<_> = std::fs::read_dir(&state)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".snapshot"))
            .collect();
        names.sort_unstable();
        names
    };
    let (a, b) = (list("a.txt"), list("b.txt"));
    drop(start(&[&a, &b]));
    let before = files();
    assert_eq!(before.len(), 2, "{before:?}");
    // The order of the sources has no effect. All ids come from the snapshots.
    let sets = start(&[&b, &a]);
    let status = sets.list()[0].status.clone().unwrap();
    assert_eq!((status.items_read, status.snapshots.unused), (0, None));
    let ids = Arc::clone(&sets.list()[0].ids);
    assert!(ids.decide(b"1").passes() && ids.decide(b"2").passes() && !ids.decide(b"3").passes());
    drop(sets);
    assert_eq!(files(), before);
    // With another source, the rate of each source changes, so the guard reads all ids.
    write(folder.path(), "c.txt", "3\n");
    let sets = start(&[&a, &b, &list("c.txt")]);
    let status = sets.list()[0].status.clone().unwrap();
    assert_eq!(status.items_read, 3);
    let unused = status.snapshots.unused.unwrap();
    assert!(unused.contains("another rate") && unused.contains("1 more of 3 sources"), "{unused}");
    drop(sets);
    let after = files();
    assert!(after.len() == 3 && before.iter().all(|name| after.contains(name)), "{after:?}");
}

#[test]
fn an_audit_reads_all_sources() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.txt", "1\n7\n");
    write(folder.path(), "b.txt", "2\n7\nx\n");
    let text = config_of(&[&list("a.txt"), &list("b.txt")]);
    let config = Config::parse(&text, folder.path().join("guard.toml")).unwrap();
    let sets = GuardSets::start(&config).unwrap();
    tamis_testing::wait_until("synced", || sets.list()[0].ids.state() == SyncState::Synced);
    let ids = Arc::clone(&sets.list()[0].ids);
    let mut source = config.audit_source("orders").unwrap().unwrap();
    let options = AuditOptions { patience: std::time::Duration::ZERO, ..AuditOptions::default() };
    let report = audit(&ids, &mut *source, options).unwrap();
    assert_eq!((report.present_checked, report.invalid_rows), (4, 1));
    assert!(report.is_complete() && report.is_rate_kept(), "{report:?}");
    // The id 7 is in two lists. A missing id is found in each source.
    ids.delete(7).unwrap();
    ids.delete(2).unwrap();
    let report = audit(&ids, &mut *source, options).unwrap();
    assert_eq!(report.refused_examples, [b"2", b"7"]);
}
