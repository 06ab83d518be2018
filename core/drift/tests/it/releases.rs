//! Real releases: every two consecutive versions of every server of the corpus.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_drift::{
    Change, ChangeClass, Judgement, ListDrift, ObservedDefinition, Options, ToolDrift,
    changed_texts, compare_lists,
};

use crate::observed;

/// The table of `docs/watch.md`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Table(BTreeMap<&'static str, usize>);

impl Table {
    fn count(&mut self, row: &'static str) {
        *self.0.entry(row).or_default() += 1;
    }

    fn of(&self, row: &str) -> usize {
        self.0.get(row).copied().unwrap_or_default()
    }
}

fn observe_definitions(tools: &[Value]) -> Vec<ObservedDefinition<'_>> {
    tools.iter().map(observed).collect()
}

fn validator(schema: Option<&Value>) -> Option<jsonschema::Validator> {
    jsonschema::options()
        .offline()
        .should_validate_formats(false)
        .build(schema?)
        .ok()
}

/// Whether a check fails without any options.
fn fails_check(tool: &ToolDrift) -> bool {
    let classes = [
        ChangeClass::Breaking,
        ChangeClass::Trust,
        ChangeClass::Unknown,
        ChangeClass::Ignored,
        ChangeClass::Added,
        ChangeClass::Text,
    ];
    let by_default = match tool {
        ToolDrift::Changed(drift) => drift
            .changes
            .iter()
            .any(|it| it.evidence.is_unsafe_default()),
        _ => false,
    };
    by_default || classes.iter().any(|class| tool.has_class(*class))
}

/// Whether a comparison without pins fails without any options.
fn fails_diff(tool: &ToolDrift) -> bool {
    let classes = [
        ChangeClass::Breaking,
        ChangeClass::Trust,
        ChangeClass::Unknown,
        ChangeClass::Ignored,
    ];
    let by_default = match tool {
        ToolDrift::Changed(drift) => drift
            .changes
            .iter()
            .any(|it| it.evidence.is_unsafe_default()),
        _ => false,
    };
    by_default || classes.iter().any(|class| tool.has_class(*class))
}

/// What the defaults ask of reviewers.
#[derive(Debug, Default)]
struct Cost {
    checks: usize,
    diffs: usize,
    unchanged: usize,
    /// Tools with text to approve.
    text: usize,
    /// Tools that only their text fails.
    only_text: usize,
    /// Tools whose words are a matter of trust.
    words: usize,
    /// Tools that begin to publish annotations.
    published: usize,
    /// Tools with annotations that add or change a hint toward less caution.
    hints: usize,
}

impl Cost {
    fn count(&mut self, drift: &ListDrift) {
        self.checks += usize::from(drift.tools.iter().any(fails_check));
        self.diffs += usize::from(drift.tools.iter().any(fails_diff));
        self.unchanged += usize::from(drift.tools.is_empty());
        for tool in &drift.tools {
            let (ToolDrift::Changed(drift) | ToolDrift::Renamed { drift, .. }) = tool else {
                continue;
            };
            let any = |is: &dyn Fn(&Change) -> bool| drift.changes.iter().any(is);
            let has_text = any(&|change| changed_texts(change).is_some());
            let fails_otherwise = |change: &Change| {
                change.class > ChangeClass::Text && changed_texts(change).is_none()
                    || change.evidence.is_unsafe_default()
            };
            let is_renamed = matches!(tool, ToolDrift::Renamed { .. });
            self.text += usize::from(has_text);
            self.only_text += usize::from(has_text && !is_renamed && !any(&fails_otherwise));
            self.words += usize::from(any(&|change| {
                changed_texts(change).is_some() && change.class == ChangeClass::Trust
            }));
            self.published += usize::from(any(&|change| change.rule == "annotations-published"));
            self.hints += usize::from(any(&|change| change.rule == "less-caution"));
        }
    }

    /// The sentences of `docs/watch.md`.
    fn sentences(&self, pairs: usize) -> [String; 4] {
        [
            format!("{} fail now. Of {pairs} diffs", self.checks),
            format!("{} fail now. {} pairs do not", self.diffs, self.unchanged),
            format!(
                "{} have text to approve; nothing else fails {} of them. {} have words",
                self.text, self.only_text, self.words
            ),
            format!(
                "{} tools begin to publish annotations, and {} tools that had",
                self.published, self.hints
            ),
        ]
    }
}

#[test]
fn releases_are_judged_and_every_witness_holds() {
    let Some(pairs) = toolwarden_testkit::consecutive_releases() else {
        return;
    };
    let mut table = Table::default();
    let mut classes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut cost = Cost::default();
    let mut unknown = Vec::new();
    for (old, new) in &pairs {
        let (before, after) = (
            observe_definitions(&old.tools),
            observe_definitions(&new.tools),
        );
        let drift: ListDrift = compare_lists(&before, &after, &Options::default(), &[]);
        cost.count(&drift);
        for _ in 0..drift.unchanged {
            table.count("unchanged");
        }
        for tool in &drift.tools {
            let class = classes.entry(tool.class().as_str()).or_default();
            class.0 += 1;
            class.1 += usize::from(fails_check(tool));
            let changed = match tool {
                ToolDrift::Added { .. } => {
                    table.count("added");
                    continue;
                }
                ToolDrift::Removed { .. } => {
                    table.count("removed");
                    continue;
                }
                ToolDrift::Renamed { .. } => {
                    table.count("renamed");
                    continue;
                }
                ToolDrift::Changed(changed) => changed,
            };
            table.count("changed");
            let Some(input) = &changed.input else {
                table.count("input as before");
                continue;
            };
            let origin = || {
                format!(
                    "{} {} -> {} {}",
                    old.package, old.version, new.version, changed.tool
                )
            };
            match &input.declared {
                Judgement::Equivalent => table.count("equivalent"),
                Judgement::Compatible(None) => table.count("compatible"),
                Judgement::Compatible(Some(_)) => table.count("widened"),
                Judgement::Breaking(witness) => {
                    table.count("breaking");
                    let find = |tools: &[Value]| {
                        let tool = tools
                            .iter()
                            .find(|tool| tool["name"] == changed.tool.as_str());
                        tool.and_then(|tool| validator(tool.get("inputSchema")))
                    };
                    let (was, is) = (find(&old.tools), find(&new.tools));
                    assert!(
                        was.is_none_or(|was| was.is_valid(&witness.value)),
                        "{}: {witness:?}",
                        origin()
                    );
                    assert!(
                        is.is_some_and(|is| !is.is_valid(&witness.value)),
                        "{}: {witness:?}",
                        origin()
                    );
                }
                Judgement::Unknown(why) => {
                    table.count("unknown");
                    unknown.push(format!("{}: {}", origin(), why.reason.text()));
                }
            }
            if matches!(input.open, Judgement::Breaking(_))
                && !matches!(input.declared, Judgement::Breaking(_))
            {
                table.count("breaking for open callers only");
            }
        }
    }
    let judged = table.of("changed") - table.of("input as before");
    assert!(
        unknown.len() * 100 <= judged,
        "{} of {judged}: {unknown:#?}",
        unknown.len()
    );
    let docs = include_str!("../../../../docs/watch.md");
    for (row, count) in &table.0 {
        assert!(
            docs.contains(&format!("| {row} | {count} |")),
            "docs/watch.md lacks `| {row} | {count} |`: {table:#?}"
        );
    }
    for (class, (tools, failing)) in &classes {
        let row = docs.lines().find(|line| {
            line.starts_with(&format!("| `{class}` |"))
                && line.ends_with(&format!("| {tools} | {failing} |"))
        });
        assert!(row.is_some(), "docs/watch.md lacks `{class}`: {classes:#?}");
    }
    let flowing = docs.replace('\n', " ").replace("  ", " ");
    for sentence in cost.sentences(pairs.len()) {
        assert!(
            flowing.contains(&sentence),
            "docs/watch.md lacks `{sentence}`: {cost:#?} {classes:#?}"
        );
    }
    let said = format!("{} pairs of consecutive versions", pairs.len());
    assert!(docs.contains(&said), "docs/watch.md lacks `{said}`");
}
