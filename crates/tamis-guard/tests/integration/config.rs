//! Configurations: what they mean, and what the messages about wrong ones say.

use tamis_guard::{Config, Guard, GuardSet, SyncState};

use crate::checker::Random;
use crate::proxy::support::{in_time, wait_until};

const GOOD: &str = r#"
[proxy]
listen = "127.0.0.1:0"
upstream = "http://127.0.0.1:9"

[ids.products]
source = { kind = "lines", path = "ids.txt" }

[[route]]
path = "/pms/productInfo/{id}"
ids = { "path:id" = "products" }
"#;

fn message(text: &str) -> String {
    Config::parse(text, "guard.toml").expect_err(text).to_string()
}

/// Returns the good configuration with another source.
fn with_source(fields: &str) -> String {
    GOOD.replace("kind = \"lines\", path = \"ids.txt\"", fields)
}

/// Tests the message about the good configuration with another text in place of `from`.
fn refused(from: &str, to: &str, expected: &str) {
    assert!(GOOD.contains(from), "{from}");
    let text = message(&GOOD.replacen(from, to, 1));
    assert!(text.contains(expected), "{to}: {text}");
    assert!(text.starts_with("guard.toml:") && !text.contains('\n'), "{text}");
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn wrong_values_are_named_with_their_place() {
    for (field, expected) in [
        ("type = \"int\"", "expected one of `integer`, `uuid`"),
        ("rate = 1.0", "ids.products.rate: write a probability"),
        ("rate = nan", "ids.products.rate: write a probability"),
        ("max = 0", "ids.products.max: must be at least min"),
        ("type = \"uuid\"\nmin = 1", "ids.products.min: only for ids of the type integer"),
        ("allow = [\"x\"]", "ids.products.allow: \"x\" is not"),
        ("deny_file = \"nowhere\"", "ids.products.deny_file: nowhere: No such file"),
        ("policy = { stale = \"limit\" }", "expected \"pass\", \"reject\" or \"limit 100/s\""),
        (
            "push = { token = \"${TAMIS_NO_SUCH}\" }",
            "the environment variable \"TAMIS_NO_SUCH\" is not set",
        ),
        ("stale_after = \"1s\"", "must be longer than `interval`"),
    ] {
        refused("[ids.products]", &format!("[ids.products]\n{field}"), expected);
    }
    for (field, expected) in [
        ("refusal = { status = 99 }", "route 1: refusal.status"),
        (
            "refusal = { cors = { origins = \"*\", credentials = true } }",
            "browsers do not accept * with credentials",
        ),
        (
            "refusal = { cors = { origins = [\"https://a.com/\"] } }",
            "is not \"*\" and not an origin",
        ),
        ("methods = [\"G T\"]", "route 1: methods"),
        ("refusal = { body = \"a\", code = 1 }", "write either `body`, or `code` and `message`"),
        (
            "refusal = { headers = { \"Content-Length\" = \"1\" } }",
            "Content-Length follows from the body",
        ),
    ] {
        refused("\n[[route]]", &format!("\n[[route]]\n{field}"), expected);
    }
    for (before, expected) in [
        (
            "[snapshots]\nfolder = \"state\"\nevery = \"10ms\"",
            "snapshots.every: must be at least 1s",
        ),
        ("[snapshots]", "missing field `folder`"),
        ("admin = { listen = \"x\" }", "unknown field `admin`"),
        ("[admin]\nlisten = \"x\"", "admin.listen: \"x\" is not"),
        ("[[learn]]\npath = \"/p\"\nplaces = \"body:id\"\nids = \"products\"", "learn 1: places"),
        (
            "[[learn]]\npath = \"/p\"\nplaces = \"answer json:/id\"\nids = \"no\"",
            "learn 1: ids: there is no table [ids.no]",
        ),
    ] {
        refused("[ids.products]", &format!("{before}\n[ids.products]"), expected);
    }
    for (from, to, expected) in [
        ("upstream", "upstrem", "guard.toml:4:1: unknown field `upstrem`"),
        ("listen =", "listen", "guard.toml:3:"),
        ("\"127.0.0.1:0\"", "7", "guard.toml:3:10: "),
        ("127.0.0.1:0", "here", "guard.toml: proxy.listen: \"here\" is not an address"),
        ("http://127.0.0.1:9", "ftp://a", "begins with neither http:// nor https://"),
        ("\nupstream", "\nbody_timeout = \"5\"\nupstream", "expected a time such as \"250ms\""),
        ("\nupstream", "\nmax_head = 10\nupstream", "guard.toml: proxy: max_connections must"),
        ("\"lines\"", "\"pipe\"", "unknown variant `pipe`, expected one of `lines`, `csv`"),
        ("path = \"ids.txt\"", "pth = \"ids.txt\"", "unknown field `pth`"),
        ("/pms/", "pms/", "route 1: path: the path \"pms/productInfo/{id}\" does not begin"),
        ("path:id", "path:no", "route 1: ids: the path \"/pms/productInfo/{id}\" has no {no}"),
        ("path:id", "path:no", "has no {no}; the path has: path:id"),
        ("/{id}", "/:id", "has the segment \":id\": write {id} to match one segment"),
        ("/{id}", "/{*id}", "route 1: path: the path \"/pms/productInfo/{*id}\" has the segment"),
        ("path:id", "query: id", "route 1: ids: \"query: id\" is not the place of an id"),
        (
            "{ \"path:id\" = \"products\" }",
            "{ \"json:/id\" = \"products\" }\nmax_body = \"0\"",
            "route 1: max_body: must be above 0, because the ids are in the body",
        ),
        ("path:id", "body:id", "is not the place of an id"),
        ("= \"products\"", "= \"users\"", "no table [ids.users]; there are: products"),
        ("{ \"path:id\" = \"products\" }", "{}", "route 1: ids: write where the id is"),
        (
            "kind = \"lines\", path = \"ids.txt\"",
            "kind = \"mysql\", url = \"${TAMIS_NO_SUCH}\", table = \"t\", column = \"id\"",
            "the environment variable \"TAMIS_NO_SUCH\" is not set",
        ),
    ] {
        refused(from, to, expected);
    }
    assert!(message("").contains("proxy: write [proxy]"));
}

#[test]
fn an_exempt_route_has_a_path_and_methods_only() {
    let exempt = "[[route]]\npath = \"/pms/productInfo/search\"\nexempt = true\n";
    let with = |field: &str| GOOD.replacen("[[route]]", &format!("{exempt}{field}\n[[route]]"), 1);
    for field in ["", "methods = [\"GET\"]", "name = \"search\""] {
        Config::parse(&with(field), "guard.toml").unwrap();
    }
    for field in [
        "ids = { \"query:id\" = \"products\" }",
        "shadow = true",
        "missing = \"refuse\"",
        "refusal = { code = 1 }",
        "list = \",\"",
    ] {
        let found = message(&with(field));
        assert!(found.contains("route 1: exempt: an exempt route checks nothing"), "{found}");
    }
    let found = message(&GOOD.replace("ids = { \"path:id\" = \"products\" }", "exempt = false"));
    assert!(found.contains("or write exempt = true"), "{found}");
    let found = message(&with("").replace("/search", "/:id"));
    assert!(found.contains("route 1: path: the path \"/pms/productInfo/:id\" has"), "{found}");
}

#[test]
fn a_route_that_no_request_reaches_is_refused() {
    let route = |path: &str, methods: &str, rest: &str| {
        format!("[[route]]\npath = \"{path}\"\nmethods = [{methods}]\n{rest}\n")
    };
    let checks = "ids = { \"query:id\" = \"products\" }";
    let sets = GOOD.split("[[route]]").next().unwrap();
    let parse = |earlier: &str, later: &str| {
        Config::parse(&format!("{sets}{earlier}{later}"), "guard.toml")
    };
    for (earlier, later) in [
        (route("/p/{id}", "", checks), route("/p/{sku}", "", checks)),
        (route("/p/{id}", "", checks), route("/P/search/", "\"POST\"", checks)),
        (route("/p/{id}", "", checks), route("/p/search", "", "exempt = true")),
        (route("/p/*", "", "exempt = true"), route("/p/{id}", "", checks)),
        (route("/p/{id}", "\"get\"", checks), route("/p/{id}", "\"GET\", \"HEAD\"", checks)),
        (route("/p/{id}.json", "", checks), route("/p/{a}.JSON", "", checks)),
    ] {
        let found = parse(&earlier, &later).expect_err(&later).to_string();
        assert!(found.starts_with("guard.toml: route 2: path: no request reaches"), "{found}");
        let path = |route: &str| route.split('"').nth(1).unwrap().to_owned();
        let names =
            [format!("the route {:?}", path(&later)), format!("route 1 ({:?})", path(&earlier))];
        assert!(names.iter().all(|name| found.contains(name)), "{found}");
    }
    for (earlier, later) in [
        (route("/p/search", "", "exempt = true"), route("/p/{id}", "", checks)),
        (route("/p/search", "", "exempt = true"), route("/p/Search", "", "exempt = true")),
        (route("/p/{id}", "\"GET\"", checks), route("/p/{id}", "", checks)),
        (route("/p/{id}", "\"GET\"", checks), route("/p/{id}", "\"POST\"", checks)),
        (route("/p/{id}.json", "", checks), route("/p/{id}", "", checks)),
        (route("/p/{id}", "", checks), route("/p/*", "", checks)),
    ] {
        assert!(parse(&earlier, &later).is_ok(), "{earlier}{later}");
    }
}

#[test]
fn the_routes_of_the_guide_are_valid() {
    let sets = GOOD.split("[[route]]").next().unwrap();
    for (guide, heading) in [
        (include_str!("../../../../docs/guard.md"), "### Routes\n"),
        (include_str!("../../../../docs/guard.zh-CN.md"), "### 路由\n"),
    ] {
        let section = guide.split_once(heading).unwrap().1;
        let routes = section.split("```").nth(1).unwrap().strip_prefix("toml\n").unwrap();
        Config::parse(&format!("{sets}{routes}"), "guard.toml").unwrap();
    }
}

#[test]
fn the_separator_of_a_list_is_one_character() {
    let with = |list: &str| GOOD.replacen("[[route]]", &format!("[[route]]\nlist = \"{list}\""), 1);
    for list in [",", "|", " ", ":"] {
        Config::parse(&with(list), "guard.toml").unwrap();
    }
    for list in [";", "a", "1", "，"] {
        let found = message(&with(list));
        assert!(found.contains("route 1: list: write the character between two ids"), "{found}");
    }
    assert!(message(&with(", ")).contains("guard.toml:"));
}

#[test]
fn secrets_are_not_shown() {
    let secret =
        GOOD.replacen("[ids.products]", "[ids.products]\npush = { token = \"swordfish\" }", 1);
    let config = Config::parse(&secret, "guard.toml").unwrap();
    assert!(!format!("{config:?}").contains("swordfish"));
}

#[test]
fn bytes_of_any_kind_are_refused_without_a_panic() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..1000 {
        let mut bytes = GOOD.as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len().max(1) as u64) as usize;
            if bytes.is_empty() {
                break;
            }
            match random.below(3) {
                0 => bytes[at] = random.below(256) as u8,
                1 => _ = bytes.remove(at),
                _ => bytes.truncate(at.max(1)),
            }
        }
        _ = Config::parse(&String::from_utf8_lossy(&bytes), "guard.toml");
    }
}

#[tokio::test]
async fn a_reload_keeps_the_ids_of_sets_that_did_not_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("guard.toml");
    std::fs::write(folder.path().join("ids.txt"), "1\n2\n").unwrap();
    let config = |text: &str| Config::parse(text, &path);
    let guard = Guard::start(config(GOOD).unwrap()).await.unwrap();
    let handle = guard.handle();
    let synced = async || {
        let is_synced = |set: &GuardSet| {
            set.ids.generations().items() == 2 && set.ids.state() == SyncState::Synced
        };
        wait_until("all sets are synced", async || handle.sets().iter().all(is_synced)).await;
    };
    synced().await;
    let before = handle.sets()[0].ids.clone();
    assert!(!before.decide(b"3").passes());
    // Lists and routes change, and the ids stay.
    let text = GOOD.replace("[ids.products]", "[ids.products]\nallow = [\"3\"]\ndeny = [\"1\"]");
    assert_eq!(handle.reload(config(&text).unwrap()).unwrap(), None);
    let same = handle.sets()[0].ids.clone();
    assert!(std::sync::Arc::ptr_eq(&before, &same));
    assert!(same.decide(b"3").passes() && !same.decide(b"1").passes());
    // Another rate needs another filter, and another address a restart.
    let text = GOOD.replace("[ids.products]", "[ids.products]\nrate = 0.01");
    let text = text.replace("127.0.0.1:0", "127.0.0.2:0");
    let note = handle.reload(config(&text).unwrap()).unwrap();
    assert!(note.is_some_and(|note| note.contains("restart")), "{note:?}");
    assert!(!std::sync::Arc::ptr_eq(&before, &handle.sets()[0].ids));
    synced().await;
    assert!(handle.rebuild("products") && !handle.rebuild("users"));
    assert_eq!(in_time("the shutdown", guard.run(std::future::ready(()))).await, 0);
}

#[test]
fn a_permanent_slot_needs_a_valid_name_and_snapshots() {
    let with = |slot: &str, more: &str| {
        let source = "kind = \"postgres\", url = \"postgres://a@b/c\", table = \"t\"";
        let source = format!("{source}, column = \"id\", slot = \"{slot}\"");
        format!("{more}\n{}", with_source(&source))
    };
    let snapshots = "[snapshots]\nfolder = \"a\"";
    Config::parse(&with("tamis_guard_1", snapshots), "a").unwrap();
    let found = message(&with("tamis_guard_1", ""));
    assert!(found.contains("ids.products.source.slot: needs the table [snapshots]"), "{found}");
    for name in
        ["", "sub_a", "tamis_guardA", "tamis_guard a", "tamis_guard'", &"tamis_guard".repeat(6)]
    {
        let found = message(&with(name, snapshots));
        assert!(found.contains("ids.products.source.slot: write a name"), "{found}");
    }
    let set = "[ids.a]\nsource = { kind = \"postgres\", url = \"postgres://a@b/c\", table = \"u\", \
        column = \"id\", slot = \"tamis_guard_1\" }\n";
    let found = message(&with("tamis_guard_1", &format!("{snapshots}\n{set}")));
    assert!(found.contains("ids.products.source.slot: another source has this slot"), "{found}");
    let polled = with("tamis_guard\", follow = \"poll\", changed = \"at", snapshots);
    assert!(message(&polled).contains("source.slot: only with follow = \"log\""));
}

#[test]
fn a_poll_needs_a_change_column_and_a_log_has_none() {
    for (kind, of_log) in [("mysql", "server_id = 7"), ("postgres", "publication = \"p\"")] {
        let with = |fields: &str| {
            let table = "table = \"t\", column = \"id\"";
            with_source(&format!("kind = \"{kind}\", url = \"{kind}://a@b/c\", {table}, {fields}"))
        };
        let field = of_log.split(' ').next().unwrap();
        for (fields, expected) in [
            ("follow = \"poll\"", "ids.products.source.changed: name a column"),
            (
                "follow = \"poll\", overlap = \"5s\"",
                "ids.products.source.overlap: only with the column",
            ),
            (
                &*format!("follow = \"poll\", changed = \"at\", {of_log}"),
                &*format!("ids.products.source.{field}: only with follow = \"log\""),
            ),
            ("changed = \"at\"", "ids.products.source.changed: only with follow = \"poll\""),
            ("follow = \"log\", reread = \"1h\"", "source.reread: only with follow = \"poll\""),
            ("follow = \"binlog\"", "unknown variant `binlog`"),
        ] {
            let found = message(&with(fields));
            assert!(found.contains(expected), "{kind} {fields}: {found}");
        }
        let deletions = "follow = \"poll\", changed = \"at\", deletions = \"SELECT 1\"";
        Config::parse(&with(deletions), "a").unwrap();
        Config::parse(&with(of_log), "a").unwrap();
        Config::parse(&with("exact = true"), "a").unwrap();
        let primary = with(&format!("primary = \"{kind}://a:${{GUARD_NO_SUCH}}@b\""));
        let expected = if kind == "mysql" { "GUARD_NO_SUCH" } else { "unknown field `primary`" };
        assert!(message(&primary).contains(expected), "{}", message(&primary));
    }
}

#[test]
fn a_condition_is_checked_when_the_configuration_is_read() {
    for kind in ["mysql", "postgres"] {
        let with = |fields: &str| {
            let table = "table = \"t\", column = \"id\"";
            with_source(&format!("kind = \"{kind}\", url = \"{kind}://a@b/c\", {table}, {fields}"))
        };
        let log = "where = \"status = 'active' AND deleted_at IS NULL\"";
        Config::parse(&with(log), "a").unwrap();
        for (condition, expected) in [
            (
                "lower(name) = 'a'",
                "it cannot be read from \"(name) = 'a'\" on; a condition has the",
            ),
            ("status = NULL", "a comparison with NULL is never true; write IS NULL"),
            ("", "it is empty"),
        ] {
            let found = message(&with(&format!("where = \"{condition}\"")));
            assert!(found.contains("ids.products.source.where: "), "{kind} {condition}: {found}");
            assert!(found.contains(expected), "{kind} {condition}: {found}");
        }
        let poll = "follow = \"poll\", changed = \"at\", where = \"lower(name) = 'a'\"";
        Config::parse(&with(poll), "a").unwrap();
    }
    let sqlite = "kind = \"sqlite\", path = \"a.db\", table = \"t\", column = \"id\"";
    Config::parse(&with_source(&format!("{sqlite}, where = \"a > b\"")), "a").unwrap();
    assert!(message(&with_source(&format!("{sqlite}, condition = \"a\""))).contains("condition"));
}

#[test]
fn a_ca_of_a_redis_source_needs_an_encrypted_url() {
    let with_url =
        |url: &str| with_source(&format!("kind = \"redis\", url = \"{url}\", ca = \"ca.pem\""));
    let found = message(&with_url("redis://host/seen"));
    assert!(found.contains("ids.products.source.ca: only with rediss://"), "{found}");
    Config::parse(&with_url("rediss://host/seen"), "guard.toml").unwrap();
}

#[test]
fn the_configurations_of_the_java_page_are_valid() {
    let page = include_str!("../../../../docs/java-spring.md");
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut sources = Vec::new();
    for block in blocks.filter(|block| block.starts_with("proxy")) {
        let text = block.replace("${DB_PASSWORD}", "secret");
        Config::parse(&text, "guard.toml").unwrap_or_else(|error| panic!("{block}\n{error}"));
        sources.extend(["mysql", "redis"].into_iter().filter(|kind| block.contains(kind)));
    }
    assert_eq!(sources, ["mysql", "redis", "redis"]);
}
