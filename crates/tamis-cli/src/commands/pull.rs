//! `tamis pull`: keeps a copy of a published filter.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::{IF_NONE_MATCH, LOCATION};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::json;
use tamis_guard::{BearerToken, EntityTag, HttpAnswer, HttpClient};

use crate::arguments::byte_size::ByteSize;
use crate::arguments::decode_options::DecodeArgs;
use crate::arguments::token_file;
use crate::arguments::window_span::duration;
use crate::exit::{CommandResult, Exit, Failure, plain};
use crate::filters::content_tag::{ContentTag, is_checksum};
use crate::filters::open_filter::Trust;
use crate::filters::opener::Opener;
use crate::io::messages;
use crate::io::output::{self, Output};
use crate::io::progress::Progress;

/// The maximum time until the head of a response arrives. Before a response, the server may have to
/// read a new file.
const HEAD_LIMIT: Duration = Duration::from_secs(60);

/// The first bytes of a snapshot of a guard.
const GUARD_MAGIC: &[u8] = b"\x89TGUARD\n";

/// Download a published filter if it has changed
///
/// The server is 'tamis publish', or any other server that serves files. The command compares
/// checksums, verifies the new file, and replaces the old file as a whole. Programs that have the
/// old file open can still read the old file.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis pull http://10.0.0.5:8380/filters/malicious.tamis -o malicious.tamis
  tamis pull https://example.com/seen.tamis -o seen.tamis --every 30s
  tamis pull http://10.0.0.5:8380/filters/a.tamis -o a.tamis --exit-code && systemctl reload app

Exit status: 0 the file is up to date, 1 it was up to date before (with --exit-code), 2 failed.")]
pub struct Args {
    /// Filter to download: http://HOST:PORT/filters/NAME, or the same with https
    #[arg(value_name = "URL")]
    url: String,

    /// File to keep up to date
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Check the server for a new filter repeatedly, at this interval, until a signal
    #[arg(long, value_name = "TIME", value_parser = duration)]
    every: Option<Duration>,

    /// Send the token in this file: Authorization: Bearer TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Trust servers whose certificate is signed by a certificate in this PEM file [default: the
    /// system's certificates]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Refuse a filter that is larger than SIZE
    #[arg(long, value_name = "SIZE", default_value = "64G")]
    max_size: ByteSize,

    /// Exit with status 1 if the file was already up to date
    #[arg(long, conflicts_with = "every")]
    exit_code: bool,

    /// Print one line of JSON for each check of the server
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let mut pull = Pull::new(args)?;
    loop {
        let result = pull.once();
        match (args.every, result) {
            (Some(_), Err(Failure::Message(message))) => messages::error(message),
            (_, Err(failure)) => return Err(failure),
            (None, Ok(true)) => return Ok(Exit::Yes),
            (None, Ok(false)) => return Ok(if args.exit_code { Exit::No } else { Exit::Yes }),
            (Some(_), Ok(_)) => {}
        }
        std::thread::sleep(args.every.unwrap_or_default());
    }
}

/// A URL and the local copy of its filter.
struct Pull<'a> {
    args: &'a Args,
    client: HttpClient,
    path: String,
    token: Option<BearerToken>,
    /// The last tag of a server whose tags are not checksums.
    last: Option<ForeignTag>,
}

/// The tag of a server whose tags are not checksums, and the checksum of the content with this tag.
struct ForeignTag {
    tag: EntityTag,
    content: EntityTag,
}

impl<'a> Pull<'a> {
    fn new(args: &'a Args) -> Result<Self, Failure> {
        if output::is_stdout(&args.output) {
            return Err(Failure::new("pull compares and replaces a file: name one with -o"));
        }
        let url: Uri = args.url.parse().map_err(|_| {
            Failure::new(format!(
                "'{}' is not a URL: write http://HOST:PORT/filters/NAME",
                args.url
            ))
        })?;
        let token = args.token_file.as_deref().map(token_file::read).transpose()?;
        let client = HttpClient::new(&url, args.ca.as_deref());
        let client = client.map_err(|error| Failure::new(format!("{}: {error}", args.url)))?;
        let path = url.path_and_query().map_or("/", |it| it.as_str()).to_owned();
        Ok(Self { args, client, path, token, last: None })
    }

    /// Downloads the filter if it has changed. Returns true if the file was replaced.
    fn once(&mut self) -> Result<bool, Failure> {
        let url = &self.args.url;
        let present = tag_of(&self.args.output)?;
        let mut headers = HeaderMap::new();
        if let Some(token) = &self.token {
            token.add_to(&mut headers);
        }
        if let Some(present) = &present {
            headers.insert(IF_NONE_MATCH, present.to_header());
            // If the local copy has been damaged, the content of the copy does not match the tag of
            // the server.
            if let Some(last) = self.last.as_ref().filter(|last| last.content == *present) {
                headers.append(IF_NONE_MATCH, last.tag.to_header());
            }
        }
        let answer = self.client.get(&self.path, &headers, HEAD_LIMIT);
        let mut answer = answer.map_err(|error| Failure::new(format!("{url}: {error}")))?;
        let (is_new, tag) = match (answer.head().status, present) {
            (StatusCode::NOT_MODIFIED, Some(present)) => (false, present),
            (StatusCode::OK, present) => {
                let expected = EntityTag::of_answer(&answer.head().headers);
                let tag = download(self.args, &mut answer, present.as_ref(), expected.as_ref())?;
                drop(answer);
                let foreign = expected.filter(|tag| !is_checksum(tag));
                self.last = foreign.map(|it| ForeignTag { tag: it, content: tag.clone() });
                (present.as_ref() != Some(&tag), tag)
            }
            _ => return Err(refused(url, &answer)),
        };
        report(self.args, is_new, &tag)?;
        Ok(is_new)
    }
}

/// Returns the tag of a file, or `None` if the file does not exist.
fn tag_of(path: &Path) -> Result<Option<EntityTag>, Failure> {
    // The check of the file type precedes `File::open`, because opening a pipe may block forever.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Failure::new(format!("{}: is not a regular file", path.display())));
    }
    match File::open(path).and_then(|file| ContentTag::of_file(&file)) {
        Ok(tag) => Ok(Some(tag)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::io(path.display(), &error)),
    }
}

/// Returns the failure for a status of a response.
fn refused(url: &str, answer: &HttpAnswer<'_>) -> Failure {
    let status = answer.head().status;
    let advice = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            ": give the token of the server with --token-file".to_owned()
        }
        StatusCode::NOT_FOUND => ": the page / of 'tamis publish' lists its filters".to_owned(),
        StatusCode::SERVICE_UNAVAILABLE => ": try again in some seconds".to_owned(),
        _ if status.is_redirection() => {
            let location = answer.head().headers.get(LOCATION).and_then(|it| it.to_str().ok());
            match location {
                Some(location) => format!(", a redirection: use the URL {location}"),
                None => ", a redirection without a target".to_owned(),
            }
        }
        _ => String::new(),
    };
    Failure::new(format!("{url}: the server answers {status}{advice}"))
}

/// Downloads the body of the response to a temporary file beside the output, and verifies the body.
/// Replaces the output, unless the output already has the same bytes as the body. Returns the tag
/// of the body.
fn download(
    args: &Args,
    answer: &mut HttpAnswer<'_>,
    present: Option<&EntityTag>,
    expected: Option<&EntityTag>,
) -> Result<EntityTag, Failure> {
    let url = &args.url;
    let max_bytes = args.max_size.bytes;
    let too_large =
        || Failure::new(format!("{url}: is larger than {}: see --max-size", args.max_size));
    let total = answer.len_bytes();
    if total.is_some_and(|total| total > max_bytes) {
        return Err(too_large());
    }
    // If the download needs a token, other users of this machine must not read the file.
    let mut output = match args.token_file {
        Some(_) => Output::open_private(&args.output)?,
        None => Output::open(Some(&args.output))?,
    };
    let mut progress = Progress::new(total);
    let mut tag = ContentTag::default();
    let mut chunk = vec![0; 64 << 10];
    let mut head = Vec::new();
    loop {
        let read = answer.read(&mut chunk);
        let read = read.map_err(|error| Failure::new(format!("{url}: {}", plain(&error))))?;
        if read == 0 {
            break;
        }
        if head.len() < GUARD_MAGIC.len() {
            head.extend(&chunk[..read.min(GUARD_MAGIC.len())]);
        }
        tag.update(&chunk[..read]);
        output.write(&chunk[..read])?;
        if output.written_bytes() > max_bytes {
            return Err(too_large());
        }
        progress.at(output.written_bytes());
    }
    let tag = tag.tag();
    if let Some(expected) = expected.filter(|it| is_checksum(it) && **it != tag) {
        let message = "was damaged or changed on the way; pull again";
        return Err(Failure::new(format!("{url}: {message} ({tag}, expected {expected})")));
    }
    if present == Some(&tag) {
        return Ok(tag);
    }
    if head.starts_with(GUARD_MAGIC) {
        return Err(Failure::new(format!(
            "{url}: is the set of a guard, which only a guard can follow: \
             source = {{ kind = \"leader\", ... }}"
        )));
    }
    verify(url, &mut output)?;
    output.finish()?;
    Ok(tag)
}

/// Rejects a downloaded file that is not a complete filter, before the file replaces the output.
fn verify(url: &str, output: &mut Output) -> Result<(), Failure> {
    let Some(path) = output.unfinished()? else { return Ok(()) };
    let decode = DecodeArgs::default();
    let all = Opener::new(&decode).all(&path, Trust::Verify);
    all.map(drop).map_err(|failure| failure.renamed(&path, url))
}

/// Reports the result to the user.
fn report(args: &Args, is_new: bool, tag: &EntityTag) -> Result<(), Failure> {
    let name = args.output.display();
    let file = args.output.metadata().map_err(|error| Failure::io(name.to_string(), &error))?;
    if args.json {
        let line = json!({
            "url": args.url,
            "file": name.to_string(),
            "changed": is_new,
            "bytes": file.len(),
            "etag": tag.to_string(),
        });
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        return written.map_err(|error| Failure::io("standard output", &error));
    }
    if is_new {
        note!("{name}: a new filter of {}", ByteSize { bytes: file.len() });
    } else if args.every.is_none() {
        note!("{name}: is up to date");
    }
    Ok(())
}
