use std::collections::BTreeMap;

use unicode_security::skeleton;

use super::super::finding::{Detector, TextFinding, Weight};
use super::super::name_words::fold_name;
use super::ServerTool;

/// A way in which two tools can be confused.
struct Collision {
    /// Tools with the same key collide.
    key: fn(&ServerTool<'_>) -> String,
    /// Whether two tools with the same key collide in this way, and not in a more severe or more
    /// obvious one.
    applies: fn(&ServerTool<'_>, &ServerTool<'_>) -> bool,
    across: Weight,
    within: Weight,
    message: &'static str,
}

const COLLISIONS: [Collision; 4] = [
    Collision {
        key: |tool| tool.name.to_owned(),
        applies: |_, _| true,
        across: Weight::Medium,
        within: Weight::Medium,
        message: "has the same name as",
    },
    Collision {
        key: |tool| visual_skeleton(tool.name),
        applies: |a, b| a.name != b.name,
        across: Weight::High,
        within: Weight::High,
        message: "has a name that looks like",
    },
    Collision {
        key: |tool| fold_name(tool.name),
        applies: |a, b| a.name != b.name,
        across: Weight::Medium,
        within: Weight::Low,
        message: "differs only in case or separators from",
    },
    Collision {
        key: |tool| format!("{}_{}", tool.server, tool.name),
        applies: |a, b| a.server != b.server,
        across: Weight::Medium,
        within: Weight::Medium,
        message: "has the same name behind a gateway that joins server and tool as",
    },
];

/// The maximum number of tools with one key that are compared with each other.
const COMPARED: usize = 64;

pub(super) fn scan(tools: &[ServerTool<'_>]) -> Vec<(usize, TextFinding)> {
    let mut findings = Vec::new();
    for collision in &COLLISIONS {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, tool) in tools.iter().enumerate() {
            groups.entry((collision.key)(tool)).or_default().push(index);
        }
        for group in groups.values().filter(|group| group.len() > 1) {
            findings.extend(check_group(tools, collision, group));
        }
    }
    findings
}

/// One finding for each tool of a group that collides with another.
fn check_group(
    tools: &[ServerTool<'_>],
    collision: &Collision,
    group: &[usize],
) -> Vec<(usize, TextFinding)> {
    let mut findings = Vec::new();
    for (index, tool) in members(tools, group) {
        let others: Vec<&ServerTool<'_>> = members(tools, group)
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
        let finding = TextFinding {
            detector: Detector::CollidingName,
            weight,
            pointer: tool.name_pointer(),
            message: format!("{} {}{more}", collision.message, first.quoted()),
            decoded: None,
        };
        findings.push((index, finding));
    }
    findings
}

fn members<'t, 'a>(
    tools: &'t [ServerTool<'a>],
    group: &'t [usize],
) -> impl Iterator<Item = (usize, &'t ServerTool<'a>)> {
    group
        .iter()
        .filter_map(|index| Some((*index, tools.get(*index)?)))
}

/// What a name looks like, by UTS 39.
fn visual_skeleton(name: &str) -> String {
    skeleton(name).collect()
}
