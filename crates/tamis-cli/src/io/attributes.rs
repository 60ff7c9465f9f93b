//! Copies the attributes of a replaced file to the new file, as far as the system permits. The
//! attributes are the owner, group, permissions, access control list and other extended attributes.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Gives `new` the attributes of the file at `path`, whose metadata are `old`. If the system
/// refuses the owner, the group or the access control list, `new` grants fewer permissions than the
/// old file.
///
/// # Errors
///
/// The error of the system if the permissions cannot be set.
#[cfg(unix)]
pub fn keep(path: &Path, old: &Metadata, new: &File) -> io::Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let mut mode = old.mode() & 0o7777;
    let now = new.metadata()?;
    let is_owner_kept = old.uid() == now.uid() || fchown(new, Some(old.uid()), None).is_ok();
    let is_group_kept = old.gid() == now.gid() || fchown(new, None, Some(old.gid())).is_ok();
    if !is_owner_kept || !is_group_kept {
        // The set-user-id and set-group-id bits apply only to the owner and the group of the old
        // file.
        mode &= !0o6000;
    }
    if !is_group_kept {
        mode &= !0o070 | (mode & 0o007) << 3;
    }
    new.set_permissions(Permissions::from_mode(mode))?;
    if !extended::copy(path, new) {
        // With an access control list, the group bits of the mode are the mask of the list. The
        // mask limits the permissions of the entries.
        new.set_permissions(Permissions::from_mode(mode & !0o070))?;
    }
    Ok(())
}

/// Copies only the permissions. On Unix, the function of the same name copies all attributes.
///
/// # Errors
///
/// The error of the system if the permissions cannot be set.
#[cfg(not(unix))]
pub fn keep(_: &Path, old: &Metadata, new: &File) -> io::Result<()> {
    new.set_permissions(old.permissions())
}

#[cfg(target_os = "linux")]
mod extended {
    use std::fs::File;
    use std::path::Path;

    use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr, listxattr};

    /// Name of the attribute that stores the access control list.
    const ACCESS: &str = "system.posix_acl_access";

    /// The maximum size of a list of names, or of a value, in bytes. The operating system sets the
    /// maximum size.
    const MOST_BYTES: usize = 64 << 10;

    /// Copies the extended attributes of the file at `path`. Returns false if the file has an
    /// access control list that could not be copied.
    pub fn copy(path: &Path, new: &File) -> bool {
        let mut names = vec![0_u8; MOST_BYTES];
        // A file system without attributes has nothing to copy.
        let Ok(len) = listxattr(path, &mut names) else { return true };
        let mut value = vec![0_u8; MOST_BYTES];
        let mut has_list = false;
        let mut is_list_copied = true;
        for name in names[..len].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            let copied = getxattr(path, name, &mut value)
                .and_then(|len| fsetxattr(new, name, &value[..len], XattrFlags::empty()));
            if name == ACCESS.as_bytes() {
                (has_list, is_list_copied) = (true, copied.is_ok());
            }
        }
        if !has_list {
            // The file `new` may have inherited a default access control list from its folder. Most
            // folders have no default access control list.
            _ = fremovexattr(new, ACCESS);
        }
        is_list_copied
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod extended {
    pub fn copy(_: &std::path::Path, _: &std::fs::File) -> bool {
        true
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    use rustix::fs::{XattrFlags, getxattr, setxattr};

    use super::keep;

    fn replace(path: &std::path::Path) {
        let new = path.with_extension("new");
        fs::write(&new, "new").unwrap();
        let file = fs::File::options().write(true).open(&new).unwrap();
        keep(path, &path.metadata().unwrap(), &file).unwrap();
        fs::rename(new, path).unwrap();
    }

    #[test]
    fn a_replaced_file_keeps_its_owner_and_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        // Only the superuser may change the owner of a file.
        let is_given = chown(&path, Some(1234), Some(4321)).is_ok();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path);
        let metadata = path.metadata().unwrap();
        assert_eq!(metadata.mode() & 0o7777, 0o640);
        if is_given {
            assert_eq!((metadata.uid(), metadata.gid()), (1234, 4321));
        }
    }

    #[test]
    fn a_replaced_file_keeps_its_access_control_list_and_attributes() {
        /// An access control list: version 2, and the tag, the permissions and the id of each
        /// entry. The entries are: owner rw, user 1234 r, group none, mask r, others none.
        const LIST: [u8; 44] = {
            let mut list = [0; 44];
            list[0] = 2;
            let entries: [(u8, u8, u32); 5] =
                [(1, 6, !0), (2, 4, 1234), (4, 0, !0), (16, 4, !0), (32, 0, !0)];
            let mut i = 0;
            while i < entries.len() {
                let (tag, allowed, id) = entries[i];
                let at = 4 + 8 * i;
                (list[at], list[at + 2]) = (tag, allowed);
                let id = id.to_le_bytes();
                (list[at + 4], list[at + 5], list[at + 6], list[at + 7]) =
                    (id[0], id[1], id[2], id[3]);
                i += 1;
            }
            list
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        let set = |name: &str, value: &[u8]| setxattr(&path, name, value, XattrFlags::empty());
        let (has_attributes, has_lists) =
            (set("user.origin", b"here").is_ok(), set("system.posix_acl_access", &LIST).is_ok());
        let before = path.metadata().unwrap().mode();
        replace(&path);
        let value = |name: &str| {
            let mut value = [0; 100];
            let len = getxattr(&path, name, &mut value).unwrap();
            value[..len].to_vec()
        };
        // Not every file system supports extended attributes.
        if has_attributes {
            assert_eq!(value("user.origin"), b"here");
        }
        if has_lists {
            assert_eq!(value("system.posix_acl_access"), LIST);
        }
        assert_eq!(path.metadata().unwrap().mode(), before);
    }
}
