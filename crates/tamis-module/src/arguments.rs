//! Describes the arguments of a command to the server, for `COMMAND DOCS` and the help of clients.
//!
//! The syntax of a row is a text: `a b` is a sequence, and `a | b` is a choice. `[a]` is optional,
//! and `a [a ...]` is repeated. A word in upper case is a token. A value may follow a token.

use std::ffi::{CString, c_int};

use valkey_module::raw::{
    self, RedisModuleCommandArg, RedisModuleCommandArgType,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK as BLOCK,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY as KEY,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF as ONE_OF,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN as TOKEN,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING as STRING,
};

use crate::api::c_text;

/// The argument names that are keys, each with the index of its key specification.
const KEYS: [(&str, c_int); 4] = [("key", 0), ("destination", 0), ("source", 1), ("other", 1)];

/// A sequence of arguments.
#[derive(Default)]
pub struct Arguments {
    args: Vec<RedisModuleCommandArg>,
    /// The names and tokens to which the arguments point.
    texts: Vec<CString>,
    /// The sequences to which the arguments point.
    parts: Vec<Arguments>,
}

impl Arguments {
    /// Parses the syntax of a row.
    pub fn of(syntax: &str) -> Self {
        let spaced = syntax.replace('[', "[ ").replace(']', " ]");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        Self::parse(&mut &words[..])
    }

    /// Appends an empty argument as the end mark, and returns a pointer to the arguments.
    pub fn as_mut_ptr(&mut self) -> *mut RedisModuleCommandArg {
        // SAFETY: an argument whose bytes are all zero is a valid empty argument.
        self.args.push(unsafe { std::mem::zeroed() });
        self.args.as_mut_ptr()
    }

    /// Parses words up to the closing bracket or the end of the syntax.
    fn parse(words: &mut &[&str]) -> Self {
        let mut choices = vec![Self::default()];
        loop {
            let last = choices.last_mut().expect("one or more");
            match **words {
                [] => break,
                ["]", ref rest @ ..] => {
                    *words = rest;
                    break;
                }
                ["|", ref rest @ ..] => {
                    *words = rest;
                    choices.push(Self::default());
                }
                ["[", _, "...", "]", ref rest @ ..] => {
                    *words = rest;
                    if let Some(repeated) = last.args.last_mut() {
                        repeated.flags |= raw::REDISMODULE_CMD_ARG_MULTIPLE as c_int;
                    }
                }
                ["[", ref rest @ ..] => {
                    *words = rest;
                    last.append(Self::parse(words));
                    if let Some(optional) = last.args.last_mut() {
                        optional.flags |= raw::REDISMODULE_CMD_ARG_OPTIONAL as c_int;
                    }
                }
                [token, value, ref rest @ ..] if is_token(token) && is_value(value) => {
                    *words = rest;
                    last.push(value, STRING, Some(token));
                }
                [word, ref rest @ ..] => {
                    *words = rest;
                    let token = is_token(word).then_some(word);
                    last.push(word, if token.is_some() { TOKEN } else { STRING }, token);
                }
            }
        }
        if choices.len() == 1 {
            return choices.remove(0);
        }
        let mut all = Self::default();
        choices.into_iter().for_each(|choice| all.append(choice));
        let mut one_of = Self::default();
        one_of.push_parts("choice", ONE_OF, all);
        one_of
    }

    /// Appends an argument without subarguments.
    fn push(&mut self, name: &str, kind: RedisModuleCommandArgType, token: Option<&str>) {
        // SAFETY: an argument whose bytes are all zero is a valid empty argument.
        let mut arg: RedisModuleCommandArg = unsafe { std::mem::zeroed() };
        (arg.type_, arg.key_spec_index) = (kind, -1);
        if let Some((_, spec)) = KEYS.iter().find(|(key, _)| *key == name) {
            (arg.type_, arg.key_spec_index) = (KEY, *spec);
        }
        arg.name = self.text(&name.to_lowercase());
        if let Some(token) = token {
            arg.token = self.text(token);
        }
        self.args.push(arg);
    }

    /// Appends an argument with subarguments.
    fn push_parts(&mut self, name: &str, kind: RedisModuleCommandArgType, mut parts: Self) {
        self.push(name, kind, None);
        let arg = self.args.last_mut().expect("it was pushed");
        arg.subargs = parts.as_mut_ptr();
        self.parts.push(parts);
    }

    /// Appends a sequence as one argument.
    fn append(&mut self, mut sequence: Self) {
        if sequence.args.len() == 1 {
            self.args.append(&mut sequence.args);
            self.texts.append(&mut sequence.texts);
            self.parts.append(&mut sequence.parts);
        } else {
            self.push_parts("group", BLOCK, sequence);
        }
    }

    fn text(&mut self, text: &str) -> *const std::ffi::c_char {
        let text = c_text(text);
        let pointer = text.as_ptr();
        self.texts.push(text);
        pointer
    }
}

fn is_token(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn is_value(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_lowercase())
}
