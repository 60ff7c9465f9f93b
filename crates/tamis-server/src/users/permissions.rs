//! Permissions for commands and for keys that match patterns.

use tamis_commands::text::{Text, acl};
use tamis_commands::{Access, Argv, Category, Command, Permission};

use crate::pattern::matches;

/// A set of permissions for commands and keys: that of a user, or of one of its selectors.
#[derive(Clone, Debug)]
pub(crate) struct Permissions {
    /// One bit per [`Permission`].
    allowed: Vec<u64>,
    /// True if all commands are allowed and none was removed since.
    allows_all: bool,
    /// True if the rules start with all commands, false if they start with none.
    began_with_all: bool,
    rules: Vec<Rule>,
    allows_all_keys: bool,
    patterns: Vec<Pattern>,
    /// Accepted for compatibility with Redis. Tamis has no channels.
    allows_all_channels: bool,
    channels: Vec<Vec<u8>>,
}

/// A rule that allows or removes commands, in the order of the rules.
#[derive(Clone, Debug)]
struct Rule {
    allows: bool,
    about: About,
}

#[derive(Clone, Copy, Debug)]
enum About {
    Category(Category),
    Permission(Permission),
}

/// A pattern of keys.
#[derive(Clone, Debug)]
struct Pattern {
    access: Access,
    text: Vec<u8>,
}

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No permission for the command with this name.
    Command(String),
    /// No permission for this key.
    Key(Vec<u8>),
}

/// The longest pattern, in bytes. Matching a key takes time proportional to the product of both
/// lengths.
const MAX_PATTERN_BYTES: usize = 1024;

impl Permissions {
    /// Creates an empty set of permissions.
    pub fn none() -> Self {
        Self {
            allowed: vec![0; Permission::count().div_ceil(64)],
            allows_all: false,
            began_with_all: false,
            rules: Vec::new(),
            allows_all_keys: false,
            patterns: Vec::new(),
            allows_all_channels: false,
            channels: Vec::new(),
        }
    }

    /// Creates a set of all permissions.
    pub fn all() -> Self {
        let mut all = Self::none();
        all.set_all(true);
        (all.allows_all_keys, all.allows_all_channels) = (true, true);
        all
    }

    /// Tests whether every command and every key is allowed, so that no rule must be checked.
    pub fn is_all(&self) -> bool {
        self.allows_all && self.allows_all_keys
    }

    pub fn allows(&self, permission: Permission) -> bool {
        let index = permission.index();
        self.allowed[index / 64] >> (index % 64) & 1 == 1
    }

    /// Checks whether a command may run with these arguments.
    pub fn check(&self, command: &'static Command, argv: Argv<'_>) -> Result<(), Refusal> {
        if !self.allows_all {
            let permission = Permission::of(command, argv);
            if !self.allows(permission) {
                return Err(Refusal::Command(permission.name()));
            }
        }
        if self.allows_all_keys {
            return Ok(());
        }
        match command.keys_of(argv).find(|(key, access)| !self.allows_key(key, *access)) {
            Some((key, _)) => Err(Refusal::Key(key.to_vec())),
            None => Ok(()),
        }
    }

    fn allows_key(&self, key: &[u8], access: Access) -> bool {
        self.patterns.iter().any(|pattern| {
            (pattern.access.reads || !access.reads)
                && (pattern.access.writes || !access.writes)
                && matches(&pattern.text, key)
        })
    }

    /// Applies a rule.
    pub fn apply(&mut self, rule: &[u8]) -> Result<(), Text> {
        match rule.to_ascii_lowercase().as_slice() {
            b"allcommands" | b"+@all" => self.set_all(true),
            b"nocommands" | b"-@all" => self.set_all(false),
            b"allkeys" | b"~*" => {
                self.patterns.clear();
                self.allows_all_keys = true;
            }
            b"resetkeys" => {
                self.patterns.clear();
                self.allows_all_keys = false;
            }
            b"allchannels" | b"&*" => {
                self.channels.clear();
                self.allows_all_channels = true;
            }
            b"resetchannels" => {
                self.channels.clear();
                self.allows_all_channels = false;
            }
            _ => match rule {
                [b'+', name @ ..] => self.set(name, true)?,
                [b'-', name @ ..] => self.set(name, false)?,
                [b'~', text @ ..] => self.add_pattern(Access::BOTH, text)?,
                [b'%', rest @ ..] => self.add_pattern_of(rest)?,
                [b'&', text @ ..] => self.add_channel(text)?,
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
        let about = if let [b'@', name @ ..] = name {
            let is_named = |it: &&Category| name.eq_ignore_ascii_case(it.name().as_bytes());
            About::Category(*Category::ALL.iter().find(is_named).ok_or(acl::UNKNOWN_COMMAND)?)
        } else {
            About::Permission(Permission::find(name).ok_or(acl::UNKNOWN_COMMAND)?)
        };
        let mut set = |permission: Permission| {
            let (word, bit) = (permission.index() / 64, 1 << (permission.index() % 64));
            if allows {
                self.allowed[word] |= bit;
            } else {
                self.allowed[word] &= !bit;
            }
        };
        match about {
            About::Category(category) => {
                Permission::all().filter(|it| it.is_in(category)).for_each(&mut set);
            }
            // A rule for a command includes its subcommands.
            About::Permission(Permission { command, subcommand: None }) => {
                Permission::of_command(command).for_each(&mut set);
            }
            About::Permission(permission) => set(permission),
        }
        self.allows_all &= allows;
        // Drop earlier rules that the new rule overrides.
        self.rules.retain(|rule| !about.covers(rule.about));
        self.rules.push(Rule { allows, about });
        Ok(())
    }

    /// Parses the part of a pattern after `%`: `R`, `W` or both, and the pattern.
    fn add_pattern_of(&mut self, rest: &[u8]) -> Result<(), Text> {
        let at = rest.iter().position(|c| *c == b'~').ok_or(acl::SYNTAX)?;
        let mut access = Access::default();
        for c in &rest[..at] {
            let is_given = match c.to_ascii_uppercase() {
                b'R' => &mut access.reads,
                b'W' => &mut access.writes,
                _ => return Err(acl::SYNTAX),
            };
            if std::mem::replace(is_given, true) {
                return Err(acl::SYNTAX);
            }
        }
        if access == Access::default() {
            return Err(acl::SYNTAX);
        }
        let text = &rest[at + 1..];
        if access == Access::BOTH && text == b"*" {
            return self.apply(b"allkeys");
        }
        self.add_pattern(access, text)
    }

    fn add_pattern(&mut self, access: Access, text: &[u8]) -> Result<(), Text> {
        if self.allows_all_keys {
            return Err(acl::PATTERN_AFTER_ALL_KEYS);
        }
        check_pattern(text)?;
        match self.patterns.iter_mut().find(|it| it.text == text) {
            Some(pattern) => {
                pattern.access.reads |= access.reads;
                pattern.access.writes |= access.writes;
            }
            None => self.patterns.push(Pattern { access, text: text.to_vec() }),
        }
        Ok(())
    }

    fn add_channel(&mut self, text: &[u8]) -> Result<(), Text> {
        if self.allows_all_channels {
            return Err(acl::PATTERN_AFTER_ALL_CHANNELS);
        }
        check_pattern(text)?;
        if !self.channels.iter().any(|it| it == text) {
            self.channels.push(text.to_vec());
        }
        Ok(())
    }

    /// Returns command rules that produce this state.
    pub fn commands(&self) -> String {
        let mut text = if self.began_with_all { "+@all" } else { "-@all" }.to_owned();
        for Rule { allows, about } in &self.rules {
            text += if *allows { " +" } else { " -" };
            match about {
                About::Category(category) => {
                    text += "@";
                    text += category.name();
                }
                About::Permission(permission) => text += &permission.name(),
            }
        }
        text
    }

    /// Returns key rules that produce this state.
    pub fn keys(&self) -> Vec<u8> {
        if self.allows_all_keys {
            return b"~*".to_vec();
        }
        let shown = self.patterns.iter().map(|Pattern { access, text }| {
            let sign: &[u8] = match (access.reads, access.writes) {
                (true, false) => b"%R~",
                (false, true) => b"%W~",
                _ => b"~",
            };
            [sign, text].concat()
        });
        shown.collect::<Vec<_>>().join(&b' ')
    }

    /// Returns channel rules that produce this state.
    pub fn channels(&self) -> Vec<u8> {
        if self.allows_all_channels {
            return b"&*".to_vec();
        }
        let shown = self.channels.iter().map(|text| [b"&", text.as_slice()].concat());
        shown.collect::<Vec<_>>().join(&b' ')
    }

    /// Returns all rules that produce this state from an empty one.
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

impl About {
    /// Tests whether this rule overrides the other one completely.
    fn covers(self, other: About) -> bool {
        match (self, other) {
            (About::Category(one), About::Category(other)) => one == other,
            (About::Permission(one), About::Permission(other)) => {
                one.index() == other.index()
                    || one.subcommand.is_none() && std::ptr::eq(one.command, other.command)
            }
            _ => false,
        }
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

/// Tests whether a byte would end a word in an ACL file.
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
    fn rules_hold_in_their_order() {
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
    fn what_is_written_leads_to_the_same() {
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
    fn keys_are_allowed_to_be_read_or_written() {
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
        for rule in [
            "",
            "+",
            "-",
            "~",
            "&",
            "%",
            "%~",
            "%R",
            "%R~",
            "%X~a",
            "%RR~a",
            "%rwr~a",
            "+@",
            "+@nothing",
            "-@nothing",
            "+nothing",
            "+get|x",
            "+config|nothing",
            "+config|",
            "~a b",
            "~a\n+@all",
            "~a\0",
            "on",
            "(+get)",
            "+get +set",
            &long,
        ] {
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
