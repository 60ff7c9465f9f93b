//! Writes the image `tamis-docs`: the documentation site, and Debian's busybox as the web server.

use std::path::Path;
use std::process::Command;

use crate::package::image::oci::Image;
use crate::package::image::unpack;
use crate::package::version::Release;
use crate::steps::Steps;
use crate::tools::{Outcome, copy_file, write_file};

/// The configuration of busybox: the types of files that busybox does not know.
const TYPES: &str = "\
.js:text/javascript
.json:application/json
.svg:image/svg+xml
.txt:text/plain; charset=utf-8
";

/// Writes the image to the folder `to`. `site` is the folder with the built site, and `busybox` is the folder with the
/// Debian package `busybox-static`.
///
/// # Errors
///
/// Returns the output of a command that failed.
pub fn write(
    steps: &Steps,
    release: &Release,
    site: &Path,
    busybox: &Path,
    work: &Path,
    to: &Path,
) -> Outcome {
    let (files, unpacked) = (work.join("image-docs"), work.join("image-busybox"));
    unpack(steps, busybox, &unpacked)?;
    copy_file(&unpacked.join("bin/busybox"), &files.join("bin/busybox"))?;
    let copyright = "usr/share/doc/busybox-static/copyright";
    copy_file(&unpacked.join(copyright), &files.join(copyright))?;
    let mut copy = Command::new("cp");
    steps.finish_quietly(copy.arg("--recursive").arg(site).arg(files.join("site")))?;
    write_file(&files.join("etc/httpd.conf"), TYPES)?;
    let image = Image {
        name: "tamis-docs",
        entrypoint: &["/bin/busybox", "httpd", "-f", "-p", "8000", "-h", "/site"],
        command: &[],
        settings: &[("env", "PATH=/bin"), ("exposedports", "8000/tcp")],
    };
    image.write(steps, release, &files, work, to)
}
