//! The decoder returns the requests that were sent, for any split of their bytes into pieces.

use proptest::prelude::*;
use tamis_resp::{Limits, ProtocolError, Request, RequestDecoder};

type Command = Vec<Vec<u8>>;

/// The commands of a pipeline without empty requests, and the error that ended the pipeline.
type Pipeline = (Vec<Command>, Option<ProtocolError>);

const LIMITS: Limits = Limits { max_words: 20_000, max_word_bytes: 5000, authenticated: true };

/// Reads pieces as a server does: each piece is appended to a buffer, and consumed bytes are
/// removed.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: Limits) -> Pipeline {
    let mut decoder = RequestDecoder::new(limits);
    let mut buffer = Vec::new();
    let mut commands = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        // Each piece has its own vector: the decoder must keep the words that it has found.
        let mut words = Vec::new();
        let mut start = 0;
        loop {
            let input = &buffer[start..];
            start += match decoder.next(input, &mut words) {
                Ok(Some(Request::Words { consumed })) => {
                    commands.push(words.iter().map(|word| word.of(input).to_vec()).collect());
                    consumed
                }
                Ok(Some(Request::Quoted { consumed, argv: words })) => {
                    commands.push(words);
                    consumed
                }
                Ok(Some(Request::Nothing { consumed })) => consumed,
                Ok(None) => break,
                Err(error) => return (commands, Some(error)),
            };
        }
        buffer.drain(..start);
    }
    (commands, None)
}

/// Splits bytes into pieces of these sizes, repeating the list of sizes.
fn cut<'a>(input: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = input;
    sizes.iter().cycle().map_while(move |&size| {
        let (piece, behind) = rest.split_at_checked(size).unwrap_or((rest, &[]));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Reads arrays in the slowest, most obvious way. Also returns the number of bytes before an inline
/// command.
fn read_obviously(input: &[u8]) -> (Pipeline, usize) {
    fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let end = rest.iter().position(|&byte| byte == b'\r')?;
        let line = &rest[..end];
        *rest = rest.get(end + 2..)?;
        Some(line)
    }
    fn number(digits: &[u8]) -> Option<i64> {
        let number: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
        (number.to_string().as_bytes() == digits).then_some(number)
    }
    fn command(rest: &mut &[u8]) -> Result<Option<Command>, ProtocolError> {
        let Some(first) = line(rest) else { return Ok(None) };
        let count = number(&first[1..]).filter(|&count| count <= LIMITS.max_words as i64);
        let mut words = Vec::new();
        for _ in 0..count.ok_or(ProtocolError::Count)? {
            let Some(&found) = rest.first() else { return Ok(None) };
            let Some(length) = line(rest) else { return Ok(None) };
            if found != b'$' {
                return Err(ProtocolError::ExpectedBulk { found });
            }
            let length = number(&length[1..]).and_then(|length| usize::try_from(length).ok());
            let length = length.filter(|&length| length <= LIMITS.max_word_bytes);
            let length = length.ok_or(ProtocolError::BulkLength)?;
            let Some(behind) = rest.get(length + 2..) else { return Ok(None) };
            words.push(rest[..length].to_vec());
            *rest = behind;
        }
        Ok(Some(words))
    }
    let (mut rest, mut commands) = (input, Vec::new());
    loop {
        match rest.first() {
            Some(b'*') => {}
            _ => return ((commands, None), input.len() - rest.len()),
        }
        match command(&mut rest) {
            Ok(Some(words)) if words.is_empty() => {}
            Ok(Some(words)) => commands.push(words),
            Ok(None) => return ((commands, None), input.len()),
            Err(error) => return ((commands, Some(error)), input.len()),
        }
    }
}

fn array(words: &Command) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn words(word: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Command> {
    prop::collection::vec(word, 1..6)
}

/// A request with its words.
fn request() -> impl Strategy<Value = (Vec<u8>, Option<Command>)> {
    let byte = prop_oneof![prop::sample::select(&b"\r\n*$0 '\""[..]), any::<u8>()];
    let word = prop_oneof![
        8 => prop::collection::vec(byte, 0..20),
        1 => prop::collection::vec(any::<u8>(), 0..5000),
    ];
    let end = prop::sample::select(vec!["\n", "\r\n"]);
    let typed = words("[a-z0-9$]{1,8}".prop_map(String::into_bytes));
    let quoted = words(prop::collection::vec(any::<u8>(), 0..8));
    prop_oneof![
        6 => words(word).prop_map(|words| (array(&words), Some(words))),
        2 => (typed, end.clone()).prop_map(|(words, end)| {
            ([words.join(&b' '), end.into()].concat(), Some(words))
        }),
        2 => (quoted, end).prop_map(|(words, end)| {
            let quote = |word: &Vec<u8>| {
                let escaped: String = word.iter().map(|byte| format!("\\x{byte:02X}")).collect();
                format!("\"{escaped}\"")
            };
            let line = words.iter().map(quote).collect::<Vec<_>>().join(" ");
            ((line + end).into_bytes(), Some(words))
        }),
        1 => prop::sample::select(vec!["\r\n", "\n", " \t\n", "*0\r\n", "*-1\r\n", "*-70000000000\r\n"])
            .prop_map(|nothing| (nothing.as_bytes().to_vec(), None)),
    ]
}

proptest! {
    #[test]
    fn input_split_anywhere_gives_the_commands_that_were_sent(
        requests in prop::collection::vec(request(), 0..12),
        sizes in prop::collection::vec(1_usize..60, 1..20),
    ) {
        let input: Vec<u8> = requests.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let sent: Vec<_> = requests.into_iter().filter_map(|(_, words)| words).collect();
        prop_assert_eq!(read([&input[..]], LIMITS), (sent.clone(), None));
        prop_assert_eq!(read(cut(&input, &sizes), LIMITS), (sent.clone(), None));
        prop_assert_eq!(read(cut(&input, &[1]), LIMITS), (sent, None));
    }

    #[test]
    fn any_bytes_split_anywhere_give_the_same_commands_and_error(
        input in prop::collection::vec(prop::sample::select(&b"*$$11112205\r\r\n\n\n- a'\"\\x"[..]), 0..80),
        sizes in prop::collection::vec(1_usize..10, 1..10),
        authenticated: bool,
    ) {
        let limits = Limits { max_words: 3, max_word_bytes: 20, authenticated };
        let whole = read([&input[..]], limits);
        prop_assert_eq!(&read(cut(&input, &sizes), limits), &whole);
        prop_assert_eq!(&read(cut(&input, &[1]), limits), &whole);
    }

    #[test]
    fn arrays_are_decoded_as_by_a_simple_decoder(
        lines in prop::collection::vec(
            "(\\*[0-2]|\\*[0-9+-]{0,10}|\\$[0-4]|\\$[0-4]|[$:][0-9+-]{0,10}|a{0,4})\r[\n-a]", 0..16
        ),
        sizes in prop::collection::vec(1_usize..10, 1..10),
    ) {
        let input = format!("*2\r\n$1\r\n{}", lines.concat()).into_bytes();
        let (pipeline, arrays) = read_obviously(&input);
        prop_assert_eq!(&read([&input[..arrays]], LIMITS), &pipeline);
        prop_assert_eq!(&read(cut(&input[..arrays], &sizes), LIMITS), &pipeline);
    }
}

#[test]
fn a_long_command_in_many_pieces_is_decoded_once() {
    // Reading the whole command again for each piece would take hours.
    let words: Command = (0..1_000_000).map(|word| format!("item{word}").into_bytes()).collect();
    let input = array(&words);
    let limits = Limits::default();
    assert_eq!(read([&input[..]], limits), (vec![words.clone()], None));
    let mut decoder = RequestDecoder::new(limits);
    let mut spans = Vec::new();
    for end in (0..input.len()).step_by(37) {
        assert_eq!(decoder.next(&input[..end], &mut spans), Ok(None));
    }
    let request = decoder.next(&input, &mut spans);
    assert_eq!(request, Ok(Some(Request::Words { consumed: input.len() })));
    assert!(spans.iter().zip(&words).all(|(span, word)| span.of(&input) == word));
    assert_eq!(spans.len(), words.len());
}
