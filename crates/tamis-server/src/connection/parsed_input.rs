//! The commands in the received bytes of a connection, and the memory of long commands.

use smallvec::SmallVec;
use tamis_resp::{ProtocolError, Request, RequestDecoder, WordSpan};

/// The maximum number of arguments of a long command that are parsed before the thread serves other
/// connections.
const TURN_WORDS: usize = 1 << 14;

/// The buffer for the arguments of a command is freed above this capacity, because the server
/// counts the memory of the buffer for no client.
const KEEP_WORDS: usize = 256;

/// An allocation of this size, in bytes, is mapped separately: glibc uses `mmap` above 32 MiB. The
/// unused part of a mapped allocation takes no memory. A mapped allocation grows without a copy,
/// and parts of the allocation can be returned to the system.
const APART_BYTES: usize = 33 << 20;

/// The number of bytes that are returned to the system at a time.
const RELEASE_BYTES: usize = 4 << 20;

/// The complete commands in the input of a connection.
///
/// A client that waits for each reply sends one short command at a time. The parser allocates no
/// memory for a single short command.
#[derive(Default)]
pub(super) struct ParsedInput {
    commands: SmallVec<[ParsedCommand; 2]>,
    /// The arguments of the short commands.
    spans: SmallVec<[WordSpan; 8]>,
    /// The number of bytes that the complete commands take in the input.
    pub consumed: usize,
    /// The error if the bytes after the complete commands are not a valid command.
    pub error: Option<ProtocolError>,
}

/// A parsed command of the input. The arguments are spans of the input or separate strings.
enum ParsedCommand {
    Spans(std::ops::Range<usize>),
    /// A command with very many arguments. The offsets of the spans are relative to byte `start` of
    /// the input.
    Long {
        start: usize,
        spans: Vec<WordSpan>,
    },
    Quoted(Vec<Vec<u8>>),
}

impl ParsedInput {
    /// Parses all complete commands, or only the first command. `found` is a buffer for the
    /// arguments of one command.
    pub fn parse(
        input: &[u8],
        decoder: &mut RequestDecoder,
        is_one: bool,
        found: &mut Vec<WordSpan>,
    ) -> Self {
        let mut parsed = Self::default();
        loop {
            let start = parsed.consumed;
            let bytes = match decoder.next(&input[start..], found) {
                Ok(Some(Request::Words { consumed })) => {
                    parsed.push(start, found);
                    consumed
                }
                Ok(Some(Request::Quoted { consumed, argv })) => {
                    parsed.commands.push(ParsedCommand::Quoted(argv));
                    consumed
                }
                Ok(Some(Request::Nothing { consumed })) => consumed,
                Ok(None) => break,
                Err(error) => {
                    parsed.error = Some(error);
                    break;
                }
            };
            parsed.consumed += bytes;
            if is_one {
                break;
            }
        }
        if found.capacity() > KEEP_WORDS {
            *found = Vec::new();
        }
        parsed
    }

    /// Adds a command that begins at byte `start` of the input.
    fn push(&mut self, start: usize, found: &mut Vec<WordSpan>) {
        if found.len() > TURN_WORDS {
            // Move the spans and do not copy them, because a copy would block the other connections
            // of the thread for too long.
            let spans = std::mem::take(found);
            self.commands.push(ParsedCommand::Long { start, spans });
            return;
        }
        let first = self.spans.len();
        let moved = |span: &WordSpan| WordSpan { start: span.start + start, end: span.end + start };
        self.spans.extend(found.iter().map(moved));
        self.commands.push(ParsedCommand::Spans(first..self.spans.len()));
    }

    /// Returns the arguments of all short commands.
    pub fn short_words<'i>(&self, input: &'i [u8]) -> SmallVec<[&'i [u8]; 8]> {
        self.spans.iter().map(|span| span.of(input)).collect()
    }

    /// Returns the arguments of each quoted or long command.
    pub async fn other_words<'i>(&'i self, input: &'i [u8]) -> Vec<Vec<&'i [u8]>> {
        let mut words: Vec<Vec<&[u8]>> = Vec::new();
        for command in &self.commands {
            match command {
                ParsedCommand::Spans(_) => {}
                ParsedCommand::Quoted(argv) => words.push(argv.iter().map(Vec::as_slice).collect()),
                ParsedCommand::Long { start, spans } => {
                    words.push(long_words(&input[*start..], spans).await);
                }
            }
        }
        words
    }

    /// Returns all commands. The arguments come from [`short_words`](Self::short_words) and
    /// [`other_words`](Self::other_words).
    pub fn commands<'w, 'i>(
        &self,
        short: &'w [&'i [u8]],
        others: &'w [Vec<&'i [u8]>],
    ) -> SmallVec<[&'w [&'i [u8]]; 2]> {
        let mut others = others.iter();
        let words = self.commands.iter().map(|command| match command {
            ParsedCommand::Spans(range) => &short[range.clone()],
            ParsedCommand::Quoted(_) | ParsedCommand::Long { .. } => {
                others.next().expect("one entry for each quoted or long command").as_slice()
            }
        });
        words.collect()
    }

    /// Tests whether at least one command is long. Only long commands need
    /// [`release`](Self::release).
    pub fn has_long(&self) -> bool {
        self.commands.iter().any(|command| matches!(command, ParsedCommand::Long { .. }))
    }

    /// Frees the memory of long commands.
    pub async fn release(self) {
        for command in self.commands {
            if let ParsedCommand::Long { spans, .. } = command {
                release(spans).await;
            }
        }
    }
}

/// Collects the arguments of a long command from the input. The task yields to other connections
/// repeatedly.
async fn long_words<'i>(input: &'i [u8], spans: &[WordSpan]) -> Vec<&'i [u8]> {
    let mut argv = Vec::new();
    reserve_apart(&mut argv);
    argv.reserve_exact(spans.len());
    for spans in spans.chunks(TURN_WORDS) {
        tokio::task::yield_now().await;
        argv.extend(spans.iter().map(|span| span.of(input)));
    }
    argv
}

/// Reserves [`APART_BYTES`] for a vector that will become long.
pub(super) fn reserve_apart<T>(memory: &mut Vec<T>) {
    let room = APART_BYTES / size_of::<T>();
    memory.reserve_exact(room.saturating_sub(memory.len()));
}

/// Frees a vector whose elements need no drop. The task yields to other connections repeatedly.
pub(super) async fn release<T: Copy>(mut memory: Vec<T>) {
    memory.clear();
    release_capacity(&mut memory).await;
}

/// Returns most of the unused capacity of a vector to the system. Yields to other connections
/// repeatedly, because returning ten MiB takes about a millisecond.
pub(super) async fn release_capacity<T>(memory: &mut Vec<T>) {
    let turn = RELEASE_BYTES / size_of::<T>();
    while memory.capacity() - memory.len() > turn {
        memory.shrink_to(memory.capacity() - turn);
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_memory_is_given_back_but_for_a_little() {
        let mut memory: Vec<u64> = (0..1000).collect();
        reserve_apart(&mut memory);
        assert!(memory.capacity() * 8 >= APART_BYTES);
        release_capacity(&mut memory).await;
        assert!(memory.capacity() * 8 <= RELEASE_BYTES + 8000);
        assert!(memory.into_iter().eq(0..1000));
    }
}
