//! Writes metrics in the text format of Prometheus.

use std::fmt::{Display, Write as _};

/// Metrics in the text format of Prometheus.
#[derive(Default)]
pub(super) struct Exposition(String);

impl Exposition {
    /// Begins a metric family. `kind` is `counter` or `gauge`.
    pub(super) fn family(&mut self, kind: &str, name: &str, help: &str) {
        // Writing to a `String` never fails, here and below.
        _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a sample of the metric.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (i, (label, text)) in labels.iter().enumerate() {
            let start = if i == 0 { '{' } else { ',' };
            let text = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            _ = write!(self.0, "{start}{label}=\"{text}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        _ = writeln!(self.0, "{end} {value}");
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}
