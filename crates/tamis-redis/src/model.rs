//! A model of a Redis server in memory, for unit tests of operations. The model has only strings.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use redis::{Arg, Value};

use crate::lock::locked;
use crate::operations::create_shards::CREATE_SHARD;
use crate::operations::growth::ADD_LAYER;
use crate::operations::sweep::CORRECT;
use crate::transport::blocking::Transport;
use crate::transport::request::{NodeReply, NodeRequest, SendError};

/// The value of each key.
pub(crate) type Strings = HashMap<Vec<u8>, Vec<u8>>;

/// A server in memory.
#[derive(Default)]
pub(crate) struct Model(Mutex<Data>);

/// The strings of a server, the number of round trips, and the executed commands.
#[derive(Default)]
pub(crate) struct Data {
    pub(crate) strings: Strings,
    pub(crate) round_trips: usize,
    pub(crate) commands: Vec<String>,
    /// The keys whose connection fails: the model executes a command on one of these keys, and then
    /// returns an error instead of the reply.
    pub(crate) unreachable: Vec<Vec<u8>>,
}

impl Transport for Model {
    fn send(&self, requests: &[NodeRequest]) -> Vec<NodeReply> {
        let mut data = self.data();
        data.round_trips += 1;
        requests.iter().map(|request| data.reply(request)).collect()
    }
}

impl Model {
    pub(crate) fn data(&self) -> MutexGuard<'_, Data> {
        locked(&self.0)
    }
}

impl Data {
    fn reply(&mut self, request: &NodeRequest) -> NodeReply {
        let args: Vec<&[u8]> = request
            .command
            .args_iter()
            .map(|arg| match arg {
                Arg::Simple(bytes) => bytes,
                _ => panic!("no cursors"),
            })
            .collect();
        let name = std::str::from_utf8(args[0]).unwrap();
        self.commands.push(name.to_owned());
        let value = match name {
            "EXISTS" => Value::Int(self.strings.contains_key(args[1]).into()),
            "GET" => match self.strings.get(args[1]) {
                Some(string) => Value::BulkString(string.clone()),
                None => Value::Nil,
            },
            "SET" if self.strings.contains_key(args[1]) => Value::Nil,
            "SET" => {
                self.strings.insert(args[1].to_vec(), args[2].to_vec());
                Value::Okay
            }
            "UNLINK" => Value::Int(self.strings.remove(args[1]).is_some().into()),
            "BITFIELD" | "BITFIELD_RO" => self.bitfield(args[1], &args[2..]),
            "EVAL" if args[1] == CREATE_SHARD.as_bytes() => {
                let (string, len) = (self.string(args[3]), 1 + number(args[4]) as usize);
                let is_new = !string.starts_with(b"TM");
                if is_new {
                    string.resize(len, 0);
                    string[..args[5].len()].copy_from_slice(args[5]);
                }
                Value::Int(is_new.into())
            }
            "EVAL" if args[1] == CORRECT.as_bytes() => {
                let increase: &[&[u8]] = &[b"INCRBY", b"i64", b"64", args[4]];
                self.bitfield(args[3], increase)
            }
            "EVAL" if args[1] == ADD_LAYER.as_bytes() => self.add_layer(&args[3..]),
            // The unit tests run only four scripts: `CREATE_SHARD`, `CORRECT`, `ADD_LAYER` and the
            // script that deletes a key without a header.
            "EVAL" => {
                let key = args[3];
                if self.strings.get(key).is_some_and(|string| !string.starts_with(b"TM")) {
                    self.strings.remove(key);
                }
                Value::Int(0)
            }
            _ => panic!("no command {name}"),
        };
        if self.unreachable.contains(&request.key) {
            return Err(SendError { message: "closed".into() });
        }
        Ok(value)
    }

    fn add_layer(&mut self, args: &[&[u8]]) -> Value {
        let [first, new, known, last, header] = args else { panic!("five arguments") };
        let (layers, known) = (self.string(first)[3], number(known) as u8);
        let mut counter = 0;
        if layers == known {
            let mut string = vec![0; 1 + number(last) as usize];
            string[..header.len()].copy_from_slice(header);
            string[2..4].copy_from_slice(&[self.string(first)[2], layers + 1]);
            self.strings.insert(new.to_vec(), string);
            self.string(first)[3] += 1;
        } else if layers == known + 1 {
            counter = i64::from_be_bytes(self.string(new)[8..16].try_into().unwrap());
        }
        let layers = self.string(first)[3];
        Value::Array([i64::from(layers), counter].map(Value::Int).into())
    }

    fn string(&mut self, key: &[u8]) -> &mut Vec<u8> {
        self.strings.entry(key.to_vec()).or_default()
    }

    fn bitfield(&mut self, key: &[u8], mut args: &[&[u8]]) -> Value {
        let mut values = Vec::new();
        while let [name, kind, offset, rest @ ..] = args {
            let (width, offset) = (number(&kind[1..]), number(offset));
            let mut string = self.strings.get(key).cloned().unwrap_or_default();
            string.resize(string.len().max((offset + width).div_ceil(8) as usize), 0);
            let old = (offset..offset + width).fold(0_u64, |word, at| {
                word << 1 | u64::from(string[at as usize / 8] >> (7 - at % 8) & 1)
            });
            let new = match *name {
                b"GET" => None,
                b"SET" => Some(number(rest[0])),
                b"INCRBY" => Some(old.wrapping_add(number(rest[0]))),
                _ => panic!("no operation"),
            };
            args = &rest[usize::from(new.is_some())..];
            let is_counter = *name == b"INCRBY";
            let value = if is_counter { new.unwrap() } else { old };
            values.push(Value::Int(value.cast_signed()));
            if let Some(new) = new {
                for at in offset..offset + width {
                    let (byte, bit) = (at as usize / 8, 7 - at % 8);
                    let value = new >> (offset + width - 1 - at) & 1;
                    string[byte] = string[byte] & !(1 << bit) | (value as u8) << bit;
                }
                self.strings.insert(key.to_vec(), string);
            }
        }
        Value::Array(values)
    }
}

fn number(text: &[u8]) -> u64 {
    let text = std::str::from_utf8(text).unwrap();
    text.parse::<i64>().map_or_else(|_| text.parse().unwrap(), i64::cast_unsigned)
}
