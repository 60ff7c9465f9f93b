//! The metrics of a server for Prometheus, in the text format 0.0.4.

use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::shared_state::SharedState;
use crate::stats::report::{FilterReport, filter_reports};
use crate::stats::{Called, bound_nanos};
use crate::system::clock::now_millis;
use crate::system::procfs::memory_of_process;

/// Writes all metrics of the server. Writes the individual metrics of a filter only if `may_see`
/// returns true for the key of the filter.
///
/// Reads the last measurement of each key. For filters with individual metrics, the function also
/// reads a part of the bits of the filter: see [`filter_reports`].
pub(crate) fn text(shared: &SharedState, may_see: impl Fn(&[u8]) -> bool) -> String {
    let mut out = Exposition::default();
    of_server(&mut out, shared);
    of_commands(&mut out, shared);
    of_filters(&mut out, shared, may_see);
    out.0
}

fn of_server(out: &mut Exposition, shared: &SharedState) {
    let stats = &shared.stats;
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    out.family("tamis_build_info", "The version of the running server.");
    out.sample("tamis_build_info", &[("version", env!("CARGO_PKG_VERSION").as_bytes())], 1);
    out.one("tamis_loading", "1 while the server reads its data.", 0);
    let started = shared.started_millis as f64 / 1000.0;
    let help = "Start time of the server, in seconds since 1970.";
    out.one("tamis_start_time_seconds", help, started);
    out.one("tamis_connected_clients", "Open connections.", shared.clients.len());
    let help = "Connections accepted since the server started.";
    out.one("tamis_connections_total", help, shared.clients.ever());
    let rejected = count(&stats.rejected);
    let help = "Connections refused since the server started.";
    out.one("tamis_rejected_connections_total", help, rejected);
    let (bytes_in, bytes_out) = (count(&stats.bytes_in), count(&stats.bytes_out));
    out.one("tamis_network_input_bytes_total", "Bytes received from clients.", bytes_in);
    out.one("tamis_network_output_bytes_total", "Bytes sent to clients.", bytes_out);
    let keys = shared.keyspace.shared().len();
    out.one("tamis_keys", "Keys, including expired keys that are not removed yet.", keys);
    out.one("tamis_expiring_keys", "Keys with an expiry time.", shared.keyspace.expiring());
    let help = "Keys removed because they expired.";
    out.one("tamis_expired_keys_total", help, count(&stats.expired_keys));
    let help = "Memory of keys, values and unsent replies, in bytes.";
    out.one("tamis_memory_bytes", help, shared.used_memory());
    let limit = shared.config().max_memory_bytes;
    out.one("tamis_memory_limit_bytes", "The limit maxmemory, in bytes; 0 for no limit.", limit);
    if let Some(bytes) = memory_of_process() {
        let help = "Resident memory of the process, in bytes.";
        out.one("process_resident_memory_bytes", help, bytes);
    }
    let Some(durable) = &shared.durable else { return };
    out.one("tamis_log_bytes", "Length of the current log, in bytes.", durable.log_bytes());
    let failed = u8::from(shared.log_failure().is_some());
    let help = "1 while changes are rejected because the log cannot be written.";
    out.one("tamis_log_failed", help, failed);
    let saved = count(&durable.last_save_millis) as f64 / 1000.0;
    let help = "Time of the last complete snapshot, in seconds since 1970.";
    out.one("tamis_last_save_timestamp_seconds", help, saved);
    let saving = u8::from(durable.is_saving());
    out.one("tamis_save_in_progress", "1 while a snapshot is written.", saving);
}

fn of_commands(out: &mut Exposition, shared: &SharedState) {
    let called: Vec<(String, Called)> = shared.stats.calls.each_called().collect();
    let mut each = |name, help, number: fn(&Called) -> u64| {
        out.family(name, help);
        for (command, called) in &called {
            out.sample(name, &[("command", command.as_bytes())], number(called));
        }
    };
    each("tamis_commands_total", "Commands that were run.", Called::calls);
    each("tamis_command_failures_total", "Commands that were run and returned an error.", |it| {
        it.failed
    });
    each("tamis_command_rejections_total", "Commands rejected before they were run.", |it| {
        it.rejected
    });

    let name = "tamis_command_duration_seconds";
    out.family_of("histogram", name, "Execution time of commands, in seconds.");
    for (command, called) in &called {
        let command = command.as_bytes();
        let mut sum = 0;
        for (bucket, calls) in called.buckets.iter().enumerate() {
            sum += calls;
            let bound = bound_nanos(bucket).map_or("+Inf".into(), |most| (most / 1e9).to_string());
            // The exposed buckets start at one microsecond. All calls that are shorter than one
            // microsecond are in the first exposed bucket.
            if bucket >= 5 {
                let labels = [("command", command), ("le", bound.as_bytes())];
                out.sample(&format!("{name}_bucket"), &labels, sum);
            }
        }
        out.sample(&format!("{name}_sum"), &[("command", command)], called.nanos as f64 / 1e9);
        out.sample(&format!("{name}_count"), &[("command", command)], sum);
    }

    let slow = shared.stats.slow.ever();
    let help = "Commands slower than slowlog-log-slower-than.";
    out.one("tamis_slow_commands_total", help, slow);

    out.family("tamis_errors_total", "Error replies, by error code.");
    for (code, count) in shared.stats.errors_by_code() {
        out.sample("tamis_errors_total", &[("code", code.as_bytes())], count);
    }
}

fn of_filters(out: &mut Exposition, shared: &SharedState, may_see: impl Fn(&[u8]) -> bool) {
    let config = shared.config();
    let limit = config.metrics_max_filters;
    let mut found = filter_reports(&shared.keyspace, &config.filters, limit, now_millis());
    found.reports.retain(|report| may_see(&report.key));
    let omitted = found.filters.saturating_sub(found.reports.len() as u64);
    out.one("tamis_filters", "Filters.", found.filters);
    let help = "Filters without their own metrics: see the option metrics-max-filters.";
    out.one("tamis_filters_omitted", help, omitted);
    let mut each = |name, help, number: fn(&FilterReport) -> Option<f64>| {
        out.family(name, help);
        for report in &found.reports {
            // If all bits of a filter are set, the estimated number of items is infinite.
            if let Some(number) = number(report).filter(|number| number.is_finite()) {
                let kind = report.info.kind.as_bytes();
                out.sample(name, &[("key", &report.key), ("kind", kind)], number);
            }
        }
    };
    each("tamis_filter_items", "Items, counted or estimated.", |it| Some(it.info.items));
    each(
        "tamis_filter_capacity_items",
        "Planned number of items; absent if there is no limit.",
        |it| it.info.capacity.map(|items| items as f64),
    );
    each("tamis_filter_headroom_items", "Items until the filter is over target or full.", |it| {
        it.info.headroom_items.map(|items| items as f64)
    });
    each("tamis_filter_fill_ratio", "Share of bits or slots in use.", |it| Some(it.info.fill));
    each("tamis_filter_estimated_rate", "Present false positive rate.", |it| {
        Some(it.info.rate_now)
    });
    each("tamis_filter_target_rate", "Planned false positive rate.", |it| it.info.rate_planned);
    each("tamis_filter_over_target", "1 if the rate is above the target.", |it| {
        Some(f64::from(u8::from(it.info.is_over_rate)))
    });
    each("tamis_filter_full", "1 if the filter refuses adds.", |it| {
        Some(f64::from(u8::from(it.info.is_full())))
    });
    each("tamis_filter_memory_bytes", "Memory of the filter, in bytes.", |it| {
        Some(it.info.bytes as f64)
    });
    each("tamis_filter_added_items_per_second", "Recent rate of new items.", |it| {
        it.items_per_second
    });
    each(
        "tamis_filter_seconds_to_limit",
        "Time until over target or full, at the present rate of adds.",
        |it| it.forecast.days().map(|days| days * 86_400.0),
    );
}

/// The text of the metrics in the exposition format.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    /// Writes the header lines of a metric. A metric whose name ends in `_total` is a counter; any
    /// other metric is a gauge.
    fn family(&mut self, name: &str, help: &str) {
        self.family_of(if name.ends_with("_total") { "counter" } else { "gauge" }, name, help);
    }

    fn family_of(&mut self, kind: &str, name: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("writing to text");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &[u8])], value: impl Display) {
        self.0 += name;
        for (i, (label, text)) in labels.iter().enumerate() {
            self.0.push(if i == 0 { '{' } else { ',' });
            self.0 += label;
            self.0 += "=\"";
            self.label(text);
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        writeln!(self.0, " {value}").expect("writing to text");
    }

    /// Writes the value of a label, which the format requires in UTF-8. An invalid byte is written
    /// as `\xHH`, and a backslash as `\\`. The exposition format requires that the backslashes in
    /// `\xHH` and `\\` are escaped again. Because of this encoding, different keys have different
    /// labels.
    fn label(&mut self, text: &[u8]) {
        for chunk in text.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => self.0 += r"\\\\",
                    '"' => self.0 += "\\\"",
                    '\n' => self.0 += "\\n",
                    // A control character could break the line of the metric or the terminal of the
                    // user.
                    c if c.is_control() => _ = write!(self.0, "\\\\u{{{:x}}}", u32::from(c)),
                    c => self.0.push(c),
                }
            }
            for byte in chunk.invalid() {
                _ = write!(self.0, "\\\\x{byte:02x}");
            }
        }
    }

    /// Writes a metric that has a single value.
    fn one(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, help);
        self.sample(name, &[], value);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap, HashSet};
    use std::io::{Read as _, Write as _};

    use super::*;
    use crate::{Config, Server};

    /// A sample of a metric: its labels and its value.
    type Sample = (BTreeMap<String, String>, f64);

    /// Parses the text strictly according to the format. Returns the samples, grouped by the name
    /// of the metric.
    fn read(text: &str) -> HashMap<String, Vec<Sample>> {
        assert!(text.ends_with('\n'));
        let mut samples: HashMap<String, Vec<Sample>> = HashMap::new();
        let mut seen = HashSet::new();
        let mut family: Option<(String, String)> = None;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').expect("a name and a help");
                assert!(!help.is_empty() && !help.contains('\\'));
                assert!(seen.insert(name.to_owned()), "{name} is listed twice");
                let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")).unwrap();
                let (of, kind) = kind.split_once(' ').unwrap();
                assert!(of == name && ["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
                family = Some((name.to_owned(), kind.to_owned()));
                continue;
            }
            let (family, kind) = family.as_ref().expect("HELP and TYPE come first");
            let name_len = line.find(|c: char| !(c.is_ascii_lowercase() || c == '_')).unwrap();
            let (name, mut rest) = line.split_at(name_len);
            match name.strip_prefix(family.as_str()) {
                Some("") => assert_ne!(kind, "histogram"),
                Some("_bucket" | "_sum" | "_count") => assert_eq!(kind, "histogram"),
                _ => panic!("{line} is no {family}"),
            }
            let mut labels = BTreeMap::new();
            if let Some(mut behind) = rest.strip_prefix('{') {
                rest = loop {
                    let (label, text) = behind.split_once("=\"").unwrap();
                    assert!(label.bytes().all(|c| c.is_ascii_lowercase() || c == b'_'), "{line}");
                    let (mut value, mut chars) = (String::new(), text.char_indices());
                    let end = loop {
                        match chars.next().expect("an end of the label") {
                            (at, '"') => break at,
                            (_, '\\') => value.push(match chars.next().unwrap().1 {
                                'n' => '\n',
                                c @ ('\\' | '"') => c,
                                c => panic!("{c} is escaped: {line}"),
                            }),
                            (_, c) => value.push(c),
                        }
                    };
                    assert_eq!(labels.insert(label.to_owned(), value), None, "{line}");
                    match text[end + 1..].split_at(1) {
                        (",", more) => behind = more,
                        ("}", rest) => break rest,
                        _ => panic!("{line}"),
                    }
                };
            }
            let number = rest.strip_prefix(' ').unwrap();
            assert!(number.bytes().all(|c| c.is_ascii_digit() || b".-e".contains(&c)), "{line}");
            let number: f64 = number.parse().unwrap();
            let all = samples.entry(name.to_owned()).or_default();
            assert!(all.iter().all(|(others, _)| *others != labels), "twice: {line}");
            all.push((labels, number));
        }
        check_histograms(&samples);
        samples
    }

    fn check_histograms(samples: &HashMap<String, Vec<Sample>>) {
        let name = "tamis_command_duration_seconds";
        for (labels, count) in samples.get(&format!("{name}_count")).into_iter().flatten() {
            let command = &labels["command"];
            let buckets = samples[&format!("{name}_bucket")].iter();
            let mut last = (f64::NEG_INFINITY, 0.0);
            for (labels, sum) in buckets.filter(|(labels, _)| labels["command"] == *command) {
                let bound: f64 = labels["le"].parse().unwrap();
                assert!(bound > last.0 && *sum >= last.1, "{command}");
                last = (bound, *sum);
            }
            assert_eq!(last, (f64::INFINITY, *count), "{command}");
        }
    }

    fn of<'s>(samples: &'s [Sample], label: &str, text: &str) -> &'s f64 {
        let found = samples.iter().find(|(labels, _)| labels[label] == text);
        &found.unwrap_or_else(|| panic!("no {label} {text}")).1
    }

    /// Sends lines to a server and waits for the last reply.
    fn say(server: &Server, lines: &[u8]) {
        let mut stream = std::net::TcpStream::connect(server.addresses()[0]).unwrap();
        stream.write_all(lines).unwrap();
        stream.write_all(b"QUIT\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }

    #[test]
    fn the_text_follows_the_format() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().to_owned();
        // With a slow log limit of 0, the server records every command as slow.
        let config = Config { port: 0, threads: 1, dir, slow_micros: 0, ..Config::default() };
        let server = Server::start(config).unwrap();
        let empty = read(&text(server.shared(), |_| true));
        assert_eq!(empty["tamis_filters"][0].1, 0.0);
        assert_eq!(empty["tamis_slow_commands_total"][0].1, 0.0);
        assert!(!empty.contains_key("tamis_commands_total"));

        for lines in [
            "BF.RESERVE full 0.01 10 NONSCALING\r\nBF.RESERVE k 0.01 1000 NONSCALING\r\n",
            "BF.MADD full 1 2 3 4 5 6 7 8 9 10\r\nBF.ADD k 1\r\nBF.ADD k 2\r\nSET text a\r\n",
            "TM.RESERVE over KIND classic ITEMS 10\r\nBF.RESERVE k 1\r\nTM.ADD text a\r\n",
        ] {
            say(&server, lines.as_bytes());
        }
        let many: Vec<String> = (0..1000).map(|item| item.to_string()).collect();
        say(&server, format!("TM.MADD over {}\r\n", many.join(" ")).as_bytes());
        say(&server, b"BF.ADD \"hostile\\n\\\"}\\\\ \\xff\\x00\" a\r\nCF.ADD cuckoo a\r\n");
        say(&server, b"TM.RESERVE w KIND window WINDOW 1000 ITEMS 10\r\n");
        say(&server, b"CONFIG SET bf-layout redisbloom\r\nBF.ADD layers a\r\n");
        let scraped = read(&text(server.shared(), |_| true));
        let first = |name: &str| scraped[name][0].1;
        assert_eq!(*of(&scraped["tamis_commands_total"], "command", "bf.add"), 4.0);
        assert_eq!(*of(&scraped["tamis_command_failures_total"], "command", "tm.add"), 1.0);
        let ran: f64 = scraped["tamis_commands_total"].iter().map(|(_, calls)| calls).sum();
        assert_eq!(first("tamis_slow_commands_total"), ran);
        assert_eq!(*of(&scraped["tamis_command_rejections_total"], "command", "bf.reserve"), 1.0);
        assert_eq!(*of(&scraped["tamis_errors_total"], "code", "WRONGTYPE"), 1.0);
        assert_eq!(["tamis_filters", "tamis_filters_omitted"].map(first), [7.0, 0.0]);
        assert_eq!(first("tamis_keys"), 8.0);
        assert!(first("tamis_log_bytes") > 0.0 && first("tamis_log_failed") == 0.0);
        for (key, items) in [("full", 10.0), ("k", 2.0), ("cuckoo", 1.0), ("layers", 1.0)] {
            assert_eq!(*of(&scraped["tamis_filter_items"], "key", key), items);
        }
        assert_eq!(*of(&scraped["tamis_filter_seconds_to_limit"], "key", "full"), 0.0);
        assert_eq!(*of(&scraped["tamis_filter_over_target"], "key", "over"), 1.0);
        assert!(*of(&scraped["tamis_filter_estimated_rate"], "key", "over") > 0.5);
        assert_eq!(*of(&scraped["tamis_filter_target_rate"], "key", "over"), 0.01);
        of(&scraped["tamis_filter_items"], "key", "hostile\n\"}\\\\ \\xff\\u{0}");

        say(&server, b"CONFIG SET metrics-max-filters 2\r\n");
        let scraped = read(&text(server.shared(), |_| true));
        let over = scraped["tamis_filter_over_target"].iter();
        assert!(over.map(|(labels, _)| &*labels["key"]).eq(["over", "full"]));
        let numbers = ["tamis_filters", "tamis_filters_omitted"].map(|name| scraped[name][0].1);
        assert_eq!(numbers, [7.0, 5.0]);
    }

    #[test]
    fn labels_stay_distinct_and_on_one_line() {
        let label = |text: &[u8]| {
            let mut out = Exposition::default();
            out.label(text);
            out.0
        };
        for (text, written) in [
            (&b"plain key:1"[..], "plain key:1"),
            ("schl\u{fc}ssel \u{952e}".as_bytes(), "schl\u{fc}ssel \u{952e}"),
            (b"a\"b", "a\\\"b"),
            (b"a\\b", r"a\\\\b"),
            (b"a\nb", r"a\nb"),
            (b"a\rb\0", r"a\\u{d}b\\u{0}"),
            (b"a\xffb", r"a\\xffb"),
            (br"a\xffb", r"a\\\\xffb"),
            (b"", ""),
        ] {
            assert_eq!(label(text), written);
        }
    }
}
