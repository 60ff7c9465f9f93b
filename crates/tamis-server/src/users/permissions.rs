//! Permissions for commands and for keys that match patterns.

use tamis_commands::text::{Text, acl};
use tamis_commands::{Access, Argv, Category, Command, Permission, allocation_bytes};

use crate::pattern::matches;

/// The permissions of a user or of a selector (an additional set of permissions): for commands and
/// for keys.
#[derive(Clone, Debug)]
pub(crate) struct Permissions {
    /// One bit for each [`Permission`]: 1 if the rules allow the command.
    allowed: Vec<u64>,
    /// True if all commands are allowed and no later rule has removed a command.
    allows_all: bool,
    /// True if the rules start with all commands. False if the rules start with no command.
    began_with_all: bool,
    rules: Vec<CommandRule>,
    keys: Patterns,
    /// The patterns of channels, which the server accepts only for compatibility with Redis: Tamis
    /// has no channels.
    channels: Patterns,
}

/// A rule that allows or removes commands, in the order of the rules.
#[derive(Clone, Debug)]
struct CommandRule {
    allows: bool,
    target: RuleTarget,
}

/// The commands that a rule allows or removes.
#[derive(Clone, Copy, Debug)]
enum RuleTarget {
    Category(Category),
    Permission(Permission),
}

/// Patterns of keys or channels, or all keys or channels.
#[derive(Clone, Debug, Default)]
struct Patterns {
    allows_all: bool,
    list: Vec<(Access, Vec<u8>)>,
}

/// The command or key for which a user has no permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The user may not run the command with this name.
    Command(String),
    /// The user may not access this key.
    Key(Vec<u8>),
}

/// The length of the longest pattern, in bytes. Matching a key takes time proportional to the
/// length of the key times the length of the pattern.
const MAX_PATTERN_BYTES: usize = 1024;

/// Returns the category with the name `name`, ignoring case.
pub(crate) fn category_named(name: &[u8]) -> Option<Category> {
    Category::ALL.into_iter().find(|it| name.eq_ignore_ascii_case(it.name().as_bytes()))
}

impl Permissions {
    /// Creates an empty set of permissions.
    pub fn none() -> Self {
        Self {
            allowed: vec![0; Permission::count().div_ceil(64)],
            allows_all: false,
            began_with_all: false,
            rules: Vec::new(),
            keys: Patterns::default(),
            channels: Patterns::default(),
        }
    }

    /// Creates a set of all permissions.
    pub fn all() -> Self {
        let mut all = Self::none();
        all.set_all(true);
        (all.keys, all.channels) = (Patterns::all(), Patterns::all());
        all
    }

    /// Returns the heap memory of the permissions, in bytes.
    pub fn heap_bytes(&self) -> u64 {
        allocation_bytes(self.allowed.len() * size_of::<u64>())
            + allocation_bytes(self.rules.len() * size_of::<CommandRule>())
            + self.keys.heap_bytes()
            + self.channels.heap_bytes()
    }

    /// Tests whether every command and every key is allowed, so that no rule must be checked.
    pub fn is_all(&self) -> bool {
        self.allows_all && self.keys.allows_all
    }

    pub fn allows(&self, permission: Permission) -> bool {
        let index = permission.index();
        self.allowed[index / 64] >> (index % 64) & 1 == 1
    }

    /// Checks whether the permissions allow a command with the arguments `argv`.
    pub fn check(&self, command: &'static Command, argv: Argv<'_>) -> Result<(), Denied> {
        if !self.allows_all {
            let permission = Permission::of(command, argv);
            if !self.allows(permission) {
                return Err(Denied::Command(permission.name()));
            }
        }
        if self.keys.allows_all {
            return Ok(());
        }
        match command.keys_of(argv).find(|(key, access)| !self.keys.allow(key, *access)) {
            Some((key, _)) => Err(Denied::Key(key.to_vec())),
            None => Ok(()),
        }
    }

    /// Applies one ACL rule.
    pub fn apply(&mut self, rule: &[u8]) -> Result<(), Text> {
        match rule.to_ascii_lowercase().as_slice() {
            b"allcommands" | b"+@all" => self.set_all(true),
            b"nocommands" | b"-@all" => self.set_all(false),
            b"allkeys" | b"~*" => self.keys = Patterns::all(),
            b"resetkeys" => self.keys = Patterns::default(),
            b"allchannels" | b"&*" => self.channels = Patterns::all(),
            b"resetchannels" => self.channels = Patterns::default(),
            _ => match rule {
                [b'+', name @ ..] => self.set(name, true)?,
                [b'-', name @ ..] => self.set(name, false)?,
                [b'~', text @ ..] => self.add_key_pattern(Access::BOTH, text)?,
                [b'%', rest @ ..] => self.parse_key_pattern(rest)?,
                [b'&', text @ ..] => {
                    self.channels.add(Access::BOTH, text, acl::PATTERN_AFTER_ALL_CHANNELS)?;
                }
                _ => return Err(acl::SYNTAX),
            },
        }
        Ok(())
    }

    fn set_all(&mut self, allows: bool) {
        self.allowed.fill(if allows { u64::MAX } else { 0 });
        (self.allows_all, self.began_with_all) = (allows, allows);
        self.rules.clear();
    }

    fn set(&mut self, name: &[u8], allows: bool) -> Result<(), Text> {
        let target = match name {
            [b'@', name @ ..] => category_named(name).map(RuleTarget::Category),
            _ => Permission::find(name).map(RuleTarget::Permission),
        };
        let target = target.ok_or(acl::UNKNOWN_COMMAND)?;
        for permission in Permission::all().filter(|it| target.contains(*it)) {
            let (word, bit) = (permission.index() / 64, 1 << (permission.index() % 64));
            if allows {
                self.allowed[word] |= bit;
            } else {
                self.allowed[word] &= !bit;
            }
        }
        self.allows_all &= allows;
        // Remove the rules that the new rule overrides.
        self.rules.retain(|rule| !target.overrides(rule.target));
        self.rules.push(CommandRule { allows, target });
        Ok(())
    }

    /// Parses the part of a key pattern after `%`: the letters `R`, `W` or both, and then the
    /// pattern.
    fn parse_key_pattern(&mut self, rest: &[u8]) -> Result<(), Text> {
        let at = rest.iter().position(|c| *c == b'~').ok_or(acl::SYNTAX)?;
        let access = match rest[..at].to_ascii_uppercase().as_slice() {
            b"R" => Access { reads: true, writes: false },
            b"W" => Access { reads: false, writes: true },
            b"RW" | b"WR" => Access::BOTH,
            _ => return Err(acl::SYNTAX),
        };
        let text = &rest[at + 1..];
        if access == Access::BOTH && text == b"*" {
            return self.apply(b"allkeys");
        }
        self.add_key_pattern(access, text)
    }

    fn add_key_pattern(&mut self, access: Access, text: &[u8]) -> Result<(), Text> {
        self.keys.add(access, text, acl::PATTERN_AFTER_ALL_KEYS)
    }

    /// Returns command rules that produce the current command permissions.
    pub fn commands(&self) -> String {
        let mut text = if self.began_with_all { "+@all" } else { "-@all" }.to_owned();
        for CommandRule { allows, target } in &self.rules {
            text += if *allows { " +" } else { " -" };
            match target {
                RuleTarget::Category(category) => text += &format!("@{}", category.name()),
                RuleTarget::Permission(permission) => text += &permission.name(),
            }
        }
        text
    }

    /// Returns key rules that produce the current key permissions.
    pub fn keys(&self) -> Vec<u8> {
        self.keys.rules("~")
    }

    /// Returns channel rules that produce the current channel permissions.
    pub fn channels(&self) -> Vec<u8> {
        self.channels.rules("&")
    }

    /// Returns all rules that produce the current permissions from an empty set.
    pub fn line(&self) -> Vec<u8> {
        let mut channels = self.channels();
        if channels.is_empty() {
            channels = b"resetchannels".to_vec();
        }
        let mut parts = vec![self.keys(), channels, self.commands().into_bytes()];
        parts.retain(|part| !part.is_empty());
        parts.join(&b' ')
    }
}

impl RuleTarget {
    /// Tests whether the rule applies to a permission. A rule for a command applies to the command
    /// and its subcommands.
    fn contains(self, permission: Permission) -> bool {
        match self {
            Self::Category(category) => permission.is_in(category),
            Self::Permission(own) => {
                own.index() == permission.index()
                    || own.subcommand.is_none() && std::ptr::eq(own.command, permission.command)
            }
        }
    }

    /// Tests whether this rule completely overrides the rule `other`.
    fn overrides(self, other: Self) -> bool {
        match (self, other) {
            (Self::Category(one), Self::Category(other)) => one == other,
            (Self::Permission(_), Self::Permission(other)) => self.contains(other),
            _ => false,
        }
    }
}

impl Patterns {
    fn all() -> Self {
        Self { allows_all: true, list: Vec::new() }
    }

    fn heap_bytes(&self) -> u64 {
        allocation_bytes(self.list.len() * size_of::<(Access, Vec<u8>)>())
            + self.list.iter().map(|(_, text)| allocation_bytes(text.len())).sum::<u64>()
    }

    /// Tests whether any pattern allows the access `access` to a key.
    fn allow(&self, key: &[u8], access: Access) -> bool {
        self.list.iter().any(|(allowed, text)| {
            (allowed.reads || !access.reads)
                && (allowed.writes || !access.writes)
                && matches(text, key)
        })
    }

    /// Adds a pattern. Returns `error` if all keys or channels are already allowed.
    fn add(&mut self, access: Access, text: &[u8], error: Text) -> Result<(), Text> {
        if self.allows_all {
            return Err(error);
        }
        check_pattern(text)?;
        match self.list.iter_mut().find(|(_, known)| known == text) {
            Some((known, _)) => {
                known.reads |= access.reads;
                known.writes |= access.writes;
            }
            None => self.list.push((access, text.to_vec())),
        }
        Ok(())
    }

    /// Returns rules that produce the current patterns. `sign` is `~` for keys and `&` for
    /// channels.
    fn rules(&self, sign: &str) -> Vec<u8> {
        if self.allows_all {
            return format!("{sign}*").into_bytes();
        }
        let rules = self.list.iter().map(|(access, text)| {
            let access = match (access.reads, access.writes) {
                (true, false) => "%R",
                (false, true) => "%W",
                _ => "",
            };
            [access.as_bytes(), sign.as_bytes(), text].concat()
        });
        rules.collect::<Vec<_>>().join(&b' ')
    }
}

fn check_pattern(text: &[u8]) -> Result<(), Text> {
    if text.is_empty() || text.iter().any(|c| is_space(*c)) {
        return Err(acl::SYNTAX);
    }
    if text.len() > MAX_PATTERN_BYTES {
        return Err(acl::PATTERN_TOO_LONG);
    }
    Ok(())
}

/// Tests whether a byte ends a word in an ACL file.
pub(super) fn is_space(c: u8) -> bool {
    matches!(c, 0 | b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use tamis_commands::find;

    use super::*;

    fn after(rules: &[&str]) -> Permissions {
        let mut permissions = Permissions::none();
        for rule in rules {
            permissions.apply(rule.as_bytes()).unwrap();
        }
        permissions
    }

    fn may(permissions: &Permissions, line: &str) -> bool {
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        permissions.check(find(argv[0]).unwrap(), &argv).is_ok()
    }

    #[test]
    fn rules_apply_in_order() {
        let some = after(&["allkeys", "+@all", "-@dangerous", "+info", "-client", "+client|id"]);
        for (line, expected) in [
            ("BF.ADD k a", true),
            ("KEYS *", false),
            ("INFO", true),
            ("CLIENT ID", true),
            ("CLIENT GETNAME", false),
            ("CLIENT nothing", false),
            ("CONFIG SET a b", false),
        ] {
            assert_eq!(may(&some, line), expected, "{line}");
        }
        assert_eq!(some.commands(), "+@all -@dangerous +info -client +client|id");
        assert!(!may(&after(&["allkeys", "+info", "-@dangerous"]), "INFO"));
        let config = after(&["+config|get", "-config|set"]);
        assert!(may(&config, "config get a") && !may(&config, "CONFIG SET a b"));
        let config = after(&["+config", "-config|set"]);
        assert!(may(&config, "CONFIG RESETSTAT") && !may(&config, "CONFIG set a b"));
    }

    #[test]
    fn the_rules_of_a_state_produce_the_same_state() {
        for rules in [
            &["+@all"][..],
            &["-@all", "+@read", "-bf.exists", "~a:*", "%R~b", "%W~c*", "&news"],
            &["+client", "-client|kill", "+client|kill", "-client"],
            &["+@all", "-@write", "+@bloom", "-@bloom", "+bf.add", "allkeys", "allchannels"],
            &["%R~x", "%W~x"],
        ] {
            let permissions = after(rules);
            let line = permissions.line();
            let line = String::from_utf8(line).unwrap();
            let again = after(&line.split(' ').collect::<Vec<_>>());
            assert_eq!(String::from_utf8(again.line()).unwrap(), line);
            assert_eq!(again.allowed, permissions.allowed, "{line}");
        }
        assert_eq!(after(&["+client", "-client|kill", "-client"]).commands(), "-@all -client");
        assert_eq!(after(&["%R~x", "%W~x"]).keys(), b"~x");
    }

    #[test]
    fn key_patterns_allow_reads_or_writes() {
        let some = after(&["+@all", "%R~r:*", "%W~w:*", "~b:*"]);
        for (line, expected) in [
            ("GET r:1", true),
            ("SET r:1 x", false),
            ("SET w:1 x", true),
            ("GET w:1", false),
            ("TYPE w:1", true),
            ("TYPE r:1", true),
            ("TYPE x", false),
            ("INCR w:1", false),
            ("INCR b:1", true),
            ("BF.ADD w:1 a", true),
            ("BF.EXISTS w:1 a", false),
            ("BITOP AND w:1 r:1 r:2", true),
            ("BITOP AND r:1 r:1 r:2", false),
            ("BITOP AND w:1 r:1 w:2", false),
            ("RENAME b:1 w:1", true),
            ("RENAME w:1 w:2", false),
            ("RENAME r:1 w:2", false),
            ("TM.MERGE w:1 r:1 b:1", true),
            ("TM.MERGE w:1 w:2", false),
            ("DEL w:1 b:1", true),
            ("DEL w:1 b:1 r:1", false),
            ("MEMORY USAGE r:1", true),
            ("MEMORY USAGE x", false),
            ("OBJECT ENCODING x", false),
            ("KEYS *", true),
            ("WATCH r:1 x", false),
        ] {
            assert_eq!(may(&some, line), expected, "{line}");
        }
    }

    #[test]
    fn hostile_rules_are_refused_and_change_nothing() {
        let mut some = after(&["+get", "~a"]);
        let before = some.line();
        let long = format!("~{}", "a".repeat(1025));
        let rules = "+ - ~ & % %~ %R %R~ %X~a %RR~a %rwr~a +@ +@nothing -@nothing +nothing +get|x \
                     +config|nothing +config| on (+get)";
        let others = ["", "~a b", "~a\n+@all", "~a\0", "+get +set", &long];
        for rule in rules.split(' ').chain(others) {
            assert!(some.apply(rule.as_bytes()).is_err(), "{rule}");
        }
        assert_eq!(some.line(), before);
        let mut all = after(&["allkeys", "allchannels"]);
        assert_eq!(all.apply(b"~a"), Err(acl::PATTERN_AFTER_ALL_KEYS));
        assert_eq!(all.apply(b"&a"), Err(acl::PATTERN_AFTER_ALL_CHANNELS));
        all.apply(b"~*").unwrap();
    }

    #[test]
    fn patterns_of_many_stars_take_no_exponential_time() {
        let pattern = format!("~{}b", "a*".repeat(500));
        let some = after(&["+@all", &pattern]);
        assert!(!may(&some, &format!("GET {}", "a".repeat(20_000))));
        assert!(may(&some, &format!("GET {}b", "a".repeat(20_000))));
    }
}
