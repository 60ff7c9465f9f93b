//! Draws charts as SVG: a frame with two axes, and curves, bars and marks inside.
//!
//! Colours follow the light or dark theme of the reader. Every curve has its name as a label, so
//! that a reader can identify a curve without colours.

use std::fmt::Write;

/// The mapping from values to places on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisScale {
    /// Equal differences between values have equal lengths on the axis.
    Linear,
    /// Equal ratios of values have equal lengths on the axis.
    Log,
}

/// An axis along one side of the frame.
pub struct Axis {
    /// The title of the axis, with the unit.
    pub title: String,
    /// The value at the origin.
    pub from: f64,
    /// The value at the far end, above `from`.
    pub to: f64,
    /// The scale: linear or logarithmic.
    pub scale: AxisScale,
    /// The values of the grid lines, with their labels.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Creates a linear axis from zero to `to`, with a grid line for each `step`.
    pub fn linear(title: &str, to: f64, step: f64, label: impl Fn(f64) -> String) -> Self {
        let steps = (0..).map(|i| f64::from(i) * step).take_while(|&at| at <= to * 1.001);
        let ticks = steps.map(|at| (at, label(at))).collect();
        Self { title: title.into(), from: 0.0, to, scale: AxisScale::Linear, ticks }
    }

    /// Creates a logarithmic axis of false positive rates, from 10⁻ᵈ for `decades` to 1.
    pub fn rate(decades: i32) -> Self {
        let ticks = (0..=decades).map(|d| (10_f64.powi(-d), power_of_ten(d))).collect();
        let title = "false positive rate".into();
        Self { title, from: 10_f64.powi(-decades), to: 1.0, scale: AxisScale::Log, ticks }
    }

    /// Returns the place of `value`: 0 at the origin and 1 at the far end. Values outside the axis
    /// are clamped.
    fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            AxisScale::Linear => (value - self.from) / (self.to - self.from),
            AxisScale::Log => (value / self.from).ln() / (self.to / self.from).ln(),
        };
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }
}

/// Formats 10⁻ᵈ: as a percentage down to 0.1 %, then as a power of ten.
fn power_of_ten(d: i32) -> String {
    match d {
        0 => "100 %".into(),
        1 => "10 %".into(),
        2 => "1 %".into(),
        3 => "0.1 %".into(),
        _ => {
            let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
            let power: String =
                d.to_string().bytes().map(|digit| digits[usize::from(digit - b'0')]).collect();
            format!("10⁻{power}")
        }
    }
}

/// The side of a mark on which its label is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Left of the mark, for a curve that rises.
    Left,
    /// Right of the mark, for a curve that falls.
    Right,
}

/// An element drawn inside the frame.
pub enum ChartLayer {
    /// A curve with its name at the end. `class` is 1 to 7.
    Line { name: String, class: u8, points: Vec<(f64, f64)> },
    /// Bars that start at the lower axis. Each bar has a start, an end and a height.
    Bars { bars: Vec<(f64, f64, f64)> },
    /// A dashed horizontal line at a value of the vertical axis.
    Across { name: String, at: f64 },
    /// A dashed vertical line at a value of the horizontal axis.
    Up { name: String, at: f64 },
    /// A point with a label above the point, on the side away from the curve.
    Mark { name: String, at: (f64, f64), side: Side },
}

/// A chart with two axes.
pub struct Chart {
    /// The title of the chart.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The elements inside the frame. The first element is drawn behind all other elements.
    pub layers: Vec<ChartLayer>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 120.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 64.0;

/// The style sheet. The style sheet uses only plain classes, because some viewers do not support
/// CSS variables.
const STYLE: &str = "
text{font:13px system-ui,'Noto Sans CJK SC',sans-serif;fill:#1f2430}
.title{font-size:16px;font-weight:600}.tick,.note{fill:#5d6675;font-size:12px}
.paper{fill:#fff}.grid{stroke:#e3e6ec}.frame{stroke:#8b94a3;fill:none}
.line{fill:none;stroke-width:2.25}.dash{stroke:#8b94a3;stroke-dasharray:5 4}
.s1{stroke:#0b6bcb}.s2{stroke:#b4540a}.s3{stroke:#2f7d32}.s4{stroke:#8e3aa8}
.s5{stroke:#00818a}.s6{stroke:#a0184f}.s7{stroke:#6b6f00}
.t5{fill:#00818a}.t6{fill:#a0184f}.t7{fill:#6b6f00}
.t1{fill:#0b6bcb}.t2{fill:#b4540a}.t3{fill:#2f7d32}.t4{fill:#8e3aa8}
.bar{fill:#0b6bcb;fill-opacity:.75}.mark{fill:#c2185b;stroke:#fff;stroke-width:2}
@media (prefers-color-scheme:dark){
text{fill:#e8eaf0}.tick,.note{fill:#9aa3b2}
.paper{fill:#12151c}.grid{stroke:#2c3340}
.s1{stroke:#6cb2ff}.s2{stroke:#ffab66}.s3{stroke:#7fd083}.s4{stroke:#d99bf0}
.s5{stroke:#4fd1d9}.s6{stroke:#ff8fb8}.s7{stroke:#d6d94f}
.t5{fill:#4fd1d9}.t6{fill:#ff8fb8}.t7{fill:#d6d94f}
.t1{fill:#6cb2ff}.t2{fill:#ffab66}.t3{fill:#7fd083}.t4{fill:#d99bf0}
.bar{fill:#6cb2ff}.mark{fill:#ff6f9f;stroke:#12151c}
}
";

/// Draws the charts from top to bottom, as one SVG document.
pub fn document(charts: &[Chart]) -> String {
    let height = HEIGHT * charts.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\">\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
    );
    for (i, chart) in charts.iter().enumerate() {
        let _ = writeln!(svg, "<g transform=\"translate(0 {})\">", HEIGHT * i as f64);
        chart.draw(&mut svg);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

impl Chart {
    fn left(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn top(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        text(svg, LEFT, 28.0, "title", "start", &self.title);
        for (value, label) in &self.x.ticks {
            let x = self.left(*value);
            line(svg, "grid", (x, TOP), (x, bottom));
            text(svg, x, bottom + 18.0, "tick", "middle", label);
        }
        for (value, label) in &self.y.ticks {
            let y = self.top(*value);
            line(svg, "grid", (LEFT, y), (right, y));
            text(svg, LEFT - 8.0, y + 4.0, "tick", "end", label);
        }
        let middle = (LEFT + right) / 2.0;
        text(svg, middle, HEIGHT - 16.0, "", "middle", &self.x.title);
        let middle = (TOP + bottom) / 2.0;
        let _ = writeln!(
            svg,
            "<text transform=\"translate(20 {middle:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            escape(&self.y.title)
        );
        // Labels at the ends of curves must not overlap.
        let mut taken: Vec<f64> = Vec::new();
        for layer in &self.layers {
            self.layer(svg, layer, &mut taken);
        }
        let (width, height) = (right - LEFT, bottom - TOP);
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    fn layer(&self, svg: &mut String, layer: &ChartLayer, taken: &mut Vec<f64>) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        match layer {
            ChartLayer::Line { name, class, points } => {
                let points: Vec<(f64, f64)> =
                    points.iter().map(|&(x, y)| (self.left(x), self.top(y))).collect();
                let path: Vec<String> =
                    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                let path = path.join(" ");
                let _ = writeln!(svg, "<polyline class=\"line s{class}\" points=\"{path}\"/>");
                if let Some(&(_, end)) = points.last() {
                    let mut y = end;
                    while taken.iter().any(|other| (other - y).abs() < 15.0) {
                        y += 15.0;
                    }
                    taken.push(y);
                    text(svg, right + 8.0, y + 4.0, &format!("t{class}"), "start", name);
                }
            }
            ChartLayer::Bars { bars } => {
                for &(from, to, value) in bars {
                    let (x, y) = (self.left(from), self.top(value));
                    // A bar that is not empty must be visible.
                    let height = if value > 0.0 { (bottom - y).max(1.0) } else { 0.0 };
                    let (y, width) = (bottom - height, (self.left(to) - x - 1.0).max(0.5));
                    let _ = writeln!(
                        svg,
                        "<rect class=\"bar\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
                         height=\"{height:.1}\"/>"
                    );
                }
            }
            ChartLayer::Across { name, at } => {
                let y = self.top(*at);
                line(svg, "dash", (LEFT, y), (right, y));
                text(svg, LEFT + 8.0, y - 6.0, "note", "start", name);
            }
            ChartLayer::Up { name, at } => {
                let x = self.left(*at);
                line(svg, "dash", (x, TOP), (x, bottom));
                let anchor = if self.x.place(*at) > 0.6 { "end" } else { "start" };
                let shift = if anchor == "end" { -6.0 } else { 6.0 };
                text(svg, x + shift, TOP + 16.0, "note", anchor, name);
            }
            ChartLayer::Mark { name, at, side } => {
                let (x, y) = (self.left(at.0), self.top(at.1));
                let _ =
                    writeln!(svg, "<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\"/>");
                // The label must stay inside the frame.
                let place = self.x.place(at.0);
                let left = place > 0.7 || (*side == Side::Left && place > 0.3);
                let (anchor, shift) = if left { ("end", -11.0) } else { ("start", 11.0) };
                let below = if self.y.place(at.1) > 0.85 { 20.0 } else { -8.0 };
                text(svg, x + shift, y + below, "", anchor, name);
            }
        }
    }
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn text(svg: &mut String, x: f64, y: f64, class: &str, anchor: &str, words: &str) {
    let words = escape(words);
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}

/// Escapes text for XML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(from: f64, to: f64, scale: AxisScale) -> Axis {
        Axis { title: "a & b".into(), from, to, scale, ticks: vec![(from, "low".into())] }
    }

    #[test]
    fn values_have_their_place_on_both_scales() {
        let linear = axis(0.0, 10.0, AxisScale::Linear);
        assert_eq!([linear.place(0.0), linear.place(5.0), linear.place(99.0)], [0.0, 0.5, 1.0]);
        let log = axis(1e-4, 1.0, AxisScale::Log);
        assert!((log.place(1e-2) - 0.5).abs() < 1e-12);
        assert_eq!(
            [log.place(0.0), log.place(f64::NAN), log.place(f64::INFINITY)],
            [0.0, 0.0, 1.0]
        );
    }

    #[test]
    fn text_cannot_break_the_document() {
        let chart = Chart {
            title: "<script>\u{1b}[0m".into(),
            x: axis(0.0, 1.0, AxisScale::Linear),
            y: axis(0.1, 1.0, AxisScale::Log),
            layers: vec![
                ChartLayer::Line {
                    name: "\"".into(),
                    class: 1,
                    points: vec![(0.0, 0.1), (1.0, 1.0)],
                },
                ChartLayer::Bars { bars: vec![(0.0, 0.5, 0.0), (0.5, 1.0, 1e-9)] },
                ChartLayer::Across { name: "rate".into(), at: 0.5 },
                ChartLayer::Up { name: "capacity".into(), at: 0.9 },
                ChartLayer::Mark { name: "now".into(), at: (0.5, f64::NAN), side: Side::Left },
            ],
        };
        let svg = document(&[chart]);
        assert!(svg.contains("&lt;script&gt;\u{fffd}[0m") && !svg.contains("<script"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
    }
}
