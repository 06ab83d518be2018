//! Names that are one letter away from a name of another server.

use std::collections::BTreeMap;

use super::super::finding::{Detector, TextFinding, Weight};
use super::ServerTool;

/// The weight of names that are one letter apart.
pub(super) const WEIGHT: Weight = Weight::Low;

/// In shorter names one letter makes another word.
const SHORTEST: usize = 8;

/// Longer names are not compared, because people do not type them.
const LONGEST: usize = 64;

/// The maximum number of names compared that share a form with one letter left out.
const COMPARED: usize = 64;

pub(super) fn scan(tools: &[ServerTool<'_>]) -> Vec<(usize, TextFinding)> {
    let names: Vec<(usize, Vec<char>)> = tools
        .iter()
        .enumerate()
        .map(|(index, tool)| (index, tool.name.chars().take(LONGEST + 1).collect()))
        .filter(|(_, name): &(usize, Vec<char>)| (SHORTEST..=LONGEST).contains(&name.len()))
        .collect();
    // Two names one edit apart share a form with at most one letter left out.
    let mut by_form: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, (_, name)) in names.iter().enumerate() {
        for form in forms(name) {
            by_form.entry(form).or_default().push(place);
        }
    }
    let mut findings = Vec::new();
    for (index, name) in &names {
        let Some(tool) = tools.get(*index) else {
            continue;
        };
        let near = forms(name)
            .filter_map(|form| by_form.get(&form))
            .flat_map(|places| places.iter().take(COMPARED))
            .filter_map(|place| names.get(*place))
            .filter(|(_, other)| is_one_edit(name, other))
            .filter_map(|(other, _)| tools.get(*other))
            .find(|other| other.server != tool.server);
        if let Some(other) = near {
            let finding = TextFinding {
                detector: Detector::CollidingName,
                weight: WEIGHT,
                pointer: tool.name_pointer(),
                message: format!("is one letter away from {}", other.quoted()),
                decoded: None,
            };
            findings.push((*index, finding));
        }
    }
    findings
}

/// The name, and the name with each one letter left out.
fn forms(name: &[char]) -> impl Iterator<Item = String> {
    let without = |left_out: usize| {
        name.iter()
            .enumerate()
            .filter(move |(at, _)| *at != left_out)
            .map(|(_, c)| *c)
            .collect()
    };
    (0..=name.len()).map(without)
}

/// Whether one changed, added or omitted letter turns one name into the other.
fn is_one_edit(a: &[char], b: &[char]) -> bool {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let a = a.get(start..).unwrap_or_default();
    let b = b.get(start..).unwrap_or_default();
    let tail = |name: &[char]| name.get(1..).unwrap_or_default().to_vec();
    match a.len().abs_diff(b.len()) {
        0 => !a.is_empty() && tail(a) == tail(b),
        1 if a.len() > b.len() => tail(a) == b,
        1 => tail(b) == a,
        _ => false,
    }
}
