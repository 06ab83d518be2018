//! Groups that are requested outside a message.

use axum::http::HeaderMap;
use toolwarden_guard::RequestedGroups;

/// The header that requests groups.
const HEADER: &str = "toolwarden-groups";

/// The groups of the path, otherwise those of the header. A value that is present and empty requests no tools.
pub(super) fn requested_groups(path: Option<&str>, headers: &HeaderMap) -> Option<RequestedGroups> {
    if let Some(path) = path {
        return Some(parse_groups([path]));
    }
    let mut values = headers.get_all(HEADER).iter().peekable();
    values.peek()?;
    // A value that is not text requests a group that does not exist.
    let values = values.map(|value| value.to_str().unwrap_or("\u{fffd}"));
    Some(parse_groups(values))
}

fn parse_groups<'v>(values: impl IntoIterator<Item = &'v str>) -> RequestedGroups {
    let names = values.into_iter().flat_map(|value| value.split(','));
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_before_headers() {
        let mut headers = HeaderMap::new();
        let names = |path: Option<&str>, headers: &HeaderMap| {
            let groups = requested_groups(path, headers)?;
            Some(groups.names().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(names(None, &headers), None);
        headers.append(HEADER, "read, write".parse().unwrap());
        headers.append(HEADER, "admin".parse().unwrap());
        assert_eq!(names(None, &headers).unwrap(), ["read", "write", "admin"]);
        assert_eq!(names(Some("a,b"), &headers).unwrap(), ["a", "b"]);
        headers.clear();
        headers.append(HEADER, "".parse().unwrap());
        assert_eq!(names(None, &headers).unwrap(), [""; 0]);
    }
}
