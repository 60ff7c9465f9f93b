//! Runs a command with very many items in chunks. Other connections run between the chunks.

use std::time::Instant;

use tamis_commands::{Argv, Batch, Command, Env, KeyHandler, KeyReply, Settings};
use tamis_resp::{Protocol, Reply};

use crate::session::Session;
use crate::session::checks::WORD_BYTES;
use crate::session::chunk_pacing::most_items;
use crate::session::key_commands::KeyCalls;
use crate::system::clock::now_millis;

/// A limit of `cf-max-expansions` that no filter reaches: a filter has at most 65,535 sub-filters.
const NO_LIMIT: u32 = 65_536;

impl Session {
    /// Runs a command in chunks and appends the reply of the command. The items of the command
    /// begin at argument `first`.
    pub async fn run_in_chunks(
        &mut self,
        handler: KeyHandler,
        command: &'static Command,
        argv: Argv<'_>,
        first: usize,
        env: &Env<'_>,
        out: &mut Vec<u8>,
    ) {
        let (start, mut items) = argv.split_at(first);
        let most_items = most_items(command);
        // Each chunk logs the words before the items again. If a chunk has enough items, the words
        // before the items need at most the space that was reserved for the items.
        let start_bytes: u64 = start.iter().map(|word| word.len() as u64 + WORD_BYTES).sum();
        let least_items = (start_bytes as usize / 16).clamp(1, most_items);
        let mut long = LongReply::begin(items.len(), env.protocol, out);
        let mut chunk_argv = start.to_vec();
        // The limit `cf-max-expansions` applies only at the start of a command. During the command,
        // the filter may exceed the limit, as in RedisBloom.
        let behind = Settings { cf_max_expansions: NO_LIMIT, ..env.settings.clone() };
        let mut env = *env;
        // Only the first chunk counts as a key lookup.
        let mut lookups = 1;
        while !items.is_empty() {
            let (chunk, rest) =
                items.split_at(items.len().min(self.pace.items.clamp(least_items, most_items)));
            items = rest;
            chunk_argv.truncate(first);
            chunk_argv.extend_from_slice(chunk);
            let began = Instant::now();
            let (mut batch, mut done) = (Batch::default(), None);
            if command.batch_items().is_some() {
                batch.push(&chunk_argv);
            }
            let calls = KeyCalls { handler, command, argvs: &[&chunk_argv], lookups };
            let now = env.at(now_millis());
            self.run_on_key(calls, &mut batch, &now, |reply| done = Some(reply)).await;
            let done = done.expect("each command has a reply");
            env.settings = &behind;
            lookups = 0;
            match long.push(&done, out) {
                Next::Chunk => {}
                Next::End => break,
                // Only the first chunk can be refused, unless another command replaced the key
                // between two chunks.
                Next::Refusal => return self.answer(command, &done.reply, out),
            }
            self.pace.note(chunk.len(), began.elapsed());
            tokio::task::yield_now().await;
        }
        long.end(out);
    }
}

/// The reply to a command, which is written chunk after chunk. Writing a million values in one step
/// would take milliseconds.
struct LongReply {
    protocol: Protocol,
    /// The offset in the output at which the reply begins, and the offset of the first value.
    start: usize,
    values: usize,
    /// The number of values in the array header, and the number of values that are already written.
    announced: usize,
    written: usize,
}

/// The next action after a chunk of a command has run.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Chunk,
    /// The reply ends, because the filter rejects all further items.
    End,
    /// The filter or the server refused the whole chunk, so the command is refused. The part of the
    /// reply that was already written is removed.
    Refusal,
}

impl LongReply {
    fn begin(values: usize, protocol: Protocol, out: &mut Vec<u8>) -> Self {
        let start = out.len();
        Reply::begin_array(values, out);
        Self { protocol, start, values: out.len(), announced: values, written: 0 }
    }

    /// Appends the replies of a chunk.
    fn push(&mut self, done: &KeyReply, out: &mut Vec<u8>) -> Next {
        let Some(values) = done.reply.encode_values(self.protocol, out) else {
            out.truncate(self.start);
            return Next::Refusal;
        };
        self.written += values;
        if done.stops { Next::End } else { Next::Chunk }
    }

    fn end(self, out: &mut Vec<u8>) {
        if self.written < self.announced {
            let mut line = Vec::new();
            Reply::begin_array(self.written, &mut line);
            out.splice(self.start..self.values, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis_commands::text;

    use super::*;

    fn written(replies: &[(Reply, bool)], values: usize) -> (Vec<Next>, String) {
        let mut out = b"+OK\r\n".to_vec();
        let mut long = LongReply::begin(values, Protocol::Resp2, &mut out);
        let push = |(reply, stops): &(Reply, bool)| {
            long.push(&KeyReply { reply: reply.clone(), stops: *stops }, &mut out)
        };
        let next = replies.iter().map(push).collect();
        if !matches!(replies.last(), Some((Reply::Error(_), _))) {
            long.end(&mut out);
        }
        (next, String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_replies_to_chunks_form_one_reply() {
        let replies = [
            (Reply::Bools { mask: vec![0b01], len: 2 }, false),
            (Reply::Array(vec![Reply::Integer(-1), Reply::Bool(true)]), false),
        ];
        let expected = "+OK\r\n*4\r\n:1\r\n:0\r\n:-1\r\n:1\r\n".to_owned();
        assert_eq!(written(&replies, 4), (vec![Next::Chunk, Next::Chunk], expected));
    }

    #[test]
    fn a_reply_that_ends_early_announces_its_actual_length() {
        let full = Reply::error(text::bf::FULL);
        let replies =
            [(Reply::Bools { mask: vec![0], len: 2 }, false), (Reply::Array(vec![full]), true)];
        let (next, text) = written(&replies, 12);
        assert_eq!(next, [Next::Chunk, Next::End]);
        assert!(text.starts_with("+OK\r\n*3\r\n:0\r\n:0\r\n-"), "{text}");
    }

    #[test]
    fn an_error_replaces_the_reply_written_so_far() {
        let replies =
            [(Reply::Bools { mask: vec![0], len: 2 }, false), (Reply::error("WRONGTYPE"), false)];
        assert_eq!(written(&replies, 4), (vec![Next::Chunk, Next::Refusal], "+OK\r\n".to_owned()));
    }
}
