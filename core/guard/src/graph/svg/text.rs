//! The size of text, and writing it.

const LONGEST_NAME: usize = 36;

/// The advance of one character of a monospaced font of 12 pixels.
const CHARACTER: f64 = 7.25;
pub(super) const LINE: f64 = 15.0;

/// Text of several lines, centred vertically.
pub(super) fn write_lines(out: &mut String, lines: &[String], x: f64, middle: f64) {
    let mut y = middle - text_height(lines) / 2.0 + LINE * 0.75;
    for line in lines {
        let (title, short) = (escaped(line), escaped(&shortened(line)));
        let title = if title == short {
            String::new()
        } else {
            format!("<title>{title}</title>")
        };
        out.push_str(&format!(
            "<text class=\"tool\" x=\"{x:.1}\" y=\"{y:.1}\">{title}{short}</text>\n"
        ));
        y += LINE;
    }
}

pub(super) fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    let mut short: String = name.chars().take(LONGEST_NAME - 1).collect();
    short.push('…');
    short
}

pub(super) fn text_width(name: &str) -> f64 {
    // Characters of non-alphabetic scripts are about twice as wide.
    let places = |c: char| if u32::from(c) < 0x1100 { 1 } else { 2 };
    count(shortened(name).chars().map(places).sum()) * CHARACTER
}

pub(super) fn max_text_width(lines: &[String]) -> f64 {
    lines
        .iter()
        .map(|line| text_width(line))
        .fold(0.0, f64::max)
}

pub(super) fn text_height(lines: &[String]) -> f64 {
    count(lines.len()) * LINE
}

#[expect(clippy::cast_precision_loss, reason = "a line has few characters")]
pub(super) const fn count(number: usize) -> f64 {
    number as f64
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
