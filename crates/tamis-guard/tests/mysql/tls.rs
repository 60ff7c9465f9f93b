//! Connections with TLS.

use tamis_guard::SyncState;
use tamis_guard::source::MysqlOptions;

use crate::checker::{Dir, has, id_set, integers, knows, wait, wait_synced, wait_until};
use crate::server::{Server, start};

#[test]
fn rows_and_log_are_read_over_tls() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let dir = Dir::new();
    std::fs::write(dir.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(dir.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let file = |name: &str| dir.path(name).display().to_string();
    let settings =
        [format!("--ssl-cert={}", file("cert.pem")), format!("--ssl-key={}", file("key.pem"))];
    let server = Server::start_with(&settings.each_ref().map(String::as_str));
    let mut shop = server.shop();
    shop.fill(1, 1000);
    shop.session.run("CREATE USER guard@'%' IDENTIFIED BY 'a secret' REQUIRE SSL");
    shop.session.run("GRANT SELECT, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO guard@'%'");
    let url = |parameters: &str| {
        format!("mysql://guard:a%20secret@{}/{}{parameters}", server.address(), shop.name)
    };

    let ids = id_set(integers());
    let unverified = url("?require_ssl=true&verify_ca=false&verify_identity=false");
    let source = start(&ids, &MysqlOptions { url: unverified, ..shop.options.clone() });
    wait_synced(&source);
    assert!((1..=1000).all(|id| knows(&ids, id)) && !has(&ids, 1001));
    shop.session.run("INSERT INTO products VALUES ('new', 2000)");
    wait_until(&source, "the log", || has(&ids, 2000));

    for (parameters, message) in
        [("", "Access denied"), ("?require_ssl=true", "invalid peer certificate")]
    {
        let ids = id_set(integers());
        let source = start(&ids, &MysqlOptions { url: url(parameters), ..shop.options.clone() });
        wait(&source, message, |status| {
            status.last_error.as_ref().is_some_and(|error| error.contains(message))
        });
        assert_eq!(source.status().state, SyncState::Warming);
    }
}
