use super::counts::DistinctValues;
use super::shape_node::ShapeNode;
use super::value_key::{HASH_CHARS, path_hash};

/// The maximum size of a shape as JSON, in bytes.
pub const MAX_BYTES: usize = 65_536;

/// The budget for paths, their types and their presence.
const STRUCTURE_BYTES: usize = 24_000;
/// The budget for formats, lengths and magnitudes.
const DETAIL_BYTES: usize = 17_000;
/// The budget for value hashes. The rest up to [`MAX_BYTES`] is for the counters of channels.
const VALUE_BYTES: usize = 22_000;

/// The minimum charge for a node, so that the number of nodes is bounded as well.
const MIN_NODE_BYTES: usize = 47;
/// The maximum number of nodes.
pub(super) const MAX_NODES: usize = STRUCTURE_BYTES / MIN_NODE_BYTES;
/// The maximum number of steps in a path.
pub(super) const MAX_DEPTH: u8 = 16;
/// The maximum number of distinct values stored per path; a path with more is not an enumeration.
pub(super) const MAX_VALUES: usize = 32;
/// The maximum number of results that can be compared exactly.
pub(super) const MAX_EXACT_RESULTS: u64 = 32;

/// The rank of a path in the order in which paths are kept: shallow ones first, then by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathRank {
    pub(super) depth: u8,
    pub(super) hash: u64,
}

impl PathRank {
    /// After every path.
    pub(super) const END: Self = Self {
        depth: u8::MAX,
        hash: u64::MAX,
    };
    /// Before every path that is too deep.
    pub(super) const TOO_DEEP: Self = Self {
        depth: MAX_DEPTH + 1,
        hash: 0,
    };

    pub(super) fn root(channel: &str) -> Self {
        Self {
            depth: 0,
            hash: path_hash(0, channel),
        }
    }

    pub(super) fn child(self, step: &str) -> Self {
        Self {
            depth: self.depth.saturating_add(1),
            hash: path_hash(self.hash, step),
        }
    }
}

/// The first path that is cut off, for each kind of content.
///
/// INVARIANT: a horizon is the first path, in the order of [`PathRank`], at which the bytes of all paths
/// up to it exceed the budget. What a path takes and which paths were seen only ever grows, so a
/// path before the final horizon was before the horizon at any time and in any part, and its counts
/// are complete: the outcome does not depend on the order or grouping of what was observed. This
/// holds only as long as nothing is moved from one node to another and no cost ever shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathCutoffs {
    pub(super) structure: PathRank,
    pub(super) details: PathRank,
    pub(super) values: PathRank,
}

impl PathCutoffs {
    pub(super) const OPEN: Self = Self {
        structure: PathRank::END,
        details: PathRank::END,
        values: PathRank::END,
    };

    /// The nearer horizon of each kind.
    pub(super) fn min(self, other: Self) -> Self {
        Self {
            structure: self.structure.min(other.structure),
            details: self.details.min(other.details),
            values: self.values.min(other.values),
        }
        .canonical()
    }

    /// What lies beyond the structure is cut anyway, and said once.
    fn canonical(self) -> Self {
        let within = |rank| {
            if rank < self.structure {
                rank
            } else {
                PathRank::END
            }
        };
        Self {
            structure: self.structure,
            details: within(self.details),
            values: within(self.values),
        }
    }

    /// The horizons of these nodes, given what was cut before.
    pub(super) fn of<'n>(self, roots: impl Iterator<Item = &'n ShapeNode>) -> Self {
        let mut costs = Vec::new();
        for root in roots {
            collect(root, &mut costs);
        }
        costs.sort_unstable_by_key(|(rank, _)| *rank);
        let horizon = |budget: usize, share: fn(&Cost) -> usize| {
            let mut spent = 0_usize;
            let over = costs.iter().find(|(_, cost)| {
                spent = spent.saturating_add(share(cost));
                spent > budget
            });
            over.map_or(PathRank::END, |(rank, _)| *rank)
        };
        self.min(Self {
            structure: horizon(STRUCTURE_BYTES, |cost| cost.structure),
            details: horizon(DETAIL_BYTES, |cost| cost.details),
            values: horizon(VALUE_BYTES, |cost| cost.values),
        })
    }
}

/// The maximum size of a node as JSON.
struct Cost {
    structure: usize,
    details: usize,
    values: usize,
}

fn collect(node: &ShapeNode, costs: &mut Vec<(PathRank, Cost)>) {
    costs.push((node.rank, cost(node)));
    for child in &node.children {
        collect(child, costs);
    }
}

/// The bytes of what [`super::json`] writes, with the comma after each member.
fn cost(node: &ShapeNode) -> Cost {
    let types: usize = node
        .types
        .nonzero()
        .map(|(_, count)| 5 + digits(count))
        .sum();
    // `"name":{"all":…,"c":{…},"n":…,"t":{…}},`
    let structure =
        node.name.len() + 6 + 7 + digits(node.full) + 7 + 5 + digits(node.n) + 7 + types;
    // A facet takes `"f":{…},` and each cell in it `"name":…,`.
    let mut details = 0;
    let mut facet = None;
    for entry in &node.cells {
        if facet.replace(entry.of.kind) != Some(entry.of.kind) {
            details += 7;
        }
        details += entry.of.name_len() + 4 + digits(entry.count);
    }
    Cost {
        structure: structure.max(MIN_NODE_BYTES),
        details,
        values: value_cost(node),
    }
}

/// `"u":…,`, `"x":"hash",` and `"v":"hash=count hash=count",`.
///
/// Every value is charged the digits of the node's own count, and more than fit are charged like as
/// many as fit: so the cost does not shrink when the values are dropped for being too many.
fn value_cost(node: &ShapeNode) -> usize {
    let width = digits(node.n);
    // The digest is charged also where the shape has too many results to keep it.
    let open = if node.open.count > 0 {
        5 + width + 7 + HASH_CHARS
    } else {
        0
    };
    let kept = match &node.values {
        DistinctValues::Few(values) => values.len(),
        DistinctValues::Many => MAX_VALUES,
    };
    let values = if kept > 0 {
        7 + kept * (HASH_CHARS + 2 + width)
    } else {
        0
    };
    open + values
}

fn digits(count: u64) -> usize {
    count.checked_ilog10().map_or(1, |log| log as usize + 1)
}
