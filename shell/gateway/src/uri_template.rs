//! Matches a URI against a URI template.

/// The total length of a template's literal parts: how specific it is.
pub(crate) fn literal_length(template: &str) -> usize {
    let mut rest = template;
    let mut length = 0;
    while let Some((literal, after)) = rest.split_once('{') {
        length += literal.len();
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    length + rest.len()
}

/// Whether a URI may come from a URI template (RFC 6570): it has the literal parts in order, and simple
/// expressions do not span a `/`. The server judges the values of the expressions.
#[must_use]
pub fn matches_template(template: &str, uri: &str) -> bool {
    let Some((start, mut rest)) = template.split_once('{') else {
        return template == uri;
    };
    let Some(mut uri) = uri.strip_prefix(start) else {
        return false;
    };
    loop {
        let Some((expression, after)) = rest.split_once('}') else {
            return false;
        };
        let last = after.split_once('{');
        let (literal, further) = last.map_or((after, None), |(it, rest)| (it, Some(rest)));
        let found = match further {
            // The last literal must end the URI.
            None => uri.strip_suffix(literal).map(|value| (value, "")),
            Some(_) => uri.split_once(literal),
        };
        let Some((value, left)) = found else {
            return false;
        };
        // `{+x}` and `{#x}` take reserved characters, `{/x}` begins with a slash.
        if value.contains('/') && !expression.starts_with(['+', '#', '/', '?', '&']) {
            return false;
        }
        match further {
            None => return true,
            Some(further) => (rest, uri) = (further, left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches_template;

    #[test]
    fn addresses_fit_templates() {
        for (template, uri, fit) in [
            ("demo://r/{id}", "demo://r/1", true),
            ("demo://r/{id}", "demo://r/1/2", false),
            ("demo://r/{+path}", "demo://r/1/2", true),
            ("demo://r/{id}/text", "demo://r/1/text", true),
            ("demo://r/{id}/text", "demo://r/1/blob", false),
            ("demo://{a}/{b}", "demo://x/y", true),
            ("demo://fixed", "demo://fixed", true),
            ("demo://{a", "demo://x", false),
        ] {
            assert_eq!(matches_template(template, uri), fit, "{template} {uri}");
        }
    }
}
