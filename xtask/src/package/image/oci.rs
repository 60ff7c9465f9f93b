//! Writes the OCI layout of an image with umoci.

use std::path::Path;
use std::process::Command;

use crate::package::version::Release;
use crate::package::{tarball, tree};
use crate::steps::Steps;
use crate::tools::{Outcome, debian_architecture};

/// The user and the group of the programs in all images.
pub const USER: u32 = 10001;

/// The configuration of an image.
pub struct Image<'a> {
    pub name: &'a str,
    /// The program that always runs, and its first arguments.
    pub entrypoint: &'a [&'a str],
    /// The arguments that the user may replace.
    pub command: &'a [&'a str],
    /// Other settings of the option `--config.NAME` of umoci.
    pub settings: &'a [(&'a str, &'a str)],
}

impl Image<'_> {
    /// Writes the image with the files of a folder to a tar file in the folder `to`.
    ///
    /// # Errors
    ///
    /// Returns the output of a command that failed.
    pub fn write(
        &self,
        steps: &Steps,
        release: &Release,
        files: &Path,
        work: &Path,
        to: &Path,
    ) -> Outcome {
        tree::set_dates(steps, release, files)?;
        let layout = work.join(format!("{}-layout", self.name));
        let image = format!("{}:{}", layout.display(), release.version);
        let umoci = |words: &[&str], more: &[String]| {
            let mut umoci = Command::new("umoci");
            release.configure(&mut umoci);
            steps.finish_quietly(umoci.args(words).args(more)).map(drop)
        };
        umoci(&["init", "--layout", &layout.display().to_string()], &[])?;
        umoci(&["new", "--image", &image], &[])?;
        let (date, source) = (release.date(), files.display().to_string());
        umoci(&["insert", "--image", &image, "--history.created", &date, &source, "/"], &[])?;
        let words = ["config", "--image", &image, "--no-history", "--created", &date];
        umoci(&words, &self.options(release))?;
        umoci(&["gc", "--layout", &layout.display().to_string()], &[])?;
        let file = format!("{}-{}-image-{}.tar", self.name, release.version, debian_architecture());
        tarball::tar(
            steps,
            release,
            &layout,
            &["blobs", "index.json", "oci-layout"],
            &to.join(file),
        )
    }

    /// Returns the options of `umoci config`.
    fn options(&self, release: &Release) -> Vec<String> {
        let mut options =
            vec!["--os=linux".to_owned(), format!("--architecture={}", debian_architecture())];
        let mut set = |name: &str, value: &str| options.push(format!("--config.{name}={value}"));
        set("user", &format!("{USER}:{USER}"));
        self.entrypoint.iter().for_each(|word| set("entrypoint", word));
        self.command.iter().for_each(|word| set("cmd", word));
        self.settings.iter().for_each(|(name, value)| set(name, value));
        for (name, value) in
            [("title", self.name), ("version", &release.version), ("licenses", "MIT OR Apache-2.0")]
        {
            set("label", &format!("org.opencontainers.image.{name}={value}"));
        }
        options
    }
}
