use super::bound::MAX_VALUES;
use super::cell::Type;
use super::key::ValueHash;

/// Counts per type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Types([u64; 7]);

/// How often something was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<T> {
    pub(super) of: T,
    pub(super) count: u64,
    serial: u64,
}

/// A count that grows at most once per result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    pub(super) count: u64,
    serial: u64,
}

/// The distinct values of a path.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// All of them, sorted by hash.
    Few(Vec<Entry<ValueHash>>),
    /// More than are kept.
    Many,
}

/// Counts a result for an entry; says whether the entry is new.
pub(super) fn bump<T: Copy + Ord>(entries: &mut Vec<Entry<T>>, of: T, serial: u64) -> bool {
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
                Entry {
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
pub(super) fn add_all<T: Copy + Ord>(mine: &mut Vec<Entry<T>>, theirs: &[Entry<T>]) {
    for entry in theirs {
        match mine.binary_search_by_key(&entry.of, |entry| entry.of) {
            Ok(at) => {
                if let Some(mine) = mine.get_mut(at) {
                    mine.count = mine.count.saturating_add(entry.count);
                }
            }
            Err(at) => mine.insert(at, Entry::new(entry.of, entry.count)),
        }
    }
}

/// How often something was seen, 0 where it was not.
pub(super) fn count_of<T: Copy + Ord>(entries: &[Entry<T>], of: T) -> u64 {
    let found = entries.binary_search_by_key(&of, |entry| entry.of).ok();
    found
        .and_then(|at| entries.get(at))
        .map_or(0, |entry| entry.count)
}

impl<T> Entry<T> {
    /// An entry no result being observed has been counted for.
    pub(super) const fn new(of: T, count: u64) -> Self {
        Self {
            of,
            count,
            serial: 0,
        }
    }
}

impl Tally {
    pub(super) const fn new(count: u64) -> Self {
        Self { count, serial: 0 }
    }

    /// Counts a result; says whether it is the first.
    pub(super) const fn bump(&mut self, serial: u64) -> bool {
        if self.serial == serial {
            return false;
        }
        self.serial = serial;
        self.count = self.count.saturating_add(1);
        self.count == 1
    }
}

impl Types {
    pub(super) const NONE: Self = Self([0; 7]);

    pub(super) fn get(&self, kind: Type) -> u64 {
        self.0.get(kind as usize).copied().unwrap_or(0)
    }

    /// The types seen, with their counts.
    pub(super) fn seen(&self) -> impl Iterator<Item = (Type, u64)> + '_ {
        Type::ALL
            .into_iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
    }

    /// Says whether the type is new.
    pub(super) fn add(&mut self, kind: Type, more: u64) -> bool {
        let Some(count) = self.0.get_mut(kind as usize) else {
            return false;
        };
        let new = *count == 0;
        *count = count.saturating_add(more);
        new
    }
}

impl Values {
    /// Forgets them when they are too many.
    pub(super) fn bound(&mut self) {
        if matches!(self, Self::Few(values) if values.len() > MAX_VALUES) {
            *self = Self::Many;
        }
    }
}
