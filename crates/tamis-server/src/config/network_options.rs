//! The options for addresses, ports and TLS, one row each.

use crate::config::config_option::OptionGroup::{Network, Tls};
use crate::config::config_option::{ConfigOption, option};
use crate::config::values::{name_of, named, parse_path, parse_port, put, shown_path, shown_port};
use crate::config::{BindAddress, ClientCertificates, HttpPort};

const CLIENT_CERTIFICATES: [(ClientCertificates, &str); 3] = [
    (ClientCertificates::Required, "yes"),
    (ClientCertificates::Optional, "optional"),
    (ClientCertificates::NotRequested, "no"),
];

pub(super) static NETWORK: [ConfigOption; 9] = [
    option(
        "bind",
        Network,
        "ADDRESSES",
        "IP addresses, or host names that resolve to IP addresses",
    )
    .help(
        "Listen on these addresses or names, separated by spaces or commas [default: \
            127.0.0.1]",
    )
    .get(|config| config.bind.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    .set(|config, text| {
        let parsed: Result<Vec<BindAddress>, _> =
            BindAddress::split(text).map(str::parse).collect();
        config.bind = parsed.ok().filter(|all| !all.is_empty())?;
        Some(())
    }),
    option("http-bind", Network, "ADDRESS", "an IP address")
        .help("Serve the console on this address [default: 127.0.0.1]")
        .get(|config| config.http_bind.to_string())
        .set(|config, text| put(&mut config.http_bind, text.parse().ok())),
    option("http-port", Network, "PORT", "'no', 'auto' or 0 to 65535")
        .help(
            "Serve the console on this port; auto is 8379 if it is free, no disables the console \
            [default: auto]",
        )
        .get(|config| match config.http_port {
            HttpPort::Off => "no".to_owned(),
            HttpPort::Auto => "auto".to_owned(),
            HttpPort::At(port) => port.to_string(),
        })
        .set(|config, text| {
            config.http_port = match text.to_ascii_lowercase().as_str() {
                "no" => HttpPort::Off,
                "auto" => HttpPort::Auto,
                port => HttpPort::At(port.parse().ok()?),
            };
            Some(())
        }),
    option("port", Network, "PORT", "0 to 65535, or no")
        .help(
            "Listen on this port; 0 selects a free port, no disables it beside --tls-port \
            [default: 6379]",
        )
        .get(|config| shown_port(config.listens_plain.then_some(config.port)))
        .set(|config, text| {
            let port = parse_port(text)?;
            config.listens_plain = port.is_some();
            config.port = port.unwrap_or(config.port);
            Some(())
        }),
    option("tls-auth-clients", Tls, "WHETHER", "'yes', 'no' or 'optional'")
        .help("Ask clients for certificates: yes, no or optional [default: yes]")
        .get(|config| name_of(config.tls_auth_clients, &CLIENT_CERTIFICATES))
        .set(|config, text| put(&mut config.tls_auth_clients, named(text, &CLIENT_CERTIFICATES)))
        .live(),
    option("tls-ca-cert-file", Tls, "FILE", "a file, or empty for none")
        .help("Read the CA certificates that sign client certificates, in PEM")
        .get(|config| shown_path(config.tls_ca_cert_file.as_ref()))
        .set(|config, text| put(&mut config.tls_ca_cert_file, Some(parse_path(text))))
        .live(),
    option("tls-cert-file", Tls, "FILE", "a file, or empty for none")
        .help("Read the certificate chain of the server, in PEM")
        .get(|config| shown_path(config.tls_cert_file.as_ref()))
        .set(|config, text| put(&mut config.tls_cert_file, Some(parse_path(text))))
        .live(),
    option("tls-key-file", Tls, "FILE", "a file, or empty for none")
        .help("Read the private key of the certificate, in PEM")
        .get(|config| shown_path(config.tls_key_file.as_ref()))
        .set(|config, text| put(&mut config.tls_key_file, Some(parse_path(text))))
        .live(),
    option("tls-port", Tls, "PORT", "0 to 65535, or no")
        .help("Listen on this port for TLS [default: no]")
        .get(|config| shown_port(config.tls_port))
        .set(|config, text| put(&mut config.tls_port, parse_port(text))),
];
