//! Names and addresses in rules, with `*` for any characters.

use std::borrow::Cow;

use super::FeatureKind;

/// The name in a rule: `*` stands for any number of characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NamePattern {
    kind: FeatureKind,
    /// Normalized if the kind is named by addresses.
    text: Box<str>,
}

/// How often percent-encoding is decoded: a server may decode an address that its framework has already
/// decoded.
const MAX_DECODING: usize = 3;

impl NamePattern {
    pub(crate) fn new(kind: FeatureKind, text: &str) -> Self {
        Self {
            kind,
            text: normalize_name(kind, text).into(),
        }
    }

    pub(crate) const fn kind(&self) -> FeatureKind {
        self.kind
    }

    /// Whether it stands for a single name.
    pub(crate) fn is_exact(&self) -> bool {
        !self.text.contains('*')
    }

    /// The number of literal bytes.
    pub(crate) fn literal_length(&self) -> usize {
        self.text.bytes().filter(|byte| *byte != b'*').count()
    }

    /// Whether it matches a name, which must be [`normalize_name`].
    pub(crate) fn matches(&self, name: &str) -> bool {
        if *name == *self.text {
            return true;
        }
        let mut parts = self.text.split('*');
        let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
            return false;
        };
        let Some(last) = parts.next_back() else {
            // A pattern without `*` matches only itself.
            return false;
        };
        let Some(mut rest) = rest.strip_suffix(last) else {
            return false;
        };
        // Matching each part at its first place leaves the most room for the following parts.
        for part in parts {
            match rest.split_once(part) {
                Some((_, behind)) => rest = behind,
                None => return false,
            }
        }
        true
    }
}

/// An address, normalized for comparison with rules.
#[must_use]
pub fn normalize_address(address: &str) -> Cow<'_, str> {
    normalize_name(FeatureKind::Resource, address)
}

/// A name, normalized for comparison. Addresses that servers may treat as equal have one normalized form:
/// the case of scheme and host, percent-encoding, empty segments and dot segments do not matter. So no
/// other spelling evades a rule.
pub(crate) fn normalize_name(kind: FeatureKind, name: &str) -> Cow<'_, str> {
    if !kind.has_addresses() {
        return Cow::Borrowed(name);
    }
    // Query and fragment are split from the path before anything is decoded, as servers do. Clients do not
    // send a fragment to the server, so it is ignored.
    let whole = name.split('#').next().unwrap_or_default();
    let (place, query) = match whole.find('?') {
        Some(at) => whole.split_at(at),
        None => (whole, ""),
    };
    let (place, query) = (decode_percent(place), decode_percent(query));
    let place = local_file(place);
    let (start, path) = split_authority(&place);
    let has_upper = start.bytes().any(|byte| byte.is_ascii_uppercase());
    if !has_upper && !needs_cleaning(path) {
        return match place {
            Cow::Borrowed(place) if query.is_empty() => Cow::Borrowed(place),
            place => Cow::Owned(format!("{place}{query}")),
        };
    }
    Cow::Owned(format!(
        "{}{}{query}",
        start.to_ascii_lowercase(),
        clean_path(path)
    ))
}

/// Whether parsers may disagree about an address: about characters that some remove, about an encoded `?`
/// or `#`, and about the target of `..`, also after a `?` or `#` that some parsers read as part of the
/// path.
#[must_use]
pub fn is_ambiguous_address(address: &str) -> bool {
    let whole = address.split('#').next().unwrap_or_default();
    let place = decode_percent(whole.split('?').next().unwrap_or_default());
    if address.trim() != address || address.contains(char::is_control) || place.contains(['?', '#'])
    {
        return true;
    }
    let leads_out = |path: &str| path.split('/').any(|segment| segment == "..");
    let behind = address.find(['?', '#']).and_then(|at| address.get(at..));
    let behind = decode_percent(behind.unwrap_or_default()).replace('\\', "/");
    let behind = behind.trim_start_matches(['?', '#']);
    if behind.split(['?', '#']).any(leads_out) {
        return true;
    }
    let (_, path) = split_authority(&place);
    let path = path.replace('\\', "/");
    let has_empty = path.trim_start_matches('/').contains("//") || path.starts_with("//");
    has_empty && leads_out(&path)
}

/// The address of a file in the form `file:///…`, regardless of how its host is omitted.
fn local_file(place: Cow<'_, str>) -> Cow<'_, str> {
    let scheme = "file:";
    let is_file = place
        .get(..scheme.len())
        .is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    let Some(rest) = place.get(scheme.len()..).filter(|_| is_file) else {
        return place;
    };
    let rest = rest.replace('\\', "/");
    let path = match rest.strip_prefix("//") {
        Some(after) => {
            let (host, path) = after.split_once('/').unwrap_or((after, ""));
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return place;
            }
            path
        }
        None => rest.trim_start_matches('/'),
    };
    let canonical = format!("file:///{path}");
    if canonical == *place {
        return place;
    }
    Cow::Owned(canonical)
}

fn decode_percent(text: &str) -> Cow<'_, str> {
    let mut decoded = Cow::Borrowed(text);
    for _round in 0..MAX_DECODING {
        match decode_percent_once(&decoded) {
            Some(next) => decoded = Cow::Owned(next),
            None => break,
        }
    }
    decoded
}

/// The scheme with the authority, and the rest.
fn split_authority(address: &str) -> (&str, &str) {
    // A pattern may have a wildcard as its scheme.
    let is_scheme = |text: &str| {
        text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '*')
            && text
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"+-.*".contains(&it))
    };
    let Some((scheme, rest)) = address.split_once(':').filter(|(it, _)| is_scheme(it)) else {
        return ("", address);
    };
    let Some(behind) = rest.strip_prefix("//") else {
        return address.split_at(scheme.len() + 1);
    };
    let host = behind.find(['/', '?', '#', '\\']).unwrap_or(behind.len());
    address.split_at(scheme.len() + "://".len() + host)
}

/// Whether a path has empty, `.` or `..` segments.
fn needs_cleaning(path: &str) -> bool {
    path.contains('\\')
        || path
            .split('/')
            .enumerate()
            .any(|(at, it)| it == "." || it == ".." || (it.is_empty() && at > 0))
}

/// A path without empty and dot segments; a folder keeps its trailing slash.
fn clean_path(path: &str) -> String {
    let path = path.replace('\\', "/");
    let mut kept: Vec<&str> = Vec::new();
    let mut is_folder = false;
    for segment in path.split('/') {
        is_folder = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    let end = if is_folder && !kept.is_empty() {
        "/"
    } else {
        ""
    };
    format!("{root}{}{end}", kept.join("/"))
}

/// The text with percent-encoded bytes decoded once; `None` if nothing is encoded. Bytes that are not UTF-8
/// stay encoded.
fn decode_percent_once(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    let mut is_changed = false;
    while let Some((first, behind)) = rest.split_first() {
        let encoded = behind.first_chunk::<2>().filter(|_| *first == b'%');
        let encoded = encoded.and_then(|[high, low]| Some((hex(*high)? << 4) | hex(*low)?));
        match encoded {
            Some(byte) => {
                bytes.push(byte);
                is_changed = true;
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    if !is_changed {
        return None;
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02x}"));
        }
    }
    Some(text)
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        let kind = FeatureKind::Resource;
        NamePattern::new(kind, pattern).matches(&normalize_name(kind, name))
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name) in [
            ("a", "a"),
            ("*", ""),
            ("*", "file:///x"),
            ("file:///*", "file:///"),
            ("file:///*", "file:///a/b"),
            ("file:///*.md", "file:///a/b.md"),
            ("*://a/*", "note://a/b"),
            ("http*://a/*", "https://a/b"),
            ("*/secret/*", "file:///x/../secret/b"),
            ("a*b*c", "abbc"),
            ("a**c", "abc"),
            ("a*b", "a*b"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("a", "ab"),
            ("a", ""),
            ("a*a", "a"),
            ("file:///*.md", "file:///a.mdx"),
            ("a*b*c", "acb"),
            ("note://a/*", "note://ab/c"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn other_spellings_of_an_address_are_the_same_address() {
        for name in [
            "file:///secret/key",
            "FILE:///secret/key",
            "file:///%73ecret/key",
            "file:///%2573ecret/key",
            "file:///public/../secret/key",
            "file:///public/%2e%2e/secret/key",
            "file:///public/..%2fsecret/key",
            "file:///public//../../secret/key",
            "file:///public\\..\\secret\\key",
            "file:////secret/./key",
            "file:///../../secret/key",
            "file:///secret/key#part",
            "file:/secret/key",
            "file:secret/key",
            "file://localhost/secret/key",
            "file:///public%3f/../secret/key",
            "file:///public%23/../secret/key",
        ] {
            assert_eq!(
                normalize_name(FeatureKind::Resource, name),
                "file:///secret/key",
                "{name}"
            );
            assert!(matches("file:///secret/*", name), "{name}");
            assert!(matches("File:///secret/%6bey", name), "{name}");
            assert!(!matches("file:///public/*", name), "{name}");
        }
        assert!(matches("https://Host/A", "https://hOST/A"));
        assert!(!matches("https://host/A", "https://host/a"));
        // The query is not a path, and bytes that are not text stay encoded.
        for same in ["a://b?c=../d", "x:%ff/y", "orders://{order_id}", "a/b/", ""] {
            assert_eq!(normalize_name(FeatureKind::Resource, same), same);
        }
        for ambiguous in [
            "file:///secret//../key",
            "file:///public%3f/../key",
            "file:///public/a#/../../secret",
            "file:///public/?/../../secret",
            "file:///public/?x=1#%2e%2e/secret",
            "file:///public/#..\\..\\secret",
            "file:///sec\tret",
            " file:///secret",
        ] {
            assert!(is_ambiguous_address(ambiguous), "{ambiguous}");
        }
        for plain in [
            "file:///a//b",
            "file:///a/../b",
            "a://b?c=../d",
            "file:///my file",
        ] {
            assert!(!is_ambiguous_address(plain), "{plain}");
        }
        let odd = normalize_name(FeatureKind::Resource, "file:///%73ecret/key?%ff");
        assert_eq!(odd, "file:///secret/key?%ff");
        let prompt = normalize_name(FeatureKind::Prompt, "A/../b");
        assert_eq!(prompt, "A/../b", "names are not addresses");
    }
}
