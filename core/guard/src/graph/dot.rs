use super::label::{ANY_STATE, has_any_state, lines, visible};
use super::{EdgeOrigin, EdgeTarget, Graph};

/// The graph in the DOT language of Graphviz.
#[must_use]
pub fn dot(graph: &Graph) -> String {
    let mut text = String::from("digraph workflow {\n");
    text.push_str("    node [shape=box, style=rounded, fontname=\"sans-serif\"];\n");
    text.push_str("    edge [fontname=\"sans-serif\", fontsize=11];\n");
    if has_any_state(graph) {
        text.push_str(&format!(
            "    any [label=\"{ANY_STATE}\", shape=hexagon];\n"
        ));
    }
    for (number, state) in graph.states.iter().enumerate() {
        let mut attributes = format!("label=\"{}\"", escaped(&visible(&state.name)));
        if state.initial {
            attributes.push_str(", penwidth=2");
        }
        if !state.reachable {
            attributes.push_str(", style=\"rounded,dashed\", color=gray50");
        }
        if state.dead_end {
            attributes.push_str(", color=\"#c2410c\"");
        }
        text.push_str(&format!("    s{number} [{attributes}];\n"));
    }
    for edge in &graph.edges {
        let from = match edge.from {
            EdgeOrigin::AnyState => "any".to_owned(),
            EdgeOrigin::State(number) => format!("s{number}"),
        };
        let to = match edge.to {
            EdgeTarget::Same => from.clone(),
            EdgeTarget::State(number) => format!("s{number}"),
        };
        let label: Vec<String> = lines(edge).iter().map(|tool| escaped(tool)).collect();
        let label = label.join("\\n");
        text.push_str(&format!("    {from} -> {to} [label=\"{label}\"];\n"));
    }
    text.push_str("}\n");
    text
}

/// Graphviz reads escape sequences and HTML entities in quoted labels.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('&', "&amp;")
}
