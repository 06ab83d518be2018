use super::*;
use crate::Document;
use toolwarden_model::StateName;

fn graph(text: &str) -> Graph {
    let document = Document::read(text).unwrap();
    Graph::of(&Policy::read(&document).unwrap().policy)
}

const EXAMPLE: &str = "
tools:
  knowledge-query: {state: analysis, available_in_states: [undefined, research]}
  graph-update: {available_in_states: [analysis, modification]}
  text-completion: {state: undefined}
  complex-analysis: {state: results, available_in_states: [analysis]}
  reset-workflow: {state: undefined, available_in_states: [analysis, results]}
";

/// Names with characters that are markup in one of the output languages.
const HOSTILE: &[&str] = &[
    "a\"b",
    "line\nbreak",
    "<script>alert(1)</script>",
    "-->",
    "s1[\"x\"]",
    "%%{init: {}}%%",
    "end",
    "`code`",
    "1. list",
    "- item",
    "状態",
    "\u{202e}backwards",
    "a&lt;b;#35;",
    "|pipe|",
    "]]>",
    "\\N \\l",
    "s0; } digraph { x",
    "\u{0}\u{ffff}",
];

fn hostile() -> Graph {
    let mut policy = Policy::default();
    for (number, name) in HOSTILE.iter().enumerate() {
        let mut tool = crate::policy::ToolPolicy::new(name);
        let next = HOSTILE.get(number + 1).copied();
        let next = next.unwrap_or(INITIAL_STATE.as_str());
        tool.next_state = Some(StateName::new(next));
        tool.states = StateSet::Only(BTreeSet::from([StateName::new(*name)]));
        policy.tools.push(tool);
    }
    Graph::of(&policy)
}

#[test]
fn the_example_of_the_document() {
    let graph = graph(EXAMPLE);
    let states = graph.states.iter();
    let states: Vec<_> = states
        .map(|it| (it.name.as_str(), it.initial, it.reachable))
        .collect();
    assert_eq!(
        states,
        [
            ("analysis", false, true),
            ("modification", false, false),
            ("research", false, false),
            ("results", false, true),
            ("undefined", true, true),
        ]
    );
    assert!(graph.states.iter().all(|state| !state.dead_end));
    assert_eq!(
        mermaid(&graph),
        "\
flowchart TD
    any{{\"any state\"}}
    s0[\"analysis\"]
    s1[\"modification\"]
    s2[\"research\"]
    s3[\"results\"]
    s4([\"undefined\"])
    any -->|\"text-completion\"| s4
    s0 -->|\"graph-update\"| s0
    s0 -->|\"complex-analysis\"| s3
    s0 -->|\"reset-workflow\"| s4
    s1 -->|\"graph-update\"| s1
    s2 -->|\"knowledge-query\"| s0
    s3 -->|\"reset-workflow\"| s4
    s4 -->|\"knowledge-query\"| s0
    classDef unreachable stroke-dasharray: 4 4,opacity: 0.6
    class s1,s2 unreachable
"
    );
    let dot = dot(&graph);
    assert!(
        dot.contains("    s3 -> s4 [label=\"reset-workflow\"];\n"),
        "{dot}"
    );
    assert!(
        dot.contains("    s4 [label=\"undefined\", penwidth=2];\n"),
        "{dot}"
    );
}

#[test]
fn starts_follow_the_policy() {
    let initial = |text: &str| {
        let states = graph(text).states.into_iter().filter(|state| state.initial);
        states.map(|state| state.name).collect::<Vec<_>>()
    };
    assert_eq!(initial("tools: {a: null}"), ["undefined"]);
    assert_eq!(
        initial("{tools: {a: null}, sessions: {initial_states: []}}"),
        ["undefined"]
    );
    assert_eq!(
        initial("{tools: {a: null}, sessions: {initial_states: [b]}}"),
        ["b", "undefined"]
    );
    let every =
        "{tools: {a: {state: b, available_in_states: [c]}}, sessions: {initial_states: '*'}}";
    assert_eq!(initial(every), ["b", "c", "undefined"]);
    assert_eq!(
        initial("{tools: {}, sessions: {initial_states: '*'}}"),
        ["undefined"]
    );
}

#[test]
fn dead_ends_are_states_without_tools() {
    let dead = |text: &str| {
        let states = graph(text)
            .states
            .into_iter()
            .filter(|state| state.dead_end);
        states.map(|state| state.name).collect::<Vec<_>>()
    };
    assert_eq!(
        dead("tools: {a: {state: b, available_in_states: [undefined]}}"),
        ["b"]
    );
    assert_eq!(
        dead("tools: {a: {state: b, available_in_states: [c]}}"),
        ["undefined"]
    );
    assert!(dead("tools: {a: {state: b}}").is_empty());
}

#[test]
fn hostile_names_stay_in_quoted_mermaid_labels() {
    let text = mermaid(&hostile());
    for line in text.lines().skip(1) {
        let quotes = line.matches('"').count();
        let label = line
            .split('"')
            .nth(1)
            .unwrap_or_default()
            .replace("<br/>", "");
        assert!(quotes == 2 || line.contains("class"), "{line}");
        let harmless = |c: char| c.is_alphanumeric() || " #;-_.:/".contains(c);
        assert!(label.chars().all(harmless), "{line}");
    }
    assert!(
        text.contains("[\"#60;script#62;alert#40;1#41;#60;#47;script#62;\"]"),
        "{text}"
    );
}

#[test]
fn hostile_names_stay_in_quoted_dot_labels() {
    let text = dot(&hostile());
    for line in text.lines().skip(3) {
        // Outside quoted texts no name may occur.
        let line = line.replace("\\\\", "").replace("\\\"", "");
        let outside: String = line.split('"').step_by(2).collect();
        let known = outside
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || " []->=,;}".contains(c));
        assert!(known && line.matches('"').count() % 2 == 0, "{line}");
    }
}

#[test]
fn pictures_are_well_formed() {
    for graph in [
        hostile(),
        graph(EXAMPLE),
        graph("tools: {a: null}"),
        graph("tools: {}"),
    ] {
        let text = svg(&graph);
        let mut open: Vec<&str> = Vec::new();
        for piece in text.split('<').skip(1) {
            let (tag, content) = piece.split_once('>').unwrap();
            assert!(!content.contains('>') && !tag.contains('&'), "{piece}");
            assert!(tag.matches('"').count() % 2 == 0, "{tag}");
            let name = tag.split([' ', '/']).find(|it| !it.is_empty()).unwrap();
            assert!(KNOWN.contains(&name), "{tag}");
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') {
                open.push(name);
            }
            let entities = ["amp;", "lt;", "gt;", "quot;"];
            let mut escapes = content.split('&').skip(1);
            assert!(
                escapes.all(|it| entities.iter().any(|entity| it.starts_with(entity))),
                "{content}"
            );
            assert!(
                content.chars().all(|c| c == '\n' || !c.is_control()),
                "{content}"
            );
        }
        assert!(open.is_empty());
    }
}

const KNOWN: &[&str] = &[
    "svg", "title", "style", "defs", "marker", "path", "rect", "text", "g",
];

#[test]
fn boxes_do_not_overlap() {
    let mut text = "tools:\n".to_owned();
    for number in 0..20 {
        let (next, far) = ((number + 1) % 20, (number * 7) % 20);
        text.push_str(&format!(
            "  step-{number}: {{available_in_states: [s{number}], state: s{next}}}\n  \
             jump-{number}: {{available_in_states: [s{number}, s{far}], state: s{}}}\n",
            (number * 3) % 20
        ));
    }
    let text = svg(&graph(&text));
    let value = |tag: &str, key: &str| -> f64 {
        let (_, rest) = tag.split_once(&format!(" {key}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let boxes: Vec<[f64; 4]> = text
        .split("<rect class=\"state")
        .skip(1)
        .map(|tag| {
            let (x, y) = (value(tag, "x"), value(tag, "y"));
            [x, y, x + value(tag, "width"), y + value(tag, "height")]
        })
        .collect();
    assert_eq!(boxes.len(), 21);
    for (index, a) in boxes.iter().enumerate() {
        for b in boxes.iter().skip(index + 1) {
            let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
            assert!(apart, "{a:?} {b:?}");
        }
    }
}

#[test]
fn what_is_too_large_to_read_is_left_out_and_told() {
    let mut policy = Policy::default();
    for number in 0..3000 {
        let mut tool = crate::policy::ToolPolicy::new(&format!("t{number}"));
        tool.states = StateSet::Only(BTreeSet::from([StateName::new(format!("s{number:04}"))]));
        tool.next_state = Some(StateName::new(format!("s{:04}", (number * 17 + 1) % 3000)));
        policy.tools.push(tool);
    }
    policy
        .tools
        .push(crate::policy::ToolPolicy::new("everywhere"));
    let text = svg(&Graph::of(&policy));
    assert!(text.contains("not drawn: 2851 states and"), "{text}");
    assert!(text.contains("any state"));
}
