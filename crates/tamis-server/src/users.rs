//! Users, their passwords and their permissions.
//!
//! ```text
//! argv ──▶ row of the table ──▶ permission check ──▶ handler
//!                               one bit per command, patterns of keys
//! ```
//!
//! A connection keeps a reference to its user. The connection looks up its user again only when the
//! version of the user list has changed. For a user with all permissions, a check reads two flags
//! per command. For a user without all permissions, a check reads one bit and matches the keys with
//! the patterns.

mod acl_log;
mod file;
mod password;
mod permissions;
mod user;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use tamis_commands::text::{acl, server};
use tamis_commands::{Argv, allocation_bytes};
use tamis_resp::Reply;

use crate::config::Config;

pub(crate) use acl_log::{AclLog, AclLogEntry};
pub use file::UsersError;
pub(crate) use permissions::{Denied, Permissions, category_named};
pub(crate) use user::{DEFAULT, User};

/// All users. The default user always exists.
#[derive(Debug)]
pub(crate) struct Users {
    all: RwLock<BTreeMap<Vec<u8>, Arc<User>>>,
    /// A number that is incremented after each change of a user.
    version: AtomicU64,
    last_number: AtomicU64,
    /// The memory of all users, in bytes. The number changes only under the lock of `all`.
    heap_bytes: AtomicU64,
    /// True if the server listens on a network address, so that the default user must have a
    /// password or be disabled.
    requires_password: bool,
    pub log: AclLog,
}

impl Users {
    /// Creates the users at the start of a server.
    ///
    /// # Errors
    ///
    /// [`UsersError`] if the ACL file cannot be used.
    pub fn open(config: &Config) -> Result<Self, UsersError> {
        let users = Self {
            all: RwLock::default(),
            version: AtomicU64::new(0),
            last_number: AtomicU64::new(0),
            heap_bytes: AtomicU64::new(0),
            requires_password: config.network_address().is_some(),
            log: AclLog::default(),
        };
        let default = User::default_with(users.next_number(), &config.password);
        users.all.write().insert(DEFAULT.to_vec(), Arc::new(default));
        if let Some(path) = &config.users_file {
            let read = file::read(path, || users.next_number())?;
            let read = read.into_iter().map(|user| (user.name.clone(), Arc::new(user)));
            users.all.write().extend(read);
        }
        users.count_all(&users.all.read());
        Ok(users)
    }

    fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the memory of all users, in bytes.
    pub fn heap_bytes(&self) -> u64 {
        self.heap_bytes.load(Ordering::Relaxed)
    }

    fn count_all(&self, all: &BTreeMap<Vec<u8>, Arc<User>>) {
        let bytes = all.values().map(|user| entry_bytes(user)).sum();
        self.heap_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Updates the memory count when the user `after` replaces the user `before`.
    fn count(&self, before: Option<&User>, after: Option<&User>) {
        self.heap_bytes.fetch_add(after.map_or(0, entry_bytes), Ordering::Relaxed);
        self.heap_bytes.fetch_sub(before.map_or(0, entry_bytes), Ordering::Relaxed);
    }

    /// Returns a number that changes whenever a user changes.
    pub fn version(&self) -> u64 {
        // With `Acquire`, a thread that reads a version sees the users of that version or of a
        // later version.
        self.version.load(Ordering::Acquire)
    }

    pub fn get(&self, name: &[u8]) -> Option<Arc<User>> {
        self.all.read().get(name).cloned()
    }

    pub fn default_user(&self) -> Arc<User> {
        self.get(DEFAULT).expect("it is never deleted")
    }

    /// Returns all users, sorted by name.
    pub fn all(&self) -> Vec<Arc<User>> {
        self.all.read().values().cloned().collect()
    }

    /// Returns the user with the name `name` if the password is correct. The comparison of the
    /// passwords takes constant time.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = self.get(name);
        if User::accepts_password(user.as_deref(), password) { user } else { None }
    }

    /// Creates or changes a user. Applies either all rules or no rule. The change may increase the
    /// memory of the user by at most `left_bytes` bytes.
    ///
    /// # Errors
    ///
    /// The error reply. On an error, no user is changed.
    pub fn set_within(
        &self,
        name: &[u8],
        rules: Argv<'_>,
        left_bytes: u64,
    ) -> Result<Arc<User>, Reply> {
        if name.is_empty() || name.iter().any(|c| permissions::is_space(*c)) {
            return Err(Reply::error(acl::NAME));
        }
        let rules = user::join_selectors(rules).map_err(|open| acl::unmatched(&open))?;
        let mut all = self.all.write();
        let mut user = match all.get(name) {
            Some(user) => (**user).clone(),
            None => User::new(self.next_number(), name),
        };
        for rule in rules {
            user.apply(&rule).map_err(|why| acl::bad_rule(&rule, why))?;
        }
        if self.requires_password && name == DEFAULT && user.is_open() {
            return Err(Reply::error(acl::MUST_ASK));
        }
        let before = all.get(name).map(|user| &**user);
        if entry_bytes(&user) > before.map_or(0, entry_bytes).saturating_add(left_bytes) {
            return Err(Reply::error(server::MEMORY));
        }
        self.count(before, Some(&user));
        let user = Arc::new(user);
        all.insert(name.to_vec(), user.clone());
        self.changed();
        Ok(user)
    }

    /// Sets the only password of the default user. An empty password removes all passwords.
    pub fn set_default_password(&self, password: &str) {
        let mut all = self.all.write();
        let mut user = (**all.get(DEFAULT).expect("it is never deleted")).clone();
        let before = user.clone();
        user.set_only_password(password);
        self.count(Some(&before), Some(&user));
        all.insert(DEFAULT.to_vec(), Arc::new(user));
        self.changed();
    }

    /// Deletes a user. Returns false if the user does not exist.
    pub fn delete(&self, name: &[u8]) -> bool {
        let mut all = self.all.write();
        let deleted = all.remove(name);
        self.count(deleted.as_deref(), None);
        self.changed();
        deleted.is_some()
    }

    /// Reloads the users from their file. Replaces either all users or no user.
    ///
    /// # Errors
    ///
    /// The error reply. On an error, no user is changed.
    pub fn load(&self, path: &Path, default_password: &str) -> Result<(), Reply> {
        let read = file::read(path, || self.next_number()).map_err(acl::not_loaded)?;
        let mut next: BTreeMap<Vec<u8>, Arc<User>> = BTreeMap::new();
        let mut all = self.all.write();
        let default = User::default_with(self.next_number(), default_password);
        for mut user in std::iter::once(default).chain(read) {
            if let Some(before) = all.get(&user.name) {
                user.number = before.number;
            }
            next.insert(user.name.clone(), Arc::new(user));
        }
        if self.requires_password && next[DEFAULT].is_open() {
            return Err(Reply::error(acl::MUST_ASK));
        }
        self.count_all(&next);
        *all = next;
        self.changed();
        Ok(())
    }

    /// Writes all users to their file.
    ///
    /// # Errors
    ///
    /// [`UsersError`] if the file cannot be written. On an error, the file is unchanged.
    pub fn save(&self, path: &Path) -> Result<(), UsersError> {
        // Hold the lock during the save, because two concurrent saves would write the same
        // temporary file.
        let all = self.all.write();
        file::write(path, all.values().map(|user| &**user))
    }

    fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// Returns the memory of a user and its tree entry, in bytes. A node of the tree is at least half
/// full.
fn entry_bytes(user: &User) -> u64 {
    let node_bytes = 3 * size_of::<(Vec<u8>, Arc<User>)>() as u64 / 2;
    let counts = 2 * size_of::<usize>();
    node_bytes
        + allocation_bytes(user.name.len())
        + allocation_bytes(size_of::<User>() + counts)
        + user.heap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Users {
        fn set(&self, name: &[u8], rules: Argv<'_>) -> Result<Arc<User>, Reply> {
            self.set_within(name, rules, u64::MAX)
        }
    }

    fn users() -> Users {
        Users::open(&Config::default()).unwrap()
    }

    #[test]
    fn the_memory_of_users_is_counted_and_limited() {
        let users = users();
        let empty = users.heap_bytes();
        assert!(empty > 0);
        users.set(b"a", &[b"on", b">password", b"~a:*", b"(+get ~b:*)"]).unwrap();
        let one = users.heap_bytes();
        assert!((empty + 300..empty + 3000).contains(&one), "{one}");
        for _ in 0..3 {
            users.set(b"a", &[b"off"]).unwrap();
            users.set_default_password("password");
            users.set_default_password("");
            assert_eq!(users.heap_bytes(), one);
        }
        let oom = Err(Reply::error(server::MEMORY));
        assert_eq!(users.set_within(b"b", &[b"on"], 10).map(drop), oom);
        let pattern = [b"~".as_slice(), &[b'x'; 900]].concat();
        assert_eq!(users.set_within(b"a", &[&pattern], 10).map(drop), oom);
        assert_eq!(users.heap_bytes(), one);
        users.set_within(b"a", &[b"off"], 0).unwrap();
        assert!(users.delete(b"a") && users.heap_bytes() == empty);
    }

    #[test]
    fn a_refused_rule_changes_nothing() {
        let users = users();
        let version = users.version();
        assert!(users.set(b"a", &[b"on", b"+get", b"+nothing"]).is_err());
        assert!(users.get(b"a").is_none() && users.version() == version);
        for name in [&b""[..], b"a b", b"a\n", b"\0", b"a\tb"] {
            assert!(users.set(name, &[b"on"]).is_err(), "{name:?}");
        }
        users.set("ключ\u{1f511}".as_bytes(), &[b"on"]).unwrap();
        users.set(&[0xff; 3], &[b"on"]).unwrap();
        assert_eq!(users.all().len(), 3);
    }

    #[test]
    fn a_user_created_again_has_another_number() {
        let users = users();
        let first = users.set(b"a", &[b"on"]).unwrap();
        assert_eq!(users.set(b"a", &[b"off"]).unwrap().number, first.number);
        assert!(users.delete(b"a") && !users.delete(b"a"));
        assert_ne!(users.set(b"a", &[b"on"]).unwrap().number, first.number);
    }

    #[test]
    fn ten_thousand_users_are_created_saved_and_loaded() {
        let users = users();
        for i in 0..10_000 {
            let (name, password) = (format!("user:{i}"), format!(">{i}"));
            let pattern = format!("~{i}:*");
            users
                .set(name.as_bytes(), &[b"on", password.as_bytes(), pattern.as_bytes(), b"+@bloom"])
                .unwrap();
        }
        for i in (0..10_000).step_by(1000) {
            let name = format!("user:{i}");
            let password = i.to_string();
            assert!(users.authenticate(name.as_bytes(), password.as_bytes()).is_some());
            assert!(users.authenticate(name.as_bytes(), b"x").is_none());
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users.acl");
        users.save(&path).unwrap();
        users.load(&path, "").unwrap();
        assert_eq!(users.all().len(), 10_001);
    }

    #[test]
    fn a_server_for_the_network_keeps_its_default_user_closed() {
        let config = Config {
            bind: vec!["0.0.0.0".parse().unwrap()],
            password: "secret".to_owned(),
            ..Config::default()
        };
        let users = Users::open(&config).unwrap();
        assert!(users.set(DEFAULT, &[b"nopass"]).is_err());
        users.set(DEFAULT, &[b"off", b"nopass"]).unwrap();
        assert!(users.set(DEFAULT, &[b"on"]).is_err());
        assert!(users.set(b"other", &[b"on", b"nopass"]).is_ok());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users.acl");
        std::fs::write(&path, "user default on nopass +@all").unwrap();
        assert!(users.load(&path, "secret").is_err());
        std::fs::write(&path, "user a on").unwrap();
        users.load(&path, "secret").unwrap();
        assert!(!users.default_user().is_open() && users.default_user().is_on);
    }
}
