//! Formats text tables with columns aligned by the width of their cells.

/// Returns a line for each of `rows`, with two spaces between columns. The columns in `right` are
/// aligned to the right.
pub fn align(rows: &[Vec<String>], right: &[usize]) -> String {
    let mut text = String::new();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| columns_of(cell))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[column] - columns_of(cell));
            if right.contains(&column) {
                line.push_str(&padding);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.push_str(&padding);
            }
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns the width of `text` in terminal columns. Chinese, Japanese and Korean characters take
/// two columns.
fn columns_of(text: &str) -> usize {
    let wide = |c: char| matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{ffe0}'..='\u{ffe6}' | '\u{20000}'..='\u{3fffd}');
    text.chars().map(|c| 1 + usize::from(wide(c))).sum()
}

/// Returns `text` with control characters escaped, because text from a file must not control the
/// terminal.
pub fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
        let text = align(&[row(["网", "10", "x"]), row(["abc", "7", ""])], &[1]);
        assert_eq!(text, "网   10  x\nabc   7\n");
    }

    #[test]
    fn control_characters_are_spelled_out() {
        assert_eq!(plain("a\u{1b}[2J\n网"), "a\\u{1b}[2J\\n网");
    }
}
