//! Pages of lists.

use super::error::ApiError;
use super::field::{Field, Kind};
use super::given::Given;

/// How many entries a page has where nobody says.
const USUAL: usize = 100;
/// How many it has at most.
pub(super) const MOST: u32 = 1_000;

/// How many entries are wanted.
pub(super) const LIMIT: Field =
    Field::new("limit", Kind::Count(MOST), "the most entries of one page");
/// Where a page begins.
pub(super) const CURSOR: Field = Field::new(
    "cursor",
    Kind::Text,
    "where to go on: the `next` of the page before",
);

/// How many entries are wanted.
pub(super) fn limit(given: &Given) -> usize {
    let wanted = given.count("limit");
    let wanted = wanted.and_then(|it| usize::try_from(it).ok());
    wanted.unwrap_or(USUAL)
}

/// One page of a list, and where the next one begins. Entries are known by `key`; the cursor is that of
/// the last entry of the page before.
pub(super) fn page<T>(
    entries: Vec<T>,
    given: &Given,
    key: impl Fn(&T) -> String,
) -> Result<(Vec<T>, Option<String>), ApiError> {
    let from = match given.text("cursor") {
        None => 0,
        Some(cursor) => {
            let last = entries.iter().position(|entry| key(entry) == cursor);
            last.ok_or_else(unknown)?.saturating_add(1)
        }
    };
    let limit = limit(given);
    let more = entries.len() > from.saturating_add(limit);
    let page: Vec<T> = entries.into_iter().skip(from).take(limit).collect();
    let next = page.last().filter(|_| more).map(key);
    Ok((page, next))
}

/// The error of a cursor that is none of ours, or no longer.
pub(super) fn unknown() -> ApiError {
    ApiError::invalid("the cursor is none of ours; start again without one")
}
