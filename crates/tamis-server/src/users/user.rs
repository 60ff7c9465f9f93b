//! A user: its passwords and permissions.

use tamis_commands::text::{Text, acl};
use tamis_commands::{Argv, Command, Flag, Permission, allocation_bytes};

use crate::users::password::PasswordDigest;
use crate::users::permissions::{Denied, Permissions, is_space};

/// A user. A change creates a new `User` with the same name and number.
#[derive(Clone, Debug)]
pub(crate) struct User {
    /// A unique number. If a user is deleted and created again, the new user has a different number
    /// than the deleted user.
    pub number: u64,
    pub name: Vec<u8>,
    pub is_on: bool,
    /// True if any password is accepted.
    pub accepts_any_password: bool,
    pub passwords: Vec<PasswordDigest>,
    pub permissions: Permissions,
    /// Selectors: additional sets of permissions. The user's own permissions, or one selector
    /// alone, must allow a command with all its keys.
    pub selectors: Vec<Permissions>,
}

/// The user of a connection before the connection authenticates.
pub(crate) const DEFAULT: &[u8] = b"default";

impl User {
    /// Creates a disabled user without permissions.
    pub fn new(number: u64, name: &[u8]) -> Self {
        Self {
            number,
            name: name.to_vec(),
            is_on: false,
            accepts_any_password: false,
            passwords: Vec::new(),
            permissions: Permissions::none(),
            selectors: Vec::new(),
        }
    }

    /// Creates the default user with all permissions. An empty password gives every client all
    /// permissions.
    pub fn default_with(number: u64, password: &str) -> Self {
        let mut user = Self::new(number, DEFAULT);
        (user.is_on, user.permissions) = (true, Permissions::all());
        user.set_only_password(password);
        user
    }

    /// Replaces all passwords of the user by one password. An empty password means that the user
    /// needs no password.
    pub fn set_only_password(&mut self, password: &str) {
        self.accepts_any_password = password.is_empty();
        self.passwords.clear();
        if !password.is_empty() {
            self.passwords.push(PasswordDigest::of(password.as_bytes()));
        }
    }

    /// Returns the heap memory of the user, in bytes.
    pub fn heap_bytes(&self) -> u64 {
        let selectors = self.selectors.iter().map(Permissions::heap_bytes).sum::<u64>();
        allocation_bytes(self.name.len())
            + allocation_bytes(self.passwords.len() * size_of::<PasswordDigest>())
            + self.permissions.heap_bytes()
            + allocation_bytes(self.selectors.len() * size_of::<Permissions>())
            + selectors
    }

    /// Tests whether a connection gets this user without a password.
    pub fn is_open(&self) -> bool {
        self.is_on && self.accepts_any_password
    }

    /// Tests whether a user exists, is enabled and has the password `password`. The duration of the
    /// test does not show why a password is refused.
    pub fn accepts_password(user: Option<&User>, password: &[u8]) -> bool {
        let given = PasswordDigest::of(password);
        let known = user.map_or(&[PasswordDigest::NONE][..], |user| &user.passwords);
        let is_known = known.iter().fold(false, |found, known| found | known.is(&given));
        user.is_some_and(|user| user.is_on && (user.accepts_any_password || is_known))
    }

    /// Checks whether the user may run a command with the arguments `argv`. Every user may run the
    /// commands that are allowed before a connection authenticates.
    pub fn check(&self, command: &'static Command, argv: Argv<'_>) -> Result<(), Denied> {
        if self.permissions.is_all() || command.has(Flag::NoAuth) {
            return Ok(());
        }
        let mut refusal = match self.permissions.check(command, argv) {
            Ok(()) => return Ok(()),
            Err(refusal) => refusal,
        };
        for selector in &self.selectors {
            match selector.check(command, argv) {
                Ok(()) => return Ok(()),
                // Prefer the error for a key: the selector allows the command, but not this key.
                Err(Denied::Key(key)) => refusal = Denied::Key(key),
                Err(Denied::Command(_)) => {}
            }
        }
        Err(refusal)
    }

    /// Tests whether the user may run a command on at least some keys. `name` is a command name
    /// such as `info` or `config|get`.
    pub fn may_run(&self, name: &str) -> bool {
        Permission::find(name.as_bytes()).is_some_and(|action| {
            std::iter::once(&self.permissions).chain(&self.selectors).any(|it| it.allows(action))
        })
    }

    /// Applies a rule: an argument of `ACL SETUSER`, or a selector in parentheses.
    pub fn apply(&mut self, rule: &[u8]) -> Result<(), Text> {
        match rule.to_ascii_lowercase().as_slice() {
            b"on" => self.is_on = true,
            b"off" => self.is_on = false,
            b"nopass" => {
                self.accepts_any_password = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.accepts_any_password = false;
                self.passwords.clear();
            }
            b"reset" => *self = Self::new(self.number, &self.name),
            b"clearselectors" => self.selectors.clear(),
            // Ignore this rule, because the server always validates payloads.
            b"sanitize-payload" | b"skip-sanitize-payload" => {}
            _ => match rule {
                [b'>', password @ ..] => self.add(PasswordDigest::of(password)),
                [b'#', hex @ ..] => self.add(PasswordDigest::from_hex(hex).ok_or(acl::HASH)?),
                [b'<', password @ ..] => self.remove(&PasswordDigest::of(password))?,
                [b'!', hex @ ..] => {
                    self.remove(&PasswordDigest::from_hex(hex).ok_or(acl::HASH)?)?;
                }
                [b'(', rules @ .., b')'] => {
                    let mut selector = Permissions::none();
                    for rule in rules.split(|c| is_space(*c)).filter(|rule| !rule.is_empty()) {
                        selector.apply(rule)?;
                    }
                    self.selectors.push(selector);
                }
                _ => self.permissions.apply(rule)?,
            },
        }
        Ok(())
    }

    fn add(&mut self, password: PasswordDigest) {
        self.accepts_any_password = false;
        if !self.passwords.iter().any(|it| it.is(&password)) {
            self.passwords.push(password);
        }
    }

    fn remove(&mut self, password: &PasswordDigest) -> Result<(), Text> {
        let before = self.passwords.len();
        self.passwords.retain(|it| !it.is(password));
        if self.passwords.len() == before { Err(acl::NO_SUCH_PASSWORD) } else { Ok(()) }
    }

    /// Returns ACL rules that produce this user from a new user. ACL files and `ACL LIST` contain
    /// the returned rules.
    pub fn line(&self) -> Vec<u8> {
        let mut parts = vec![b"user".to_vec(), self.name.clone()];
        parts.push(if self.is_on { b"on".to_vec() } else { b"off".to_vec() });
        if self.accepts_any_password {
            parts.push(b"nopass".to_vec());
        }
        parts.extend(self.passwords.iter().map(|it| format!("#{it}").into_bytes()));
        parts.push(self.permissions.line());
        parts.extend(self.selectors.iter().map(|it| [b"(", &it.line()[..], b")"].concat()));
        parts.join(&b' ')
    }
}

/// Joins the arguments of each selector. A selector may be split into several arguments, such as
/// `(+get` and `~a)`.
pub(crate) fn join_selectors(rules: &[&[u8]]) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let mut joined: Vec<Vec<u8>> = Vec::new();
    let mut is_within = false;
    for word in rules {
        match joined.last_mut() {
            Some(selector) if is_within => {
                selector.push(b' ');
                selector.extend_from_slice(word);
            }
            _ => joined.push(word.to_vec()),
        }
        is_within = (is_within || word.starts_with(b"(")) && !word.ends_with(b")");
    }
    if is_within { Err(joined.pop().unwrap_or_default()) } else { Ok(joined) }
}

#[cfg(test)]
mod tests {
    use tamis_commands::find;

    use super::*;

    fn after(rules: &[&str]) -> User {
        let mut user = User::new(1, b"someone");
        for rule in rules {
            user.apply(rule.as_bytes()).unwrap();
        }
        user
    }

    #[test]
    fn passwords_are_added_and_removed() {
        let user = after(&["on", ">one", ">two", ">two"]);
        let accepts_password =
            |user: &User, password: &str| User::accepts_password(Some(user), password.as_bytes());
        assert_eq!(user.passwords.len(), 2);
        assert!(accepts_password(&user, "one") && accepts_password(&user, "two"));
        for other in ["", "on", "onee", "One", &"x".repeat(10_000), &user.passwords[0].to_string()]
        {
            assert!(!accepts_password(&user, other), "{other}");
        }
        assert!(!accepts_password(&after(&[">one"]), "one"), "off");
        assert!(!accepts_password(&after(&["on"]), ""), "no password at all");
        assert!(accepts_password(&after(&["on", "nopass"]), "anything"));
        assert!(!accepts_password(&after(&["on", "nopass", ">one"]), "anything"));
        assert!(!accepts_password(&after(&["on", ">one", "<one"]), "one"));
        assert!(!accepts_password(&after(&["on", ">one", "resetpass"]), "one"));
        assert!(!User::accepts_password(None, b"") && !User::accepts_password(None, b"one"));
        let mut user = after(&["on", ">one"]);
        assert_eq!(user.apply(b"<two"), Err(acl::NO_SUCH_PASSWORD));
        assert_eq!(user.apply(b"#12"), Err(acl::HASH));
    }

    #[test]
    fn a_selector_allows_by_itself() {
        let user = after(&["on", "nopass", "+get", "~a", "(+set ~b)", "(%R~c +@read)"]);
        let may = |line: &str| {
            let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            user.check(find(argv[0]).unwrap(), &argv)
        };
        for line in ["GET a", "SET b x", "GET c", "BF.EXISTS c x"] {
            assert_eq!(may(line), Ok(()), "{line}");
        }
        assert_eq!(may("SET a x"), Err(Denied::Key(b"a".to_vec())));
        assert_eq!(may("GET b"), Err(Denied::Key(b"b".to_vec())));
        assert_eq!(may("DEL a"), Err(Denied::Command("del".to_owned())));
        assert!(user.may_run("set") && !user.may_run("del") && !user.may_run("nothing"));
        let line = String::from_utf8(user.line()).unwrap();
        assert_eq!(
            line,
            "user someone on nopass ~a resetchannels -@all +get (~b resetchannels -@all +set) \
             (%R~c resetchannels -@all +@read)"
        );
        assert!(after(&["(+get)", "clearselectors"]).selectors.is_empty());
        for rule in ["()(", "(+get", "(>x)", "((+get))", "(on)"] {
            assert!(after(&[]).apply(rule.as_bytes()).is_err(), "{rule}");
        }
    }

    #[test]
    fn selectors_are_one_argument_or_several() {
        let rules: [&[u8]; 6] = [b"on", b"(", b"+get", b"~a)", b"(+set)", b"+del"];
        let joined = join_selectors(&rules).unwrap();
        assert_eq!(joined, [&b"on"[..], b"( +get ~a)", b"(+set)", b"+del"]);
        assert_eq!(join_selectors(&[b"(+get", b"~a"]), Err(b"(+get ~a".to_vec()));
    }
}
