//! Writes the image `tamis`: the program, the module, and the parts of Debian that the program needs, which are glibc and
//! the certificates of public authorities. The image has no shell.

use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::Command;

use crate::package::image::oci::{Image, USER};
use crate::package::image::unpack;
use crate::package::version::Release;
use crate::steps::Steps;
use crate::tools::{Outcome, copy_file, empty_folder, entries, read_file, write_file};

/// The libraries of `libc6` in the image. The loader has the name of the CPU.
const LIBRARIES: [&str; 8] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libresolv.so.2",
    "libnss_dns.so.2",
    "libnss_files.so.2",
];

/// Writes the image to the folder `to`. `tree` is the tree of the tar file, and `debian` is the folder with Debian packages.
///
/// # Errors
///
/// Returns the file that cannot be written, or the output of a command that failed.
pub fn write(
    steps: &Steps,
    release: &Release,
    tree: &Path,
    debian: &Path,
    work: &Path,
    to: &Path,
) -> Outcome {
    let files = work.join("image-tamis");
    debian_files(steps, debian, &work.join("image-debian"), &files)?;
    accounts(&files)?;
    copy_file(&tree.join("bin/tamis"), &files.join("usr/bin/tamis"))?;
    copy_file(&tree.join("lib/libtamis.so"), &files.join("usr/lib/tamis/libtamis.so"))?;
    for name in ["licenses.txt.gz", "sbom.cdx.json"] {
        let from = tree.join("share/doc/tamis").join(name);
        copy_file(&from, &files.join("usr/share/doc/tamis").join(name))?;
    }
    for folder in ["etc/tamis", "var/lib/tamis", "tmp"] {
        empty_folder(&files.join(folder))?;
    }
    let data = files.join("var/lib/tamis");
    let fail = |error: std::io::Error| format!("{}: {error}", data.display());
    // Any user of the group 0 can write the data: the platform OpenShift runs containers as users without a name.
    chown(&data, Some(USER), Some(0)).map_err(fail)?;
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(fail)
    };
    mode(&data, 0o770)?;
    mode(&files.join("tmp"), 0o1777)?;
    let image = Image {
        name: "tamis",
        entrypoint: &["/usr/bin/tamis"],
        command: &["--help"],
        settings: &[
            ("env", "PATH=/usr/bin"),
            ("env", "TAMIS_DIR=/var/lib/tamis"),
            ("env", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"),
            ("volume", "/var/lib/tamis"),
            ("workingdir", "/var/lib/tamis"),
            ("exposedports", "6379/tcp"),
            ("exposedports", "8379/tcp"),
            ("exposedports", "8080/tcp"),
            ("exposedports", "9091/tcp"),
        ],
    };
    image.write(steps, release, &files, work, to)
}

/// Writes the files of Debian: the libraries, the certificates, and the versions and copyrights of the packages.
fn debian_files(steps: &Steps, debian: &Path, unpacked: &Path, files: &Path) -> Outcome {
    empty_folder(unpacked)?;
    unpack(steps, debian, unpacked)?;
    for package in entries(debian)? {
        let mut field = Command::new("dpkg-deb");
        let control = steps.finish_quietly(field.arg("--field").arg(&package))?;
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.split('_').next().unwrap_or_default();
        // Scanners find the versions of the packages in this folder.
        write_file(&files.join("var/lib/dpkg/status.d").join(name), control)?;
        let copyright = Path::new("usr/share/doc").join(name).join("copyright");
        copy_file(&unpacked.join(&copyright), &files.join(&copyright))?;
    }
    copy_file(&unpacked.join("usr/lib/os-release"), &files.join("etc/os-release"))?;
    libraries(unpacked, files)?;
    certificates(unpacked, files)
}

/// Writes glibc and its loader.
fn libraries(unpacked: &Path, files: &Path) -> Outcome {
    let cpu = std::env::consts::ARCH;
    let libraries = format!("usr/lib/{cpu}-linux-gnu");
    let loader = if cpu == "aarch64" { "ld-linux-aarch64.so.1" } else { "ld-linux-x86-64.so.2" };
    for name in LIBRARIES.into_iter().chain([loader]) {
        let from = unpacked.join(format!("lib/{cpu}-linux-gnu")).join(name);
        copy_file(&from, &files.join(&libraries).join(name))?;
    }
    let link =
        |to: &str, at: &str| symlink(to, files.join(at)).map_err(|error| format!("{at}: {error}"));
    link("usr/lib", "lib")?;
    if cpu == "x86_64" {
        copy_file(
            &unpacked.join("lib/x86_64-linux-gnu").join(loader),
            &files.join("usr/lib64").join(loader),
        )?;
        link("usr/lib64", "lib64")?;
    } else {
        link(&format!("{cpu}-linux-gnu/{loader}"), &format!("usr/lib/{loader}"))?;
    }
    Ok(())
}

/// Writes the certificates of public authorities to one file.
fn certificates(unpacked: &Path, files: &Path) -> Outcome {
    let mut certificates = Vec::new();
    for path in entries(&unpacked.join("usr/share/ca-certificates/mozilla"))? {
        certificates.extend(read_file(&path)?);
    }
    write_file(&files.join("etc/ssl/certs/ca-certificates.crt"), certificates)
}

/// Writes the accounts and the order of name lookups.
fn accounts(files: &Path) -> Outcome {
    write_file(&files.join("etc/nsswitch.conf"), "hosts: files dns\n")?;
    let passwd = format!(
        "root:x:0:0:root:/:/sbin/nologin\ntamis:x:{USER}:{USER}:Tamis:/var/lib/tamis:/sbin/nologin\n"
    );
    write_file(&files.join("etc/passwd"), passwd)?;
    write_file(&files.join("etc/group"), format!("root:x:0:\ntamis:x:{USER}:\n"))
}
