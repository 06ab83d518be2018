mod arrow_paths;
mod text;

use super::label::{ANY_STATE, has_any_state, lines, visible};
use super::layout::{Extent, GraphLayout, LayoutInput, LayoutLink};
use super::{EdgeOrigin, EdgeTarget, Graph};
use arrow_paths::{SvgRow, row_at};
use text::{LINE, escaped, max_text_width, shortened, text_width, write_lines};

/// The graph as a self-contained SVG image.
///
/// A graph that is too large to read is drawn in part, and the image says so.
#[must_use]
pub fn svg(graph: &Graph) -> String {
    Picture::of(graph).draw()
}

const MAX_STATES: usize = 150;
const MAX_EDGES: usize = 400;

const BOX: f64 = 32.0;
const PADDING: f64 = 12.0;
const MARGIN: f64 = 16.0;
/// How far a loop reaches from its box, and where its label begins.
const LOOP: f64 = 26.0;

/// Every rule applies to this image only, also if the image is pasted into a page.
const STYLE: &str = "\
.workflow .back{fill:#fff}\
.workflow .state{fill:#eef2f7;stroke:#64748b}\
.workflow .initial{stroke-width:2.5}\
.workflow .any{fill:#fff;stroke:#64748b;stroke-dasharray:2 3}\
.workflow .unreachable{fill:#fff;stroke-dasharray:5 4}\
.workflow .dead-end{stroke:#c2410c;stroke-width:2.5}\
.workflow .edge{fill:none;stroke:#64748b;stroke-width:1.2}\
.workflow .head{fill:#64748b}\
.workflow text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1e293b}\
.workflow .tool{fill:#475569}\
@media(prefers-color-scheme:dark){\
.workflow .back{fill:#0f172a}\
.workflow .state{fill:#1e293b;stroke:#94a3b8}\
.workflow .any,.workflow .unreachable{fill:#0f172a}\
.workflow .dead-end{stroke:#fb923c}\
.workflow .edge{stroke:#94a3b8}\
.workflow .head{fill:#94a3b8}\
.workflow text{fill:#e2e8f0}\
.workflow .tool{fill:#cbd5e1}}";

struct Picture {
    frames: Vec<Frame>,
    arrows: Vec<Arrow>,
    layout: GraphLayout,
    /// The text that names what is not drawn.
    omitted: Option<String>,
}

struct Frame {
    name: String,
    class: String,
    width: f64,
    /// The tools that keep a session in this state.
    loop_tools: Vec<String>,
}

struct Arrow {
    from: usize,
    to: usize,
    tools: Vec<String>,
}

impl Picture {
    fn of(graph: &Graph) -> Self {
        let mut frames: Vec<Frame> = Vec::new();
        for state in graph.states.iter().take(MAX_STATES) {
            let mut class = "state".to_owned();
            for (holds, word) in [
                (state.initial, " initial"),
                (!state.reachable, " unreachable"),
                (state.dead_end, " dead-end"),
            ] {
                if holds {
                    class.push_str(word);
                }
            }
            frames.push(Frame::new(visible(&state.name), class));
        }
        let any = frames.len();
        if has_any_state(graph) {
            frames.push(Frame::new(ANY_STATE.to_owned(), "any".to_owned()));
        }
        let mut arrows: Vec<Arrow> = Vec::new();
        let mut left_out = 0;
        for edge in &graph.edges {
            let from = match edge.from {
                EdgeOrigin::AnyState => any,
                EdgeOrigin::State(number) => number,
            };
            // If states are omitted, the index of the any-state box is also that of an omitted state.
            let drawn = |number: usize| number < graph.states.len().min(MAX_STATES);
            let is_drawn = edge.from == EdgeOrigin::AnyState || drawn(from);
            match edge.to {
                EdgeTarget::Same if is_drawn => {
                    if let Some(frame) = frames.get_mut(from) {
                        frame.loop_tools = lines(edge);
                    }
                }
                EdgeTarget::State(to) if is_drawn && drawn(to) && arrows.len() < MAX_EDGES => {
                    let tools = lines(edge);
                    arrows.push(Arrow { from, to, tools });
                }
                EdgeTarget::Same | EdgeTarget::State(_) => left_out += 1,
            }
        }
        let states_left = graph.states.len().saturating_sub(MAX_STATES);
        let omitted = (states_left + left_out > 0)
            .then(|| format!("not drawn: {states_left} states and {left_out} transitions"));
        let mut sketch = LayoutInput {
            boxes: frames.iter().map(Frame::extent).collect(),
            tops: Vec::new(),
            links: arrows.iter().map(Arrow::link).collect(),
        };
        let states = graph.states.iter().enumerate().take(MAX_STATES);
        let initial = states.filter(|(_, state)| state.initial);
        sketch.tops.extend(initial.map(|(number, _)| number));
        sketch.tops.push(any);
        Self {
            layout: sketch.layout(),
            frames,
            arrows,
            omitted,
        }
    }

    fn draw(&self) -> String {
        let rows = self.rows();
        let bottom = rows.last().map_or(MARGIN, |row| row.bottom);
        let note = if self.omitted.is_some() {
            2.0 * LINE
        } else {
            0.0
        };
        let (width, height) = (self.layout.width + 2.0 * MARGIN, bottom + MARGIN + note);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"workflow\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n\
             <title>States and the tools that lead from one to another</title>\n\
             <style>{STYLE}</style>\n\
             <defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"8\" \
             markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
             <path class=\"head\" d=\"M0 0 8 4 0 8z\"/></marker></defs>\n\
             <rect class=\"back\" width=\"100%\" height=\"100%\"/>\n"
        );
        let paths = self.paths(&rows);
        for path in paths {
            out.push_str(&format!(
                "<path class=\"edge\" d=\"{path}\" marker-end=\"url(#head)\"/>\n"
            ));
        }
        for (arrow, label) in self.arrows.iter().zip(&self.layout.labels) {
            let row = row_at(&rows, label.row);
            let x = label.x + MARGIN + 6.0;
            write_lines(&mut out, &arrow.tools, x, (row.top + row.bottom) / 2.0);
        }
        for (frame, spot) in self.frames.iter().zip(&self.layout.boxes) {
            frame.draw(&mut out, spot.x + MARGIN, row_at(&rows, spot.row));
        }
        if let Some(omitted) = &self.omitted {
            let words = std::slice::from_ref(omitted);
            write_lines(&mut out, words, MARGIN, height - MARGIN);
        }
        out.push_str("</svg>\n");
        out
    }
}

impl Frame {
    fn new(name: String, class: String) -> Self {
        Self {
            width: text_width(&name) + 2.0 * PADDING,
            name,
            class,
            loop_tools: Vec::new(),
        }
    }

    fn extent(&self) -> Extent {
        let beside = if self.loop_tools.is_empty() {
            0.0
        } else {
            LOOP + max_text_width(&self.loop_tools)
        };
        Extent {
            left: self.width / 2.0,
            right: self.width / 2.0 + beside,
        }
    }

    fn draw(&self, out: &mut String, x: f64, row: SvgRow) {
        let y = (row.top + row.bottom) / 2.0;
        let (left, top, width) = (x - self.width / 2.0, y - BOX / 2.0, self.width);
        let (class, name) = (&self.class, escaped(&self.name));
        out.push_str(&format!(
            "<g><title>{name}</title><rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" \
             width=\"{width:.1}\" height=\"{BOX}\" rx=\"8\"/>"
        ));
        let short = escaped(&shortened(&self.name));
        let baseline = y + 4.0;
        out.push_str(&format!(
            "<text x=\"{x:.1}\" y=\"{baseline:.1}\" text-anchor=\"middle\">{short}</text></g>\n"
        ));
        if !self.loop_tools.is_empty() {
            let right = x + self.width / 2.0;
            let (from, to, far) = (y - 7.0, y + 7.0, right + LOOP);
            out.push_str(&format!(
                "<path class=\"edge\" d=\"M{right:.1} {from:.1}C{far:.1} {:.1} {far:.1} {:.1} \
                 {right:.1} {to:.1}\" marker-end=\"url(#head)\"/>\n",
                from - 7.0,
                to + 7.0
            ));
            write_lines(out, &self.loop_tools, right + LOOP, y);
        }
    }
}

impl Arrow {
    fn link(&self) -> LayoutLink {
        LayoutLink {
            from: self.from,
            to: self.to,
            label: max_text_width(&self.tools),
        }
    }
}
