//! `tamis serve`: the filter server.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use tamis_server::{Config, HttpPort, Server, ServerError};

use crate::exit::{Exit, Failure, Outcome};
use crate::notice;

/// Serves filters to any Redis client.
///
/// Speaks RESP2 and RESP3, and answers BF.* and CF.* as RedisBloom does. Options have Redis's names, and are taken from
/// flags, then from the environment, then from a file.
///
/// Changes are kept in a log in the folder --dir, synced once a second: a crash of the machine may lose the last second,
/// a crash of the server loses nothing that was answered.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis serve
  tamis serve --port 7000 --requirepass secret --bind 0.0.0.0
  redis-cli BF.RESERVE seen 0.01 1000000
  redis-cli BF.ADD seen user:1
  redis-cli BF.EXISTS seen user:2

Ends with Ctrl-C, a TERM signal or the command SHUTDOWN. A HUP signal reads the files of TLS anew.")]
pub struct Args {
    /// Reads options from a TOML file, such as port = 6379 and maxmemory = "2gb"
    #[arg(long, value_name = "FILE", env = "TAMIS_CONFIG")]
    config: Option<PathBuf>,

    /// Listens on this port; 0 takes any that is free, no turns it off beside --tls-port [default: 6379]
    #[arg(long, value_name = "PORT", env = "TAMIS_PORT")]
    port: Option<String>,

    /// Listens on these addresses or names, separated by spaces or commas [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESSES", env = "TAMIS_BIND")]
    bind: Option<String>,

    /// Serves the console on this port: auto is 8379 if that is free, no is none [default: auto]
    #[arg(long, value_name = "PORT", env = "TAMIS_HTTP_PORT")]
    http_port: Option<String>,

    /// Serves the console on this address [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", env = "TAMIS_HTTP_BIND")]
    http_bind: Option<String>,

    /// Asks clients for this password; in the environment other users cannot read it
    #[arg(long, value_name = "PASSWORD", env = "TAMIS_REQUIREPASS", hide_env_values = true)]
    requirepass: Option<String>,

    /// Reads users and their rights from this file, a line "user name rule ..." each
    #[arg(long, value_name = "FILE", env = "TAMIS_ACLFILE")]
    aclfile: Option<String>,

    /// Listens on this port for TLS [default: no]
    #[arg(long, value_name = "PORT", env = "TAMIS_TLS_PORT")]
    tls_port: Option<String>,

    /// Shows clients this certificate, and those up to its root, in PEM
    #[arg(long, value_name = "FILE", env = "TAMIS_TLS_CERT_FILE")]
    tls_cert_file: Option<String>,

    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", env = "TAMIS_TLS_KEY_FILE")]
    tls_key_file: Option<String>,

    /// Takes certificates of clients that these have signed, in PEM
    #[arg(long, value_name = "FILE", env = "TAMIS_TLS_CA_CERT_FILE")]
    tls_ca_cert_file: Option<String>,

    /// Asks clients for certificates: yes, no or optional [default: yes]
    #[arg(long, value_name = "WHETHER", env = "TAMIS_TLS_AUTH_CLIENTS")]
    tls_auth_clients: Option<String>,

    /// Refuses to listen off loopback without a password [default: yes]
    #[arg(long, value_name = "YES|NO", env = "TAMIS_PROTECTED_MODE")]
    protected_mode: Option<String>,

    /// Answers with so many threads; 0 is one a core [default: 0]
    #[arg(long, value_name = "N", env = "TAMIS_IO_THREADS")]
    io_threads: Option<String>,

    /// Takes so many connections at most [default: 10000]
    #[arg(long, value_name = "N", env = "TAMIS_MAXCLIENTS")]
    maxclients: Option<String>,

    /// Adds nothing when filters take more memory, such as 2gb; 0 is no limit [default: 0]
    #[arg(long, value_name = "SIZE", env = "TAMIS_MAXMEMORY")]
    maxmemory: Option<String>,

    /// Keeps changes in a log; with no, all is gone when the server ends [default: yes]
    #[arg(long, value_name = "YES|NO", env = "TAMIS_APPENDONLY")]
    appendonly: Option<String>,

    /// Keeps the log and its snapshots in this folder, which is made [default: tamis-data]
    #[arg(long, value_name = "DIR", env = "TAMIS_DIR")]
    dir: Option<String>,

    /// Syncs the log to the disk: always (before each answer), everysec or no [default: everysec]
    #[arg(long, value_name = "WHEN", env = "TAMIS_APPENDFSYNC")]
    appendfsync: Option<String>,

    /// Closes connections that are idle for so many seconds; 0 keeps them [default: 0]
    #[arg(long, value_name = "SECONDS", env = "TAMIS_TIMEOUT")]
    timeout: Option<String>,

    /// Hashes items of new filters with a secret key: random (drawn once, kept in --dir), none, or 32 hexadecimal digits;
    /// in the environment other users cannot read it [default: random]
    #[arg(long, value_name = "KEY", env = "TAMIS_HASH_KEY", hide_env_values = true)]
    hash_key: Option<String>,

    /// What new Bloom filters are: tamis (faster and smaller) or redisbloom (the same bits) [default: tamis]
    #[arg(long, value_name = "LAYOUT", env = "TAMIS_BF_LAYOUT")]
    bf_layout: Option<String>,

    /// Sets another option, such as bf-error-rate=0.001; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    others: Vec<String>,

    /// Says more or less on stderr: error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "TAMIS_LOGLEVEL")]
    loglevel: tracing::Level,

    /// Writes each event on stderr as text, or as a line of JSON
    #[arg(long, value_name = "FORMAT", default_value = "text", env = "TAMIS_LOG_FORMAT")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

impl Args {
    /// The options given as flags or in the environment.
    fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("port", &self.port),
            ("bind", &self.bind),
            ("http-port", &self.http_port),
            ("http-bind", &self.http_bind),
            ("requirepass", &self.requirepass),
            ("aclfile", &self.aclfile),
            ("tls-port", &self.tls_port),
            ("tls-cert-file", &self.tls_cert_file),
            ("tls-key-file", &self.tls_key_file),
            ("tls-ca-cert-file", &self.tls_ca_cert_file),
            ("tls-auth-clients", &self.tls_auth_clients),
            ("protected-mode", &self.protected_mode),
            ("io-threads", &self.io_threads),
            ("maxclients", &self.maxclients),
            ("maxmemory", &self.maxmemory),
            ("appendonly", &self.appendonly),
            ("dir", &self.dir),
            ("appendfsync", &self.appendfsync),
            ("timeout", &self.timeout),
            ("hash-key", &self.hash_key),
            ("bf-layout", &self.bf_layout),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

pub fn run(args: &Args) -> Outcome {
    let config = configure(args)?;
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        // A log that cannot be written must not end the server, and there is nowhere to say so.
        .log_internal_errors(false)
        .with_max_level(if notice::is_quiet() { tracing::Level::ERROR } else { args.loglevel })
        .with_target(false);
    match args.log_format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => {
            log.json().flatten_event(true).with_current_span(false).with_span_list(false).init();
        }
    }
    let is_kept = config.append_only;
    let server = Server::start(config).map_err(|error| match error {
        ServerError::Durability(error) => Failure::new(format!("--dir: {error}")),
        error => Failure::new(error),
    })?;
    // Before it says that it is there: whoever waits for that may end it at once.
    heed_signals(&server)?;
    for address in server.addresses() {
        tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "tamis is ready for Redis clients");
    }
    for address in server.tls_addresses() {
        tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "tamis is ready for Redis clients over TLS");
    }
    if let Some(address) = server.http_address() {
        tracing::info!(url = %format_args!("http://{address}/"), "the console is there");
    }
    if !is_kept {
        tracing::warn!("filters are in memory only: they are gone when the server ends");
    }
    tell_systemd();
    server.wait().map_err(Failure::new)?;
    tracing::info!("the server has ended");
    Ok(Exit::Yes)
}

fn configure(args: &Args) -> Result<Config, Failure> {
    let mut config = Config { http_port: HttpPort::Auto, ..Config::default() };
    if let Some(path) = &args.config {
        config.read_file(path).map_err(Failure::new)?;
    }
    for (name, value) in args.given() {
        config.set(name, value).map_err(|error| match name {
            // Secrets, even mistyped ones, are not repeated.
            "hash-key" | "requirepass" => Failure::new(format!("--{name}: {error}")),
            _ => Failure::new(format!("--{name} {value}: {error}")),
        })?;
    }
    for option in &args.others {
        let (name, value) = option.split_once('=').ok_or_else(|| {
            Failure::new(format!("--set {option}: give NAME=VALUE, such as bf-error-rate=0.001"))
        })?;
        config
            .set(name, value)
            .map_err(|error| Failure::new(format!("--set {option}: {error}")))?;
    }
    Ok(config)
}

/// Tells systemd that the server is ready, if that started it (`Type=notify`).
#[cfg(unix)]
fn tell_systemd() {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let told = std::os::unix::net::UnixDatagram::unbound()
        .and_then(|datagram| datagram.send_to(b"READY=1", Path::new(&socket)));
    if let Err(error) = told {
        tracing::warn!(%error, "cannot tell systemd that the server is ready");
    }
}

#[cfg(not(unix))]
fn tell_systemd() {}

#[cfg(unix)]
fn heed_signals(server: &Server) -> Result<(), Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(|error| Failure::new(format!("cannot wait for signals: {error}")))?;
    let (stopper, renewer) = (server.stopper(), server.renewer());
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal != SIGHUP {
                return stopper.stop();
            }
            match renewer.renew() {
                Ok(true) => tracing::info!("the files of TLS are read anew"),
                Ok(false) => tracing::info!("nothing is read anew: there is no TLS"),
                Err(error) => {
                    tracing::error!(%error, "the files of TLS are not read anew, the old stay");
                }
            }
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn heed_signals(_: &Server) -> Result<(), Failure> {
    Ok(())
}
