//! Runs the container images with the runtime `runc`.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::package::image::USER;
use crate::package::packager::Packager;
use crate::steps::Steps;
use crate::tools::{Outcome, debian_architecture, empty_folder, read_file, root, write_file};

/// The largest size of an image, in bytes.
const MAX_BYTES: u64 = 40_000_000;

/// Unpacks the images and runs their programs. The program `tamis` runs as the user of the image, and as any user. All
/// file systems are read-only, except the volume.
pub fn check(steps: &Steps, packager: &Packager, folder: &Path) -> Outcome {
    let version = &packager.release.version;
    let bundle = Bundle::unpack(steps, folder, "tamis", version)?;
    let user = json!({"uid": USER, "gid": USER});
    steps.check("image: the program", || {
        bundle.configure(&user, Some(&["/usr/bin/tamis", "--version"]))?;
        let output = bundle.run(steps, "run")?;
        if output == format!("tamis {version}\n") { Ok(()) } else { Err(output) }
    })?;
    // The platform OpenShift runs containers as a user without a name, with the group 0.
    let any_user = json!({"uid": 1_234_560_000_u32, "gid": 0});
    for (name, user) in [("the user of the image", &user), ("any user", &any_user)] {
        steps.check(&format!("image: serve as {name}"), || {
            bundle.configure(user, Some(&["/usr/bin/tamis", "serve"]))?;
            bundle.run(steps, "serve").map(drop)
        })?;
    }
    let docs = Bundle::unpack(steps, folder, "tamis-docs", version)?;
    steps.check("image: the documentation", || {
        docs.configure(&user, None)?;
        docs.run(steps, "docs").map(drop)
    })
}

/// An unpacked image: the root file system and the configuration of a container.
struct Bundle {
    folder: PathBuf,
    /// The configuration that umoci derived from the image.
    config: Value,
}

impl Bundle {
    /// Unpacks the image `name` from its archive in a folder.
    fn unpack(steps: &Steps, folder: &Path, name: &str, version: &str) -> Result<Self, String> {
        let archive = folder.join(format!("{name}-{version}-image-{}.tar", debian_architecture()));
        let bytes = std::fs::metadata(&archive).map_err(|error| error.to_string())?.len();
        if bytes > MAX_BYTES {
            return Err(format!(
                "{} has {bytes} bytes, the limit is {MAX_BYTES}",
                archive.display()
            ));
        }
        let work = root().join("target/package/container").join(name);
        let (layout, bundle) = (work.join("layout"), work.join("bundle"));
        empty_folder(&work)?;
        empty_folder(&layout)?;
        let mut tar = Command::new("tar");
        steps.finish_quietly(tar.arg("-xf").arg(archive).arg("-C").arg(&layout))?;
        let mut umoci = Command::new("umoci");
        umoci.args(["unpack", "--image", &format!("{}:{version}", layout.display())]).arg(&bundle);
        steps.finish_quietly(&mut umoci)?;
        let text = read_file(&bundle.join("config.json"))?;
        let config = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        Ok(Self { folder: bundle, config })
    }

    /// Runs the container in a separate network, as a test of `tests/packages/container.sh`. Returns the output.
    fn run(&self, steps: &Steps, test: &str) -> Result<String, String> {
        let mut run = Command::new("unshare");
        run.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh"]);
        run.arg(root().join("tests/packages/container.sh")).arg(test).arg(&self.folder);
        steps.finish_quietly(&mut run)
    }

    /// Writes the configuration: the user, a read-only file system, and a volume for the data. Without `command`, the
    /// command of the image stays.
    fn configure(&self, user: &Value, command: Option<&[&str]>) -> Outcome {
        let mut config = self.config.clone();
        if let Some(words) = command {
            config["process"]["args"] = json!(words);
        }
        config["process"]["user"] = user.clone();
        config["process"]["terminal"] = json!(false);
        config["root"]["readonly"] = json!(true);
        let namespaces = config["linux"]["namespaces"].as_array_mut();
        let namespaces = namespaces.ok_or("config.json has no namespaces")?;
        // The test already runs in a separate network.
        namespaces.retain(|it| it["type"] != "network" && it["type"] != "cgroup");
        // The volume has the owner and the mode of the folder in the image.
        let data = self.folder.with_file_name("data");
        empty_folder(&data)?;
        let owned = chown(&data, Some(USER), Some(0))
            .and_then(|()| std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o770)));
        owned.map_err(|error| format!("{}: {error}", data.display()))?;
        let mounts = config["mounts"].as_array_mut().ok_or("config.json has no mounts")?;
        mounts.retain(|mount| mount["destination"] != "/var/lib/tamis");
        mounts.push(json!({
            "destination": "/var/lib/tamis", "type": "bind", "source": data,
            "options": ["rbind", "rw", "nosuid", "nodev"],
        }));
        let text = serde_json::to_string(&config).map_err(|error| error.to_string())?;
        write_file(&self.folder.join("config.json"), text)
    }
}
