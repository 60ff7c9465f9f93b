//! Draws bar charts as SVG without a library.

use std::fmt::Write as _;

use crate::run::Row;

const WIDTH: f64 = 760.0;
/// The position where bars start. The names are to the left of this position.
const LEFT: f64 = 240.0;
/// The position where the longest bar ends. The number of this bar is to the right of this
/// position.
const RIGHT: f64 = 680.0;
const BAR: f64 = 18.0;
const GAP: f64 = 6.0;

/// Draws the medians of `rows`, with a group of bars for each case.
pub fn chart(title: &str, rows: &[&Row]) -> String {
    let mut body = String::new();
    let mut y = 44.0;
    let mut case = "";
    let longest = |case: &str| {
        let times = rows.iter().filter(|row| row.case == case).map(|row| row.median());
        times.fold(0.0, f64::max)
    };
    for row in rows {
        if row.case != case {
            case = &row.case;
            y += 14.0;
            let _ = writeln!(body, r#"<text x="16" y="{y}" class="case">{}</text>"#, escape(case));
            y += 10.0;
        }
        let time = row.median();
        let width = ((RIGHT - LEFT) * time / longest(case)).max(1.0);
        let class = match &row.name {
            name if name.starts_with("tamis") => "ours",
            name if name.starts_with("floor") || name == "cat" => "floor",
            _ => "rival",
        };
        let (middle, name_end, number) = (y + BAR * 0.72, LEFT - 8.0, LEFT + width + 6.0);
        let name = escape(&row.name);
        let _ = writeln!(
            body,
            r#"<text x="{name_end}" y="{middle:.1}" text-anchor="end">{name}</text>
<rect x="{LEFT}" y="{y}" width="{width:.1}" height="{BAR}" rx="2" class="{class}"/>
<text x="{number:.1}" y="{middle:.1}">{time:.2}</text>"#
        );
        y += BAR + GAP;
    }
    let height = y + 14.0;
    let title = escape(title);
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">
<title>{title}</title>
<style>
text {{ font: 13px system-ui, sans-serif; fill: #24292f }}
.page {{ fill: #fff }}
.title {{ font-size: 16px; font-weight: 600 }}
.case {{ font-weight: 600 }}
.ours {{ fill: #0a7d56 }}
.rival {{ fill: #9aa5b1 }}
.floor {{ fill: #d9b44a }}
</style>
<rect width="{WIDTH}" height="{height}" class="page"/>
<text x="16" y="28" class="title">{title}</text>
{body}</svg>
"#
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
