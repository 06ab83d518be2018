use super::label::{ANY_STATE, has_any_state, lines, visible};
use super::{EdgeOrigin, EdgeTarget, Graph};

/// The graph as a Mermaid flowchart.
///
/// Names occur only in quoted labels. Characters that Mermaid or Markdown could read as markup are written
/// as numeric entities.
#[must_use]
pub fn mermaid(graph: &Graph) -> String {
    let mut text = String::from("flowchart TD\n");
    if has_any_state(graph) {
        line(&mut text, format_args!("any{{{{\"{ANY_STATE}\"}}}}"));
    }
    for (number, state) in graph.states.iter().enumerate() {
        let label = escaped(&visible(&state.name));
        let (open, close) = if state.initial {
            ("([", "])")
        } else {
            ("[", "]")
        };
        line(&mut text, format_args!("s{number}{open}\"{label}\"{close}"));
    }
    for edge in &graph.edges {
        let label: Vec<String> = lines(edge).iter().map(|tool| escaped(tool)).collect();
        let label = label.join("<br/>");
        let from = match edge.from {
            EdgeOrigin::AnyState => "any".to_owned(),
            EdgeOrigin::State(number) => format!("s{number}"),
        };
        let to = match edge.to {
            EdgeTarget::Same => from.clone(),
            EdgeTarget::State(number) => format!("s{number}"),
        };
        line(&mut text, format_args!("{from} -->|\"{label}\"| {to}"));
    }
    let styles = [
        ("unreachable", "stroke-dasharray: 4 4,opacity: 0.6"),
        ("deadEnd", "stroke: #c2410c,stroke-width: 2px"),
    ];
    for (class, style) in styles {
        let numbers = graph.states.iter().enumerate();
        let marked: Vec<String> = numbers
            .filter(|(_, state)| match class {
                "deadEnd" => state.dead_end,
                _ => !state.reachable,
            })
            .map(|(number, _)| format!("s{number}"))
            .collect();
        if !marked.is_empty() {
            line(&mut text, format_args!("classDef {class} {style}"));
            line(
                &mut text,
                format_args!("class {} {class}", marked.join(",")),
            );
        }
    }
    text
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    text.push_str("    ");
    text.push_str(&content.to_string());
    text.push('\n');
}

/// Keeps letters, digits and single spaces, and signs that join two letters or digits. Mermaid reads
/// Markdown in labels, where the same signs elsewhere begin lists or emphasis.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let after = chars.peek().copied().unwrap_or(' ');
        let joins = before.is_alphanumeric() && after.is_alphanumeric();
        let plain = match c {
            '-' | '_' | '.' | '/' | ':' | ' ' => joins,
            c => c.is_alphanumeric() || !c.is_ascii(),
        };
        if plain {
            out.push(c);
        } else {
            out.push_str(&format!("#{};", u32::from(c)));
        }
        before = c;
    }
    out
}
