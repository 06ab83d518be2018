//! The picture in README.md: a terminal that shows what `toolwarden demo` prints, as an SVG.
//! `cargo xtask demo-svg` writes it anew.

use std::fmt::Write as _;
use std::path::Path;

use crate::sandbox::{Sandbox, command_output};

/// The width of the terminal, in characters.
const COLUMNS: usize = 100;
/// Where the text behind `ok` or `denied` begins, and the rest of it where it is wrapped.
const OUTCOME_INDENT: usize = 13;

/// The width of a character, in tenths of the unit of the picture.
const CHARACTER_WIDTH: usize = 84;
const LINE_HEIGHT: usize = 20;
const MARGIN: usize = 24;
/// The title bar, and the room below it.
const TOP: usize = 62;

/// The pause between two steps of the demo, in tenths of a second.
const STEP_PAUSE: usize = 7;

const STYLE: &str = "\
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d7dce2; }
.bold { font-weight: bold; fill: #ffffff; }
.green { font-weight: bold; fill: #56d364; }
.red { font-weight: bold; fill: #ff7b72; }
.dim { fill: #8b949e; }
.title { fill: #8b949e; font-size: 13px; text-anchor: middle; }
@keyframes appear { from { opacity: 0; } to { opacity: 1; } }
.step { animation: appear 0.5s both; }
@media (prefers-reduced-motion: reduce) { .step { animation: none; } }
";

#[test]
fn the_picture_shows_what_the_demo_prints() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command();
    command.arg("demo").env("CLICOLOR_FORCE", "1");
    let printed = command_output(command.output().unwrap());
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    // The closing advice is text for a reader of the terminal, not of a picture.
    let (story, _) = printed.out.split_once("\nNext steps:").unwrap();
    let expected = picture(story);

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/demo.svg");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == expected,
        "docs/demo.svg does not show what `toolwarden demo` prints; run `cargo xtask demo-svg`"
    );
}

#[test]
fn colours_become_classes_and_long_lines_wrap_at_a_space() {
    let parts = spans("a \u{1b}[1m\u{1b}[31mno\u{1b}[0m <b>");
    assert_eq!(parts, [span("", "a "), span("red", "no"), span("", " <b>")]);
    let mut row = String::new();
    write_row(&mut row, 0, 0, &parts);
    assert_eq!(
        row,
        "<text y=\"62\"><tspan x=\"24.0\">a</tspan><tspan x=\"40.8\" class=\"red\">no</tspan>\
         <tspan x=\"66.0\">&lt;b&gt;</tspan></text>\n"
    );

    let long = format!("{} {}", "x".repeat(90), "y".repeat(20));
    let rows = wrap(vec![span("dim", &long)], 7);
    let first = format!("{} ", "x".repeat(90));
    assert_eq!(
        rows,
        [
            vec![span("dim", &first)],
            vec![span("dim", &"y".repeat(20))]
        ]
    );
}

/// Text in one style, named by its class in the picture.
#[derive(Clone, Debug, PartialEq)]
struct Span {
    class: &'static str,
    text: String,
}

fn span(class: &'static str, text: &str) -> Span {
    let text = text.to_owned();
    Span { class, text }
}

/// The picture of a terminal in which `toolwarden demo` printed this, each step a moment after the one before.
fn picture(printed: &str) -> String {
    let mut body = String::new();
    let mut row = 0;
    let prompt = [span("green", "$ "), span("bold", "toolwarden demo")];
    write_row(&mut body, row, 0, &prompt);
    row += 2;
    for (step, text) in printed.split("\n\n").enumerate() {
        let delay = STEP_PAUSE * (step + 1);
        let (seconds, tenths) = (delay / 10, delay % 10);
        writeln!(
            body,
            "<g class=\"step\" style=\"animation-delay: {seconds}.{tenths}s\">"
        )
        .unwrap();
        for line in text.lines() {
            let spans = spans(line);
            let indent = wrapped_indent(&spans);
            for (part, spans) in wrap(spans, indent).iter().enumerate() {
                let indent = if part == 0 { 0 } else { indent };
                write_row(&mut body, row, indent, spans);
                row += 1;
            }
        }
        body.push_str("</g>\n");
        row += 1;
    }
    frame(&body, row)
}

/// The window around the rows.
fn frame(body: &str, rows: usize) -> String {
    let width = 2 * MARGIN + COLUMNS * CHARACTER_WIDTH / 10;
    let height = TOP + rows * LINE_HEIGHT;
    let middle = width / 2;
    let (inner_width, inner_height) = (width - 1, height - 1);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">
<title>toolwarden demo: a call allowed, calls denied, a changed tool caught and approved</title>
<!-- Written by `cargo xtask demo-svg`. -->
<style>
{STYLE}</style>
<rect x=\"0.5\" y=\"0.5\" width=\"{inner_width}\" height=\"{inner_height}\" rx=\"10\" fill=\"#0d1117\" stroke=\"#30363d\"/>
<circle cx=\"22\" cy=\"20\" r=\"6\" fill=\"#ff5f56\"/>
<circle cx=\"42\" cy=\"20\" r=\"6\" fill=\"#ffbd2e\"/>
<circle cx=\"62\" cy=\"20\" r=\"6\" fill=\"#27c93f\"/>
<text class=\"title\" x=\"{middle}\" y=\"25\">toolwarden</text>
{body}</svg>
"
    )
}

fn write_row(body: &mut String, row: usize, indent: usize, spans: &[Span]) {
    let y = TOP + row * LINE_HEIGHT;
    let mut markup = String::new();
    let mut column = indent;
    for Span { class, text } in spans {
        // Every run of spaces becomes a position, for renderers differ in which spaces they keep.
        for piece in text.split_inclusive("  ") {
            let shown = piece.trim_start();
            let x = column_position(column + piece.len() - shown.len());
            column += piece.chars().count();
            if !shown.trim_end().is_empty() {
                markup.push_str(&tspan(x, class, shown.trim_end()));
            }
        }
    }
    writeln!(body, "<text y=\"{y}\">{markup}</text>").unwrap();
}

/// Where a column begins, in tenths of the unit of the picture.
fn column_position(column: usize) -> usize {
    MARGIN * 10 + column * CHARACTER_WIDTH
}

fn tspan(x: usize, class: &str, text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let text = text.replace('>', "&gt;");
    let class = match class {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    format!("<tspan x=\"{}.{}\"{class}>{text}</tspan>", x / 10, x % 10)
}

/// A line of the terminal, taken apart at its escape sequences.
fn spans(line: &str) -> Vec<Span> {
    let mut sequences = line.split("\u{1b}[");
    let mut spans = vec![span("", sequences.next().unwrap())];
    let mut class = "";
    for sequence in sequences {
        let (code, text) = sequence.split_once('m').unwrap();
        class = match (code, class) {
            ("0", _) => "",
            // Colours of the demo are bold, and bold comes first.
            ("1", "") => "bold",
            ("2", "") => "dim",
            ("31", "bold") => "red",
            ("32", "bold") => "green",
            other => panic!("no class for {other:?} in {line:?}"),
        };
        spans.push(span(class, text));
    }
    spans.retain(|it| !it.text.is_empty());
    spans
}

/// How far the rest of a line is indented where it is wrapped.
fn wrapped_indent(spans: &[Span]) -> usize {
    if spans.iter().any(|it| ["green", "red"].contains(&it.class)) {
        return OUTCOME_INDENT;
    }
    let line: String = spans.iter().map(|it| it.text.as_str()).collect();
    line.len() - line.trim_start().len() + 2
}

/// A line as rows no wider than the terminal, broken behind a space or a comma.
fn wrap(spans: Vec<Span>, indent: usize) -> Vec<Vec<Span>> {
    let mut rows = vec![Vec::new()];
    let mut column = 0;
    for Span { class, text } in spans {
        let mut row = String::new();
        for word in text.split_inclusive([' ', ',']) {
            let width = word.trim_end().chars().count();
            if column + width > COLUMNS {
                push(&mut rows, span(class, &std::mem::take(&mut row)));
                rows.push(Vec::new());
                column = indent;
            }
            row.push_str(word);
            column += word.chars().count();
        }
        push(&mut rows, span(class, &row));
    }
    rows
}

fn push(rows: &mut [Vec<Span>], span: Span) {
    if !span.text.is_empty() {
        rows.last_mut().unwrap().push(span);
    }
}
