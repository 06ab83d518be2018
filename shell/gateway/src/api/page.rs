//! Pagination of lists.

use super::error::ApiError;
use super::field::{ApiField, ApiFieldType};
use super::request_params::RequestParams;

/// The default number of entries of a page.
const DEFAULT_LIMIT: usize = 100;
/// The most entries of a page.
pub(super) const MAX_LIMIT: u32 = 1_000;

/// The parameter for the number of entries.
pub(super) const LIMIT: ApiField = ApiField::new(
    "limit",
    ApiFieldType::Count(MAX_LIMIT),
    "the most entries of one page",
);
/// The parameter for the start of a page.
pub(super) const CURSOR: ApiField = ApiField::new(
    "cursor",
    ApiFieldType::Text,
    "where to continue: the `next` of the previous page",
);

/// The requested number of entries.
pub(super) fn limit(given: &RequestParams) -> usize {
    let wanted = given.count("limit");
    let wanted = wanted.and_then(|it| usize::try_from(it).ok());
    wanted.unwrap_or(DEFAULT_LIMIT)
}

/// One page of a list, and the cursor of the next one. Entries are identified by `key`; a cursor is the key of
/// the last entry of the previous page.
pub(super) fn paginate<T>(
    entries: Vec<T>,
    given: &RequestParams,
    key: impl Fn(&T) -> String,
) -> Result<(Vec<T>, Option<String>), ApiError> {
    let from = match given.text("cursor") {
        None => 0,
        Some(cursor) => {
            let last = entries.iter().position(|entry| key(entry) == cursor);
            last.ok_or_else(unknown_cursor)?.saturating_add(1)
        }
    };
    let limit = limit(given);
    let more = entries.len() > from.saturating_add(limit);
    let page: Vec<T> = entries.into_iter().skip(from).take(limit).collect();
    let next = page.last().filter(|_| more).map(key);
    Ok((page, next))
}

/// The error for a cursor that the gateway did not issue, or that is no longer valid.
pub(super) fn unknown_cursor() -> ApiError {
    ApiError::invalid("the cursor is not one of ours; start again without one")
}
