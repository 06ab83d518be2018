//! Groups that are asked for beside a message.

use axum::http::HeaderMap;
use toolwarden_guard::RequestedGroups;

/// The header that asks for groups.
const HEADER: &str = "toolwarden-groups";

/// The groups of the path, else those of the header. What is there and empty asks for no tool at all.
pub(super) fn requested(path: Option<&str>, headers: &HeaderMap) -> Option<RequestedGroups> {
    if let Some(path) = path {
        return Some(listed([path]));
    }
    let mut values = headers.get_all(HEADER).iter().peekable();
    values.peek()?;
    // A value that is no text asks for a group that does not exist.
    let values = values.map(|value| value.to_str().unwrap_or("\u{fffd}"));
    Some(listed(values))
}

fn listed<'v>(values: impl IntoIterator<Item = &'v str>) -> RequestedGroups {
    let names = values.into_iter().flat_map(|value| value.split(','));
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    RequestedGroups::These(names.map(Box::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_before_headers() {
        let mut headers = HeaderMap::new();
        let names = |path: Option<&str>, headers: &HeaderMap| {
            let asked = requested(path, headers)?;
            Some(asked.names().map(str::to_owned).collect::<Vec<_>>())
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
