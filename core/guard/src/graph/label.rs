//! Names as all drawings show them.

use super::{EdgeOrigin, Graph, GraphEdge};

/// The label of the node for tools that are available in every state.
pub(super) const ANY_STATE: &str = "any state";

/// The maximum number of tools on the label of one edge.
const MOST_TOOLS: usize = 6;

/// A name with invisible characters escaped, so that it stays on one line and cannot reorder the text
/// around it.
pub(super) fn visible(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for piece in name.split_inclusive(['"', '\'']) {
        let quote = piece
            .chars()
            .next_back()
            .filter(|c| matches!(c, '"' | '\''));
        let rest = quote.map_or(piece, |quote| piece.strip_suffix(quote).unwrap_or(piece));
        text.extend(rest.escape_debug());
        text.extend(quote);
    }
    text
}

/// The tools of an edge, one to a line.
pub(super) fn lines(edge: &GraphEdge) -> Vec<String> {
    // One more tool takes the same space as the line "and 1 more".
    let most = if edge.tools.len() == MOST_TOOLS + 1 {
        MOST_TOOLS + 1
    } else {
        MOST_TOOLS
    };
    let mut lines: Vec<String> = edge
        .tools
        .iter()
        .take(most)
        .map(|tool| visible(tool))
        .collect();
    if let more @ 1.. = edge.tools.len() - lines.len() {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Whether some tool is available in every state.
pub(super) fn has_any_state(graph: &Graph) -> bool {
    graph
        .edges
        .iter()
        .any(|edge| edge.from == EdgeOrigin::AnyState)
}
