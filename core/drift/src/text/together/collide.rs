use std::collections::BTreeMap;

use unicode_security::skeleton;

use super::super::finding::{Detector, Finding, Weight};
use super::super::names::folded;
use super::Named;

/// A way for two tools to be taken for each other.
struct Collision {
    /// Tools with the same key collide.
    key: fn(&Named<'_>) -> String,
    /// Whether two tools with the same key are a case of this, and not of a graver or plainer one.
    applies: fn(&Named<'_>, &Named<'_>) -> bool,
    across: Weight,
    within: Weight,
    says: &'static str,
}

const COLLISIONS: [Collision; 4] = [
    Collision {
        key: |tool| tool.name.to_owned(),
        applies: |_, _| true,
        across: Weight::Medium,
        within: Weight::Medium,
        says: "has the same name as",
    },
    Collision {
        key: |tool| looks(tool.name),
        applies: |a, b| a.name != b.name,
        across: Weight::High,
        within: Weight::High,
        says: "has a name that looks like",
    },
    Collision {
        key: |tool| folded(tool.name),
        applies: |a, b| a.name != b.name,
        across: Weight::Medium,
        within: Weight::Low,
        says: "differs only in case or separators from",
    },
    Collision {
        key: |tool| format!("{}_{}", tool.server, tool.name),
        applies: |a, b| a.server != b.server,
        across: Weight::Medium,
        within: Weight::Medium,
        says: "has the same name behind a gateway that joins server and tool as",
    },
];

/// How many tools of one key are compared with each other.
const COMPARED: usize = 64;

pub(super) fn scan(tools: &[Named<'_>]) -> Vec<(usize, Finding)> {
    let mut findings = Vec::new();
    for collision in &COLLISIONS {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, tool) in tools.iter().enumerate() {
            groups.entry((collision.key)(tool)).or_default().push(index);
        }
        for group in groups.values().filter(|group| group.len() > 1) {
            findings.extend(of_group(tools, collision, group));
        }
    }
    findings
}

/// One finding for each tool of a group that collides with another.
fn of_group(tools: &[Named<'_>], collision: &Collision, group: &[usize]) -> Vec<(usize, Finding)> {
    let mut findings = Vec::new();
    for (index, tool) in members(tools, group) {
        let others: Vec<&Named<'_>> = members(tools, group)
            .take(COMPARED)
            .filter(|(other, _)| *other != index)
            .map(|(_, other)| other)
            .filter(|other| (collision.applies)(tool, other))
            .collect();
        let Some(first) = others
            .iter()
            .find(|other| other.server != tool.server)
            .or(others.first())
        else {
            continue;
        };
        let weight = if first.server == tool.server {
            collision.within
        } else {
            collision.across
        };
        let more = match others.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let finding = Finding {
            detector: Detector::CollidingName,
            weight,
            pointer: tool.name_pointer(),
            message: format!("{} {}{more}", collision.says, first.quoted()),
            decoded: None,
        };
        findings.push((index, finding));
    }
    findings
}

fn members<'t, 'a>(
    tools: &'t [Named<'a>],
    group: &'t [usize],
) -> impl Iterator<Item = (usize, &'t Named<'a>)> {
    group
        .iter()
        .filter_map(|index| Some((*index, tools.get(*index)?)))
}

/// What a name looks like, by UTS 39.
fn looks(name: &str) -> String {
    skeleton(name).collect()
}
