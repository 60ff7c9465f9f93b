//! Handles clusters: another server may commit a row before this server shows the row.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error};
use tokio::time::sleep;

use crate::errors::source_error::SourceError;
use crate::kinds::mysql::explain::{explained, user};
use crate::kinds::mysql::options::MysqlOptions;

const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_cluster_address', \
    'group_replication_group_name', 'group_replication_single_primary_mode', 'innodb_read_only')";

/// The query for the state of this server in its group. The query also returns the numbers of members, unreachable
/// members and queued transactions.
const MEMBER: &str = "SELECT MEMBER_STATE, MEMBER_ROLE, \
    (SELECT COUNT(*) FROM performance_schema.replication_group_members), \
    (SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'UNREACHABLE'), \
    (SELECT MAX(COUNT_TRANSACTIONS_IN_QUEUE + COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE) \
    FROM performance_schema.replication_group_member_stats WHERE MEMBER_ID = @@server_uuid) \
    FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid";

/// The maximum number of queries for queued transactions. A busy primary has its own transactions in the queue for a
/// short time.
const QUESTIONS: usize = 50;

/// The time between two queries.
const PAUSE: Duration = Duration::from_millis(10);

/// The way in which a server shares its rows with other servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cluster {
    Alone,
    /// Each node commits transactions, and all other nodes apply each commit with a delay.
    Galera,
    /// A MySQL group in which one server commits transactions.
    Group,
}

/// Waits until the server shows all rows that any server of its cluster had committed before the call. Rejects a server
/// that cannot guarantee that it shows all committed rows.
pub(super) async fn catch_up(
    connection: &mut Conn,
    options: &MysqlOptions,
) -> Result<(), SourceError> {
    let broken = |error: Error| explained(&error, options);
    let settings: Vec<(String, String)> = connection.query(SETTINGS).await.map_err(broken)?;
    match cluster(&settings).map_err(SourceError::Preflight)? {
        Cluster::Alone => Ok(()),
        // With `wsrep_sync_wait`, a node delays a query until it has applied all commits of the cluster. A node without
        // a connection to the cluster rejects the query.
        Cluster::Galera => {
            connection.query_drop("SET SESSION wsrep_sync_wait = 1").await.map_err(broken)?;
            let wait = "SELECT COUNT(*) FROM information_schema.ENGINES";
            connection.query_drop(wait).await.map_err(broken)
        }
        Cluster::Group => {
            let mut waiting = waiting(connection, options).await?;
            for _ in 1..QUESTIONS {
                if waiting == Some(0) {
                    break;
                }
                sleep(PAUSE).await;
                waiting = self::waiting(connection, options).await?;
            }
            check_waiting(waiting)
        }
    }
}

/// Returns the number of transactions in the queue of the primary of a group. Rejects every member except the primary.
async fn waiting(
    connection: &mut Conn,
    options: &MysqlOptions,
) -> Result<Option<u64>, SourceError> {
    let member = connection.query_first::<(String, String, u64, u64, Option<u64>), _>(MEMBER).await;
    match member {
        Ok(Some((state, role, members, lost, waiting))) => {
            check_member(&state, &role, members, lost).map_err(SourceError::Preflight)?;
            Ok(waiting)
        }
        Ok(None) => Err(SourceError::Preflight(behind("has left its group"))),
        // The codes 1142 and 1143 mean that access to a table is denied. The code 1227 means that a privilege is
        // missing.
        Err(Error::Server(error)) if matches!(error.code, 1142 | 1143 | 1227) => {
            let user = user(options);
            Err(SourceError::Preflight(format!(
                "the server belongs to a group of MySQL, and the user {user} may not ask for its state; run: \
                 GRANT SELECT ON performance_schema.replication_group_members TO '{user}'@'%'; \
                 GRANT SELECT ON performance_schema.replication_group_member_stats TO '{user}'@'%'"
            )))
        }
        Err(error) => Err(explained(&error, options)),
    }
}

/// Returns an error while transactions are queued. A new primary may still have to apply transactions that the old
/// primary had committed.
fn check_waiting(waiting: Option<u64>) -> Result<(), SourceError> {
    let message = match waiting {
        Some(0) => return Ok(()),
        Some(waiting) => format!(
            "the server is the primary of its group, and {waiting} transactions of the group still wait for it"
        ),
        None => {
            "the primary of the group does not say how many transactions wait for it".to_owned()
        }
    };
    Err(SourceError::Connect(message))
}

/// Tests whether the settings belong to a node of a Galera cluster.
pub(super) fn is_galera(settings: &[(String, String)]) -> bool {
    let value = |name: &str| {
        let setting = settings.iter().find(|it| it.0.eq_ignore_ascii_case(name));
        setting.map(|it| it.1.to_ascii_lowercase())
    };
    // In Percona XtraDB Cluster, `wsrep_on` is only a session variable, so the global variables do not contain
    // `wsrep_on`.
    let is_off = value("wsrep_on").is_some_and(|value| ["off", "0"].contains(&&*value));
    !is_off && value("wsrep_cluster_address").is_some_and(|address| !address.is_empty())
}

/// Returns the kind of cluster from the settings of a server. Returns a message if the server is rejected.
fn cluster(settings: &[(String, String)]) -> Result<Cluster, String> {
    let value = |name: &str| {
        let setting = settings.iter().find(|it| it.0.eq_ignore_ascii_case(name));
        setting.map(|it| &*it.1).unwrap_or_default()
    };
    let is_on = |name: &str| ["on", "1"].iter().any(|on| value(name).eq_ignore_ascii_case(on));
    if is_on("innodb_read_only") {
        return Err("innodb_read_only is ON: another server writes the tables of this one, as for the readers of Amazon \
            Aurora, and the guard cannot know how far this one is behind; connect to the server that writes"
            .to_owned());
    }
    if is_galera(settings) {
        return Ok(Cluster::Galera);
    }
    if value("group_replication_group_name").is_empty() {
        return Ok(Cluster::Alone);
    }
    if !is_on("group_replication_single_primary_mode") {
        return Err("the server belongs to a group of MySQL in which several servers write \
            (group_replication_single_primary_mode is OFF), and the guard cannot know how far this one is behind; let \
            one server write, and connect to it"
            .to_owned());
    }
    Ok(Cluster::Group)
}

/// Rejects a member of a group that may show stale rows.
fn check_member(state: &str, role: &str, members: u64, lost: u64) -> Result<(), String> {
    if state != "ONLINE" {
        return Err(behind(&format!("is {state} in its group")));
    }
    if role != "PRIMARY" {
        return Err(behind(&format!("is a {role} of its group")));
    }
    // If half of the members are unreachable, another partition of the group may have its own primary.
    if 2 * lost >= members {
        return Err(behind(&format!(
            "does not reach {lost} of the {members} members of its group"
        )));
    }
    Ok(())
}

fn behind(why: &str) -> String {
    format!(
        "the server {why}, and the guard cannot know how far it is behind; connect to the primary of the group, or \
         remove group_replication_group_name from the configuration if the server has left the group for ever"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(settings: &[(&str, &str)]) -> Result<Cluster, String> {
        let owned = settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        cluster(&owned.collect::<Vec<_>>())
    }

    #[test]
    fn servers_that_other_servers_write_are_found_by_the_settings() {
        let group = ("group_replication_group_name", "3e11fa47-71ca-11e1-9e33-c80aa9429562");
        let single = |value| ("group_replication_single_primary_mode", value);
        assert_eq!(of(&[]), Ok(Cluster::Alone));
        assert_eq!(of(&[("group_replication_group_name", ""), single("ON")]), Ok(Cluster::Alone));
        assert_eq!(of(&[group, single("ON")]), Ok(Cluster::Group));
        assert!(of(&[group, single("OFF")]).unwrap_err().contains("several servers write"));
        let address = ("wsrep_cluster_address", "gcomm://a,b");
        assert_eq!(of(&[("wsrep_on", "ON"), address]), Ok(Cluster::Galera));
        // Percona XtraDB Cluster has no global `wsrep_on`.
        assert_eq!(of(&[address]), Ok(Cluster::Galera));
        assert_eq!(of(&[("wsrep_cluster_address", "")]), Ok(Cluster::Alone));
        assert_eq!(of(&[("wsrep_on", "OFF"), address]), Ok(Cluster::Alone));
        assert_eq!(of(&[("wsrep_on", "ON"), ("wsrep_cluster_address", "")]), Ok(Cluster::Alone));
        assert_eq!(of(&[("innodb_read_only", "OFF")]), Ok(Cluster::Alone));
        assert!(of(&[("innodb_read_only", "ON")]).unwrap_err().contains("Aurora"));
    }

    #[test]
    fn a_primary_that_still_applies_transactions_is_asked_again_later() {
        assert!(check_waiting(Some(0)).is_ok());
        for waiting in [Some(1), Some(u64::MAX), None] {
            let error = check_waiting(waiting).unwrap_err();
            assert!(matches!(error, SourceError::Connect(_)), "{error}");
        }
    }

    #[test]
    fn only_a_primary_that_reaches_most_of_its_group_is_fresh() {
        assert_eq!(check_member("ONLINE", "PRIMARY", 3, 1), Ok(()));
        for (state, role, members, lost, why) in [
            ("ONLINE", "SECONDARY", 3, 0, "is a SECONDARY of its group"),
            ("RECOVERING", "SECONDARY", 3, 0, "is RECOVERING"),
            ("OFFLINE", "", 1, 0, "is OFFLINE"),
            ("ONLINE", "PRIMARY", 3, 2, "does not reach 2 of the 3"),
            ("ONLINE", "PRIMARY", 2, 1, "does not reach 1 of the 2"),
        ] {
            let error = check_member(state, role, members, lost).unwrap_err();
            assert!(error.contains(why) && error.contains("connect to the primary"), "{error}");
        }
    }
}
