//! Installs the npm packages in an empty folder, and runs `npx tamis`.

use std::path::Path;
use std::process::Command;

use crate::package::version::Release;
use crate::steps::Steps;
use crate::tools::{Outcome, empty_folder, entries_with, root};

/// Installs the packages without a registry, and runs the program.
pub fn check(steps: &Steps, release: &Release, packages: &Path) -> Outcome {
    let folder = root().join("target/package/npm");
    empty_folder(&folder)?;
    let files = entries_with(packages, "tgz")?;
    let npm = |program: &str, words: &[&str]| {
        let mut npm = Command::new(program);
        npm.args(words).current_dir(&folder).env("npm_config_offline", "true");
        npm.env("npm_config_update_notifier", "false");
        npm
    };
    steps.check("npm: installation", || {
        steps.finish_quietly(&mut npm("npm", &["init", "--yes"]))?;
        let mut install = npm("npm", &["install", "--no-audit", "--no-fund"]);
        steps.finish_quietly(install.args(&files)).map(drop)
    })?;
    let script = "[ \"$(npx tamis --version)\" = \"tamis $0\" ] && printf 'a\\nb\\na\\n' | npx tamis --quiet dedup | \
        cmp - expected && { npx tamis check none < expected; [ $? = 2 ]; }";
    std::fs::write(folder.join("expected"), "a\nb\n").map_err(|error| error.to_string())?;
    steps.run("npm: npx tamis", &mut npm("sh", &["-c", script, &release.version]))
}
