//! A cluster of three masters for a test.

use std::process::Command;

use tamis_testing::{CommandExt as _, wait_until};

use super::{Server, ask};

pub struct Cluster {
    pub servers: Vec<Server>,
}

fn redis_cli(arguments: &[&str]) -> String {
    let output = Command::new("redis-cli").args(arguments).run();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Cluster {
    pub fn start() -> Self {
        // A node that answers late on a busy machine is not taken for a dead one.
        let options = "--cluster-enabled yes --cluster-node-timeout 20000 \
                       --cluster-require-full-coverage no";
        let options: Vec<&str> = options.split(' ').collect();
        let servers: Vec<_> = (0..3).map(|_| Server::with(&options)).collect();
        let nodes: Vec<String> = servers.iter().map(|s| format!("127.0.0.1:{}", s.port)).collect();
        let mut arguments = vec!["--cluster", "create"];
        arguments.extend(nodes.iter().map(String::as_str));
        arguments.push("--cluster-yes");
        let output = redis_cli(&arguments);
        assert!(output.contains("All 16384 slots covered"), "{output}");
        let cluster = Self { servers };
        for server in &cluster.servers {
            let mut redis = server.connection();
            wait_until("the cluster starts", || {
                ask::<String>(&mut redis, &["CLUSTER", "INFO"]).contains("cluster_state:ok")
            });
        }
        cluster
    }

    /// Moves slots from the first node to the second one.
    pub fn move_slots(&self, count: u32) {
        let id = |i: usize| ask::<String>(&mut self.servers[i].connection(), &["CLUSTER", "MYID"]);
        let arguments = format!(
            "--cluster reshard 127.0.0.1:{} --cluster-from {} --cluster-to {} \
             --cluster-slots {count} --cluster-yes",
            self.servers[0].port,
            id(0),
            id(1)
        );
        let output = redis_cli(&arguments.split(' ').collect::<Vec<_>>());
        assert!(output.contains("Moving slot"), "{output}");
    }
}
