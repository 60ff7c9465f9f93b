//! The smallest host: keys in memory, one command at a time.

use std::collections::HashMap;

use tamis_commands::{
    Env, ErrorReply, Handler, Outcome, Settings, Value, WriteKeys, find, made_like, merge,
    reserve_like, text,
};
use tamis_resp::{Protocol, Reply};

pub struct Host {
    pub settings: Settings,
    pub protocol: Protocol,
    pub now_millis: u64,
    pub values: HashMap<Vec<u8>, Value>,
}

impl Host {
    pub fn new(settings: Settings, protocol: Protocol) -> Self {
        Self { settings, protocol, now_millis: 0, values: HashMap::new() }
    }

    pub fn say<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Reply {
        let words: &[&[u8]] = &words.iter().map(AsRef::as_ref).collect::<Vec<_>>();
        let Some(command) = find(words[0]) else { return text::unknown_command(words) };
        if !command.arity.takes(words.len()) {
            return text::wrong_arity(command.name);
        }
        let env = Env::new(&self.settings, self.protocol, self.now_millis);
        if let Handler::Answer(run) = command.handler {
            return run(words, &env);
        }
        let like = command.like_key(words).map(|other| made_like(self.values.get(other), &env));
        let key = command.keys.of(words).next().unwrap();
        let mut value = self.values.remove(key);
        let outcome = match (command.handler, like) {
            (Handler::Key(handler), None) => Ok(handler.run(&mut value, words, &env)),
            (Handler::Key(_), Some(made)) => {
                made.map_err(ErrorReply::from).and_then(|made| reserve_like(&mut value, made))
            }
            (Handler::WriteKeys(WriteKeys::Merge), _) => {
                let others = words[2..].iter().filter(|other| **other != key);
                let sources: Vec<_> = others.map(|it| (*it, self.values.get(*it))).collect();
                merge(key, &mut value, &sources, &env)
            }
            _ => panic!("{} needs a server", command.name),
        };
        self.values.extend(value.map(|value| (key.to_vec(), value)));
        outcome.unwrap_or_else(Outcome::from).reply
    }

    /// Runs a command whose words have no spaces.
    pub fn line(&mut self, line: &str) -> Reply {
        self.say(&line.split(' ').collect::<Vec<_>>())
    }
}

/// Returns a reply as a client reads it.
pub fn received(reply: &Reply, protocol: Protocol) -> Reply {
    let mut bytes = Vec::new();
    reply.encode(protocol, &mut bytes);
    let (reply, len) = Reply::decode(&bytes).unwrap().unwrap();
    assert_eq!(len, bytes.len());
    reply
}
