//! Tests whether the binary log of a server contains the changes of a database.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error};

use crate::kinds::mysql::cluster::is_galera;
use crate::kinds::mysql::replica::Replica;

/// Tests whether the server is a replica that does not log the changes of its primary. If the replica does not log the
/// changes, returns a message with the setting that enables the log.
pub(super) async fn unlogged_updates(connection: &mut Conn) -> Result<Option<String>, Error> {
    // MySQL 8.0.26 has renamed the variable `log_slave_updates`.
    let sql = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
        ('log_slave_updates', 'log_replica_updates')";
    let settings: Vec<(String, String)> = connection.query(sql).await?;
    let Some((name, _)) = settings.iter().find(|it| it.1.eq_ignore_ascii_case("OFF")) else {
        return Ok(None);
    };
    Ok(Replica::default().is_replica(connection).await?.then(|| {
        format!(
            "the server is a replica and {name} is OFF, so its binary log has no changes of its \
             primary; add to its configuration and restart it: {name} = ON (or connect to the \
             primary)"
        )
    }))
}

/// The query for the settings that [`unlogged_writers`] tests.
pub(super) const WRITERS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', \
    'wsrep_cluster_address', 'log_slave_updates', 'log_replica_updates', 'daemon_memcached_enable_binlog', \
    'innodb_api_enable_binlog')";

/// Returns the reason why a server has rows that are not in its log. The reason is a Galera cluster, whose other nodes
/// write rows, or the memcached plugin of MySQL.
pub(super) fn unlogged_writers(settings: &[(String, String)]) -> Option<String> {
    let value = |name: &str| {
        let setting = settings.iter().find(|it| it.0.eq_ignore_ascii_case(name));
        setting.map(|it| it.1.to_ascii_lowercase())
    };
    let is_off = |name: &str| value(name).is_some_and(|value| ["off", "0"].contains(&&*value));
    if is_galera(settings) && ["log_slave_updates", "log_replica_updates"].into_iter().any(is_off) {
        return Some(
            "the server is a node of a Galera cluster and log_slave_updates is OFF, so its binary log has no changes \
             of the other nodes; add to its configuration and restart it: log_slave_updates = ON"
                .to_owned(),
        );
    }
    // The variable `daemon_memcached_enable_binlog` exists only while the memcached plugin is loaded.
    let is_memcached = value("daemon_memcached_enable_binlog").is_some();
    (is_memcached && is_off("innodb_api_enable_binlog")).then(|| {
        "the plugin daemon_memcached writes rows that are not in the binary log; add to the configuration of the \
         server and restart it: innodb_api_enable_binlog = ON"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_beside_the_log_are_found_by_the_settings() {
        let unlogged = |settings: &[(&str, &str)]| {
            let owned = settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
            unlogged_writers(&owned.collect::<Vec<_>>())
        };
        let galera = [("wsrep_on", "ON"), ("wsrep_cluster_address", "gcomm://a,b")];
        let node = |updates| [&galera[..], &[("log_slave_updates", updates)]].concat();
        assert!(unlogged(&node("OFF")).unwrap().contains("Galera"));
        assert_eq!(unlogged(&node("ON")), None);
        // Percona XtraDB Cluster has no global `wsrep_on`.
        let percona = [galera[1], ("log_replica_updates", "OFF")];
        assert!(unlogged(&percona).unwrap().contains("Galera"));
        assert_eq!(unlogged(&[("wsrep_on", "OFF"), ("log_slave_updates", "OFF")]), None);
        let memcached = ("daemon_memcached_enable_binlog", "OFF");
        assert!(unlogged(&[memcached, ("innodb_api_enable_binlog", "OFF")]).is_some());
        assert_eq!(unlogged(&[memcached, ("innodb_api_enable_binlog", "ON")]), None);
        assert_eq!(unlogged(&[("innodb_api_enable_binlog", "OFF")]), None);
    }
}
