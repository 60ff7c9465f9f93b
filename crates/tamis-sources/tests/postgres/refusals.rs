//! What the source refuses, and whether the SQL in its messages mends it.

use std::os::unix::fs::PermissionsExt as _;

use tamis_sources::{IdType, PostgresOptions, SourceStatus, SyncState};

use crate::checker::*;
use crate::server::{Server, Session, give_away};
use crate::stories::certificate;
use crate::stories::conditions::on;
use crate::stories::follow::{follow, own_shop, refused, refused_as, reread, shop, start};

/// Returns the SQL of a message.
fn sql(message: &str) -> &str {
    message.split_once("run: ").unwrap_or_else(|| panic!("{message}")).1
}

/// Runs the SQL of messages until there is none. Returns the commands.
fn mend(session: &mut Session, postgres: &PostgresOptions) -> Vec<String> {
    let mut commands = Vec::new();
    loop {
        let ids = id_set(integers());
        let source = start(&ids, postgres);
        let has_sql = |status: &SourceStatus| {
            status.last_error.as_deref().is_some_and(|error| error.contains("run: "))
        };
        let status = wait(&source, "an answer", |status| {
            has_sql(status) || status.state == SyncState::Synced
        });
        if !has_sql(&status) {
            return commands;
        }
        assert!(commands.len() < 10, "{commands:?} {status:?}");
        let message = status.last_error.unwrap();
        session.run(sql(&message));
        commands.push(sql(&message).to_owned());
    }
}

#[test]
fn the_sql_of_the_messages_mends_what_is_missing() {
    let mut shop = shop();
    shop.run(
        "CREATE SCHEMA \"Other\"; CREATE UNLOGGED TABLE \"Other\".\"user\" (
          shop int, \"Id\" int NOT NULL UNIQUE, PRIMARY KEY (shop, \"Id\"));
        ALTER TABLE \"Other\".\"user\" DROP CONSTRAINT user_pkey;
        ALTER TABLE \"Other\".\"user\" ADD PRIMARY KEY (shop);
        INSERT INTO \"Other\".\"user\" VALUES (1, 5);
        ALTER TABLE \"Other\".\"user\" ENABLE ROW LEVEL SECURITY",
    );
    let user = format!("U{}", shop.name);
    shop.run(&format!("CREATE USER \"{user}\" PASSWORD 'geheim'"));
    let url = shop.as_user(&format!("{user}:geheim")).url;
    let mut postgres = PostgresOptions::new(&url, "Other.user", "Id");
    postgres.publication = "My guard".to_owned();
    assert_eq!(
        mend(&mut shop.session, &postgres),
        [
            "GRANT USAGE ON SCHEMA \"Other\" TO \"USER\"".replace("USER", &user),
            "GRANT SELECT ON \"Other\".\"user\" TO \"USER\"".replace("USER", &user),
            "ALTER ROLE \"USER\" BYPASSRLS".replace("USER", &user),
            "ALTER TABLE \"Other\".\"user\" SET LOGGED".to_owned(),
            "ALTER TABLE \"Other\".\"user\" REPLICA IDENTITY USING INDEX \"user_Id_key\""
                .to_owned(),
            "CREATE PUBLICATION \"My guard\" FOR TABLE \"Other\".\"user\" (\"Id\")".to_owned(),
            "ALTER ROLE \"USER\" REPLICATION".replace("USER", &user),
        ]
    );
    let (ids, source) = follow(&postgres);
    assert!(has(&ids, 5));
    let wrong = PostgresOptions { url: url.replace("geheim", "falsch"), ..postgres.clone() };
    refused(&wrong, "password authentication failed");
    assert!(!format!("{postgres:?} {:?}", source.status()).contains("geheim"));
}

#[test]
fn publications_that_omit_changes_are_refused_and_mended() {
    let mut shop = shop();
    shop.run(
        "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY HASH (id);
        CREATE TABLE parts1 PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
        CREATE TABLE plain (id int); CREATE TABLE wide (id int UNIQUE, b int PRIMARY KEY);
        ALTER TABLE wide REPLICA IDENTITY FULL",
    );
    for (table, publication, expected) in [
        (
            "products",
            "FOR TABLE products (id) WITH (publish = 'insert, update')",
            &["ALTER PUBLICATION p SET (publish = 'insert, update, delete, truncate')"][..],
        ),
        (
            "products",
            "FOR TABLE products WHERE (id > 5)",
            &["ALTER PUBLICATION p DROP TABLE public.products; \
               ALTER PUBLICATION p ADD TABLE public.products (id)"],
        ),
        (
            "products",
            "FOR TABLE products (name)",
            &["ALTER PUBLICATION p DROP TABLE public.products; \
               ALTER PUBLICATION p ADD TABLE public.products (id)"],
        ),
        ("products", "FOR TABLE wide", &["ALTER PUBLICATION p ADD TABLE public.products (id)"]),
        ("products", "FOR TABLES IN SCHEMA public", &[]),
        (
            "parts",
            "FOR TABLE parts",
            &["ALTER PUBLICATION p SET (publish_via_partition_root = true)"],
        ),
        (
            "plain",
            "FOR TABLE products",
            &[
                "ALTER TABLE public.plain REPLICA IDENTITY FULL",
                "ALTER PUBLICATION p ADD TABLE public.plain",
            ],
        ),
        ("wide", "FOR TABLE products", &["ALTER PUBLICATION p ADD TABLE public.wide"]),
    ] {
        shop.run(&format!("DROP PUBLICATION IF EXISTS p; CREATE PUBLICATION p {publication}"));
        let mut postgres = shop.table(table);
        postgres.publication = "p".to_owned();
        assert_eq!(mend(&mut shop.session, &postgres), expected, "{table} {publication}");
        // Programs may still write.
        let row = if table == "wide" { "VALUES (1, 1)" } else { "(id) VALUES (1)" };
        shop.run(&format!("INSERT INTO {table} {row}"));
        shop.run(&format!("UPDATE {table} SET id = 2; DELETE FROM {table}"));
    }
    shop.run("DROP PUBLICATION p");
    let mut parts = shop.table("parts");
    parts.publication = "p".to_owned();
    let created = "CREATE PUBLICATION p FOR TABLE public.parts (id) \
        WITH (publish_via_partition_root = true)";
    assert_eq!(mend(&mut shop.session, &parts), [created]);
}

#[test]
fn a_publication_without_the_columns_of_a_condition_is_refused_and_mended() {
    let mut shop = shop();
    shop.run(
        "CREATE TABLE goods (id int PRIMARY KEY, \"Status\" text, price int, \
         tax int GENERATED ALWAYS AS (price * 2) STORED); \
         CREATE PUBLICATION p FOR TABLE goods (id, price)",
    );
    let mut postgres = on(&shop.table("goods"), "\"Status\" = 'active' AND price > 1");
    postgres.publication = "p".to_owned();
    refused(&postgres, "lacks columns of the condition of public.goods; run: ALTER");
    let mended = ["ALTER PUBLICATION p DROP TABLE public.goods; \
        ALTER PUBLICATION p ADD TABLE public.goods (id, \"Status\", price)"];
    assert_eq!(mend(&mut shop.session, &postgres), mended);
    let (ids, source) = follow(&postgres);
    shop.after(&ids, &source, "INSERT INTO goods VALUES (1, 'active', 5), (2, 'x', 5)", &[1], &[2]);
    // Without quotes, PostgreSQL reads a name in lowercase.
    refused(&on(&postgres, "Status = 'active'"), "has no column status; it has: id, Status, price");
    refused(&on(&postgres, "tax > 1"), "is a generated column");
}

#[test]
fn tables_and_columns_that_cannot_be_followed_are_refused() {
    let mut shop = shop();
    shop.run(
        "CREATE VIEW seen AS SELECT * FROM products;
        CREATE SCHEMA away; CREATE TABLE away.far (id int PRIMARY KEY);
        CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child () INHERITS (parent);
        CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
        CREATE TABLE kinds (n numeric, f float8, j json, t text COLLATE loose, u uuid, i int)",
    );
    let of = |table: &str, column: &str| PostgresOptions {
        column: column.to_owned(),
        ..shop.table(table)
    };
    refused(&of("a.b.c", "id"), "write table or schema.table");
    refused(&of("far", "id"), "set table to away.far");
    refused(&of("seen", "id"), "public.seen is a view");
    refused(&of("parent", "id"), "ALTER TABLE public.child NO INHERIT public.parent");
    refused_as(text(), &of("kinds", "t"), "different texts are equal");
    refused_as(text(), &of("kinds", "t"), "exact = true");
    for (column, id) in [
        ("n", integers()),
        ("f", integers()),
        ("j", text()),
        ("t", integers()),
        ("u", text()),
        ("i", IdType::Uuid),
    ] {
        refused_as(id, &of("kinds", column), "which holds no ids of the configured type");
    }
    let good = shop.options.clone();
    let url = |url: &str| PostgresOptions { url: url.to_owned(), ..good.clone() };
    refused(&url("postgres://127.0.0.1/shop"), "names no user");
    refused(&url(&(shop.options.url.clone() + "?sslmode=require")), "has no TLS");
    shop.run(&format!(
        "CREATE DATABASE latin{} ENCODING LATIN1 LOCALE 'C' TEMPLATE template0",
        shop.name
    ));
    let latin = shop.options.url.replace(&shop.name, &format!("latin{}", shop.name));
    refused(&url(&latin), "must be UTF8");
    let two = shop.options.url.replace("postgres@", "postgres@127.0.0.1:1,");
    shop.fill(1, 5);
    let (ids, _source) = follow(&url(&two));
    assert!(has(&ids, 5));
}

#[test]
fn a_table_that_a_subscription_fills_is_refused() {
    let (publisher, mut shop) = (shop(), shop());
    shop.fill(1, 3);
    let both = [shop.options.clone(), reread(&shop.options)];
    let sets = both.each_ref().map(follow);
    let url = publisher.options.url;
    shop.run(&format!(
        "CREATE SUBSCRIPTION s_{0} CONNECTION '{url}' PUBLICATION tamis_guard
         WITH (create_slot = false, enabled = false, copy_data = false, slot_name = NONE)",
        shop.name
    ));
    let expected = "connect to the server that publishes the table";
    for (_, source) in &sets {
        wait_broken(source, expected);
    }
    for options in &both {
        refused(options, expected);
    }
    shop.run(&format!("DROP SUBSCRIPTION s_{}", shop.name));
    sets.iter().for_each(|(_, source)| _ = wait_synced(source));
}

#[test]
fn a_partition_of_a_table_that_a_subscription_fills_is_refused() {
    let (mut publisher, mut shop) = (shop(), shop());
    for shop in [&mut publisher, &mut shop] {
        shop.run(
            "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY HASH (id);
            CREATE TABLE parts1 PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
            ALTER PUBLICATION tamis_guard ADD TABLE parts1",
        );
    }
    publisher
        .run("CREATE PUBLICATION root FOR TABLE parts WITH (publish_via_partition_root = true)");
    let log = shop.table("parts1");
    let (_, source) = follow(&log);
    let url = publisher.options.url;
    shop.run(&format!(
        "CREATE SUBSCRIPTION r_{0} CONNECTION '{url}' PUBLICATION root
         WITH (create_slot = false, enabled = false, copy_data = false, slot_name = NONE)",
        shop.name
    ));
    let expected = "connect to the server that publishes the table";
    wait_error(&source, expected);
    refused(&log, expected);
    refused(&reread(&log), expected);
    shop.run(&format!("DROP SUBSCRIPTION r_{}", shop.name));
}

#[test]
fn users_with_an_old_hash_of_the_password_may_log_in() {
    let mut shop = shop();
    shop.run(
        "SET password_encryption = md5; CREATE USER old REPLICATION PASSWORD 'geheim';
        GRANT SELECT ON products TO old",
    );
    follow(&shop.as_user("old:geheim"));
}

#[test]
fn servers_without_changes_in_the_log_are_refused() {
    for (setting, expected) in [
        ("wal_level=replica", "ALTER SYSTEM SET wal_level = 'logical'"),
        ("max_replication_slots=0", "ALTER SYSTEM SET max_replication_slots = N"),
        ("max_wal_senders=0", "ALTER SYSTEM SET max_wal_senders = N"),
    ] {
        let server = Server::start_with(&[setting]);
        refused(&server.shop().options, expected);
    }
    let (_server, mut shop) = own_shop(&["max_replication_slots=1"], 10);
    let (ids, source) = shop.follow();
    refused(&shop.options, "ALTER SYSTEM SET max_replication_slots = N");
    // A second generation needs a second slot. Without one, the first generation stays in use.
    source.rebuild();
    wait(&source, "no slot", |status| status.failures > 0);
    shop.fill(11, 11);
    wait_until(&source, "inserted", || has(&ids, 11));
    assert_eq!(ids.state(), SyncState::Synced, "{:?}", source.status());
}

#[test]
fn a_standby_is_refused() {
    let server = Server::start();
    let shop = server.shop();
    let standby = server.standby();
    refused(&shop.at(standby.address()), "is a standby");
}

#[test]
fn a_private_ca_is_trusted_by_option() {
    let dir = Dir::new();
    certificate::write(&dir, "cert.pem", "key.pem");
    certificate::write(&dir, "other.pem", "other-key.pem");
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(dir.path("key.pem"), private).unwrap();
    for name in ["", "cert.pem", "key.pem"] {
        give_away(&dir.path(name));
    }
    let file = |name: &str| dir.path(name).display().to_string();
    let settings = [
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", file("cert.pem")),
        format!("ssl_key_file={}", file("key.pem")),
    ];
    let (_server, shop) = own_shop(&settings.each_ref().map(String::as_str), 10);
    let with_ca = |name: &str| PostgresOptions { ca: Some(dir.path(name)), ..shop.options.clone() };
    let (ids, source) = follow(&with_ca("cert.pem"));
    assert!(has(&ids, 10) && !has(&ids, 11));
    drop(source);
    refused(&with_ca("other.pem"), "invalid peer certificate");
    refused(&with_ca("key.pem"), "key.pem: has no certificate in PEM");
    refused(&with_ca("missing.pem"), "missing.pem: cannot be read");
}
