//! Tests the guard's sources with real databases: Debian's MariaDB and PostgreSQL.
//!
//! If a database is not installed, the task skips the tests of this database.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::Steps;
use crate::test_programs::TestProgram;
use crate::tools::{Outcome, root};

/// The name of a database, the test program for this database, and a function that tests whether the database is
/// installed.
type Database = (&'static str, &'static str, fn() -> bool);

const DATABASES: [Database; 2] =
    [("MariaDB", "mysql", has_mariadb), ("PostgreSQL", "postgres", has_postgres)];

/// Runs the tests that need databases.
pub fn test(steps: &Steps, programs: &[TestProgram]) -> Outcome {
    let mut modules = Vec::new();
    for (name, target, is_installed) in DATABASES {
        if !is_installed() {
            steps.skip(&format!("ids in {name}"), &format!("{name} could not be installed"));
            continue;
        }
        if target == "mysql"
            && let Err(why) = unpack_mariadb_plugins()
        {
            println!("users with ed25519 and PAM will not be tried: {why}");
        }
        for program in programs.iter().filter(|program| program.is(target)) {
            program.run(steps, &[])?;
        }
        modules.push(target);
    }
    if modules.is_empty() {
        return Ok(());
    }
    // In the program `guard_on_databases`, the module of a database has the same name as the test program of this
    // database. One call runs all modules, because these tests mostly wait.
    for program in programs.iter().filter(|program| program.is("guard_on_databases")) {
        program.run(steps, &modules)?;
    }
    Ok(())
}

/// Tests whether MariaDB is installed. Setup installs `mariadb-server-core`, because the package `mariadb-server` would
/// start a service.
pub fn has_mariadb() -> bool {
    Path::new("/usr/sbin/mariadbd").exists()
}

/// Unpacks the plugins of the package `mariadb-server` without installing the package.
fn unpack_mariadb_plugins() -> Outcome {
    let folder = root().join("target/mariadb-plugins");
    if folder.join("usr/lib/mysql/plugin/auth_ed25519.so").exists() {
        return Ok(());
    }
    let created = fs::create_dir_all(&folder);
    created.map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let commands = "apt-get -qq download mariadb-server && dpkg -x mariadb-server_*.deb .";
    let status = Command::new("sh").args(["-c", commands]).current_dir(&folder).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err("apt-get could not download mariadb-server".to_owned()),
    }
}

/// Tests whether a version of PostgreSQL is installed. Debian installs each version in a separate folder.
pub fn has_postgres() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin/initdb")).any(|path: PathBuf| path.exists())
}

/// Writes a setting for Debian's PostgreSQL package. Without this setting, the package would create a database and
/// start a service.
pub fn forbid_cluster() -> Outcome {
    let folder = Path::new("/etc/postgresql-common");
    let settings = folder.join("createcluster.conf");
    if settings.exists() {
        return Ok(());
    }
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&settings, "create_main_cluster = false\n"));
    written.map_err(|error| format!("cannot write {}: {error}", settings.display()))
}
