//! Tests the guard's sources with real databases: MariaDB and PostgreSQL of Debian.
//!
//! If one cannot be installed, the task prints a message and skips its tests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::setup::debian_package;
use crate::steps::Steps;
use crate::test;

/// A database: its name, the test that needs it, and what installs it.
type Database = (&'static str, &'static str, fn() -> Outcome);

const DATABASES: [Database; 2] =
    [("MariaDB", "mysql", mariadb), ("PostgreSQL", "postgres", postgres)];

/// Installs what can be installed.
pub fn install() {
    for (name, _, installed) in DATABASES {
        if let Err(why) = installed() {
            println!("ids in {name} will not be tried: {why}");
        }
    }
}

/// Runs the tests that need databases.
pub fn test(steps: &mut Steps) -> Outcome {
    let mut modules = Vec::new();
    for (name, program, installed) in DATABASES {
        let step = format!("ids in {name}");
        if let Err(why) = installed() {
            steps.skip(&step, &why);
            continue;
        }
        steps.run(&step, &mut test::tests(&["--test", program]))?;
        modules.push(program);
    }
    if modules.is_empty() {
        return Ok(());
    }
    // The module of a database has the name of its program. All run at once, because they mostly wait.
    let mut guard = test::tests(&["--test", "guard_on_databases", "--"]);
    steps.run("the guard in front of databases", guard.args(modules))
}

fn mariadb() -> Outcome {
    // Only the program: the package `mariadb-server` would start a service.
    if Path::new("/usr/sbin/mariadbd").exists() {
        return Ok(());
    }
    debian_package("mariadb-server-core")
}

fn postgres() -> Outcome {
    if has_postgres() {
        return Ok(());
    }
    // The package would create a database and start a service for it, unless this file forbids it.
    let folder = Path::new("/etc/postgresql-common");
    let settings = folder.join("createcluster.conf");
    if !settings.exists() {
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::write(&settings, "create_main_cluster = false\n"));
        written.map_err(|error| format!("cannot write {}: {error}", settings.display()))?;
    }
    debian_package("postgresql")
}

/// Tests whether a version of the server is installed. Debian has each in a folder of its own.
fn has_postgres() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin/initdb")).any(|path: PathBuf| path.exists())
}
