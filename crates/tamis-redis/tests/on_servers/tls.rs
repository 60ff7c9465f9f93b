//! Encrypted connections.

use crate::support::{Server, free_port, patience, plan_for};
use redis::{Client, TlsCertificates};
use tamis_redis::{RedisFilter, RedisOpenError, SingleNode};

#[test]
fn a_filter_works_over_tls_and_an_unknown_certificate_is_refused() {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let directory = std::env::temp_dir().join(format!("tamis-redis-tls-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = |name: &str, text: String| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let certificate = certified.cert.pem();
    let cert = file("cert.pem", certificate.clone());
    let key = file("key.pem", certified.signing_key.serialize_pem());
    let port = free_port();
    let options = format!(
        "--tls-port {port} --tls-cert-file {cert} --tls-key-file {key} --tls-ca-cert-file {cert} \
         --tls-auth-clients no --requirepass secret"
    );
    let _server = Server::with(&options.split(' ').collect::<Vec<_>>());
    let url = format!("rediss://:secret@localhost:{port}");
    let certificates =
        TlsCertificates { client_tls: None, root_cert: Some(certificate.into_bytes()) };
    let client = Client::build_with_tls(url.clone(), certificates.clone()).unwrap();
    let plan = plan_for(1000);
    let node = SingleNode::of_client(client, patience());
    let filter = RedisFilter::create(node, "f", &plan).unwrap();
    assert_eq!((filter.insert("a"), filter.contains("a")), (Ok(true), Ok(true)));

    let unknown = RedisFilter::open(SingleNode::new(&url, patience()).unwrap(), "f");
    assert!(matches!(unknown, Err(RedisOpenError::Redis(_))));
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        use tamis_redis::{AsyncRedisFilter, AsyncSingleNode};
        let client = Client::build_with_tls(url, certificates).unwrap();
        let node = AsyncSingleNode::of_client(client, patience());
        let filter = AsyncRedisFilter::open(node, "f").await.unwrap();
        assert_eq!(filter.contains("a").await, Ok(true));
    });
    let _ = std::fs::remove_dir_all(&directory);
}
