//! Permission patterns in a tree of their parts, so that a lookup need not try every pattern.

use std::collections::BTreeMap;

use super::EVERY;

/// Patterns, each with a number.
#[derive(Clone, Debug, Default)]
pub(crate) struct PatternTree {
    root: Node,
}

#[derive(Clone, Debug, Default)]
struct Node {
    parts: BTreeMap<Box<str>, Self>,
    /// The pattern that ends here.
    pattern: Option<usize>,
}

impl PatternTree {
    /// Adds a pattern; an equal pattern that already exists keeps its number.
    pub(crate) fn insert(&mut self, pattern: &str, number: usize) {
        let mut node = &mut self.root;
        for part in pattern.split(':') {
            node = node.parts.entry(part.into()).or_default();
        }
        node.pattern.get_or_insert(number);
    }

    /// Every pattern that covers all permissions that a pattern or permission stands for, including an
    /// equal one.
    pub(crate) fn covering(&self, pattern: &str) -> Vec<usize> {
        let parts: Vec<&str> = pattern.split(':').collect();
        let mut found = Vec::new();
        self.root.covering(&parts, &mut found);
        found
    }

    /// Whether some pattern here shares a permission with the given pattern.
    pub(crate) fn overlaps(&self, pattern: &str) -> bool {
        let parts: Vec<&str> = pattern.split(':').collect();
        self.root.overlaps(&parts)
    }
}

impl Node {
    fn covering(&self, parts: &[&str], found: &mut Vec<usize>) {
        let Some((part, rest)) = parts.split_first() else {
            found.extend(self.pattern);
            return;
        };
        let star = self.parts.get(EVERY);
        // A star at the end of a pattern stands for this part and all that follow.
        found.extend(star.and_then(|star| star.pattern));
        let open = *part == EVERY && rest.is_empty();
        if open {
            return;
        }
        if let Some(star) = star.filter(|_| !rest.is_empty()) {
            star.covering(rest, found);
        }
        if let Some(node) = self.parts.get(*part).filter(|_| *part != EVERY) {
            node.covering(rest, found);
        }
    }

    fn overlaps(&self, parts: &[&str]) -> bool {
        let Some((part, rest)) = parts.split_first() else {
            return self.pattern.is_some();
        };
        let star = self.parts.get(EVERY);
        if star.is_some_and(|star| star.pattern.is_some()) {
            return true;
        }
        if *part == EVERY {
            return self
                .parts
                .values()
                .any(|node| rest.is_empty() || node.overlaps(rest));
        }
        let same = self.parts.get(*part);
        star.into_iter().chain(same).any(|node| node.overlaps(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Permission, PermissionPattern};
    use proptest::prelude::*;

    /// Every permission of up to four parts of two words.
    fn rights() -> Vec<Permission> {
        let mut texts = vec!["a".to_owned(), "b".to_owned()];
        let mut last = texts.clone();
        for _ in 0..3 {
            last = last
                .iter()
                .flat_map(|text| [format!("{text}:a"), format!("{text}:b")])
                .collect();
            texts.extend(last.clone());
        }
        texts
            .iter()
            .map(|text| Permission::parse(text).unwrap())
            .collect()
    }

    proptest! {
        #[test]
        fn the_tree_says_what_the_patterns_say(
            patterns in prop::collection::vec("[ab*](:[ab*]){0,2}", 1..8),
            asked in "[ab*](:[ab*]){0,2}",
        ) {
            let rights = rights();
            let of = |text: &str| {
                let pattern = PermissionPattern::parse(text).unwrap();
                rights.iter().filter(|right| pattern.covers(right)).collect::<Vec<_>>()
            };
            let mut patterns = patterns;
            patterns.sort();
            patterns.dedup();
            let mut tree = PatternTree::default();
            for (number, pattern) in patterns.iter().enumerate() {
                tree.insert(pattern, number);
            }
            let wanted = of(&asked);
            let mut covering = tree.covering(&asked);
            covering.sort_unstable();
            let expected: Vec<usize> = (0..patterns.len())
                .filter(|number| {
                    // With two words, `*` is indistinguishable from the pair `a` and `b`, which is not a
                    // pattern.
                    let held = of(&patterns[*number]);
                    wanted.iter().all(|right| held.contains(right))
                })
                .collect();
            prop_assert_eq!(covering, expected);
            let meets = patterns.iter().any(|it| of(it).iter().any(|right| wanted.contains(right)));
            prop_assert_eq!(tree.overlaps(&asked), meets);
        }
    }
}
