//! Tests that the decoder returns the same requests for one piece of input and for several pieces. Also tests that the
//! decoder returns a reply, an incomplete reply or an error for any bytes.

use tamis_resp::{Limits, Protocol, ProtocolError, Reply, Request, RequestDecoder};

pub(crate) fn run(data: (&[u8], bool, &[u8])) {
    let (cuts, authenticated, input) = data;
    let limits = Limits { authenticated, ..Limits::default() };
    let whole = commands([input], limits);
    assert_eq!(commands(pieces(input, cuts), limits), whole);

    if let Ok(Some((reply, len))) = Reply::decode(input) {
        for cut in 0..len.min(300) {
            assert_eq!(Reply::decode(&input[..cut]).map(|start| start.is_none()), Ok(true));
        }
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut once = Vec::new();
            reply.encode(protocol, &mut once);
            let (read, len) = Reply::decode(&once).expect("a reply").expect("all of it");
            assert_eq!(len, once.len());
            let mut twice = Vec::new();
            read.encode(protocol, &mut twice);
            assert_eq!(once, twice);
        }
    }
}

/// Decodes requests like a server, until the end of the input or the first error.
fn commands<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: Limits,
) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let mut decoder = RequestDecoder::new(limits);
    let (mut buffer, mut words, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        let mut start = 0;
        loop {
            let input = &buffer[start..];
            start += match decoder.next(input, &mut words) {
                Ok(Some(Request::Words { consumed })) => {
                    assert!(words.len() <= consumed);
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

/// Splits the input into pieces of these sizes. The last piece contains the remaining bytes.
fn pieces<'a>(input: &'a [u8], sizes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = input;
    let sizes = sizes.iter().map(|&size| usize::from(size)).chain([usize::MAX]);
    sizes.map(move |size| {
        let (piece, behind) = rest.split_at(size.min(rest.len()));
        rest = behind;
        piece
    })
}
