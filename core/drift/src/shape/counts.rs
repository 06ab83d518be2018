use super::shape_counter::ValueType;
use super::size_limits::MAX_VALUES;
use super::value_key::ValueHash;

/// Counts per type.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeCounts([u64; 7]);

/// A value and the number of results that had it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountEntry<T> {
    pub(super) of: T,
    pub(super) count: u64,
    serial: u64,
}

/// A count that grows at most once per result.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultCount {
    pub(super) count: u64,
    serial: u64,
}

/// The distinct values of a path.
#[derive(Clone, Debug)]
pub(super) enum DistinctValues {
    /// All values, sorted by hash.
    Few(Vec<CountEntry<ValueHash>>),
    /// There are more than the limit.
    Many,
}

/// Counts a result for an entry; returns whether the entry is new.
pub(super) fn bump<T: Copy + Ord>(entries: &mut Vec<CountEntry<T>>, of: T, serial: u64) -> bool {
    match entries.binary_search_by_key(&of, |entry| entry.of) {
        Ok(at) => {
            if let Some(entry) = entries.get_mut(at)
                && entry.serial != serial
            {
                entry.count = entry.count.saturating_add(1);
                entry.serial = serial;
            }
            false
        }
        Err(at) => {
            entries.insert(
                at,
                CountEntry {
                    of,
                    count: 1,
                    serial,
                },
            );
            true
        }
    }
}

/// Adds the counts of other entries.
pub(super) fn add_all<T: Copy + Ord>(mine: &mut Vec<CountEntry<T>>, theirs: &[CountEntry<T>]) {
    for entry in theirs {
        match mine.binary_search_by_key(&entry.of, |entry| entry.of) {
            Ok(at) => {
                if let Some(mine) = mine.get_mut(at) {
                    mine.count = mine.count.saturating_add(entry.count);
                }
            }
            Err(at) => mine.insert(at, CountEntry::new(entry.of, entry.count)),
        }
    }
}

/// How often something was seen, 0 where it was not.
pub(super) fn count_of<T: Copy + Ord>(entries: &[CountEntry<T>], of: T) -> u64 {
    let found = entries.binary_search_by_key(&of, |entry| entry.of).ok();
    found
        .and_then(|at| entries.get(at))
        .map_or(0, |entry| entry.count)
}

impl<T> CountEntry<T> {
    /// An entry that the current result has not counted yet.
    pub(super) const fn new(of: T, count: u64) -> Self {
        Self {
            of,
            count,
            serial: 0,
        }
    }
}

impl ResultCount {
    pub(super) const fn new(count: u64) -> Self {
        Self { count, serial: 0 }
    }

    /// Counts a result; returns whether it is the first.
    pub(super) const fn bump(&mut self, serial: u64) -> bool {
        if self.serial == serial {
            return false;
        }
        self.serial = serial;
        self.count = self.count.saturating_add(1);
        self.count == 1
    }
}

impl TypeCounts {
    pub(super) const NONE: Self = Self([0; 7]);

    pub(super) fn get(&self, kind: ValueType) -> u64 {
        self.0.get(kind as usize).copied().unwrap_or(0)
    }

    /// The types seen, with their counts.
    pub(super) fn nonzero(&self) -> impl Iterator<Item = (ValueType, u64)> + '_ {
        ValueType::ALL
            .into_iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
    }

    /// Returns whether the type is new.
    pub(super) fn add(&mut self, kind: ValueType, more: u64) -> bool {
        let Some(count) = self.0.get_mut(kind as usize) else {
            return false;
        };
        let new = *count == 0;
        *count = count.saturating_add(more);
        new
    }
}

impl DistinctValues {
    /// Discards the values when there are too many.
    pub(super) fn bound(&mut self) {
        if matches!(self, Self::Few(values) if values.len() > MAX_VALUES) {
            *self = Self::Many;
        }
    }
}
