/// Host name endings that are common enough to recognize without a scheme.
const TOP_LEVEL: [&str; 48] = [
    "com", "net", "org", "io", "dev", "ai", "app", "co", "info", "biz", "xyz", "example", "ru",
    "cn", "de", "uk", "eu", "us", "fr", "in", "me", "site", "online", "cloud", "link", "click",
    "top", "tk", "pw", "su", "cc", "ws", "tech", "shop", "website", "nl", "ch", "es", "br", "jp",
    "kr", "au", "ca", "se", "pt", "ir", "ua", "gg",
];

/// The address in a word, if it has one: a URL, a host, a mail address.
pub(crate) fn address(word: &str) -> Option<&str> {
    let is_url = word.contains("://") || word.to_ascii_lowercase().starts_with("www.");
    if is_url {
        // Text before it, such as `[here](`, is not part of it.
        let scheme = word.find("://").unwrap_or_default();
        let start = word
            .char_indices()
            .take_while(|(at, _)| *at < scheme)
            .filter(|(_, c)| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'))
            .map(|(at, c)| at + c.len_utf8())
            .last();
        let url = word.get(start.unwrap_or_default()..)?;
        return Some(url.trim_end_matches([')', ']', '"', '\'', '>', '`', '*', ',']));
    }
    let (local, host) = match word.split_once('@') {
        Some((local, host)) => (Some(local), host),
        None => (None, word),
    };
    let host_only = host.split(['/', '?', ':']).next().unwrap_or_default();
    let labels: Vec<&str> = host_only.split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let needed = if local.is_some() { 1 } else { 2 };
    if labels.len() < needed || !labels.iter().all(is_label) {
        return None;
    }
    let last = labels.last().map(|label| label.to_ascii_lowercase());
    let is_number = labels.len() == 4 && labels.iter().all(|label| label.parse::<u8>().is_ok());
    let is_host = last.is_some_and(|last| TOP_LEVEL.contains(&last.as_str()));
    let is_mail = local.is_some_and(|local| !local.is_empty());
    // `@scope/package` and `e.g.` are not addresses.
    let is_address = if local.is_some() {
        is_mail
    } else {
        is_number || is_host
    };
    is_address.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_names() {
        for (word, expected) in [
            ("https://a.example/x", Some("https://a.example/x")),
            ("[here](http://a.example)", Some("http://a.example")),
            ("www.a.example", Some("www.a.example")),
            ("eve@evil.example", Some("eve@evil.example")),
            ("evil.com/collect", Some("evil.com/collect")),
            ("root@localhost", Some("root@localhost")),
            ("evil.example.com", Some("evil.example.com")),
            ("collect.evil.tk:8080", Some("collect.evil.tk:8080")),
            ("index.html", None),
            ("node.js", None),
            ("os.path.join", None),
            ("v1.2.3", None),
            ("10.0.0.1", Some("10.0.0.1")),
            ("1.2", None),
            ("config.json", None),
            ("e.g", None),
            ("@scope/package", None),
            ("read.write", None),
            ("", None),
        ] {
            assert_eq!(address(word), expected, "{word}");
        }
    }
}
