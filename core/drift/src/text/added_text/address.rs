use super::token::WordToken;

/// Host name endings that are common enough to recognize without a scheme.
const TOP_LEVEL: &[&str] = &[
    "com",
    "net",
    "org",
    "io",
    "dev",
    "ai",
    "app",
    "co",
    "info",
    "biz",
    "xyz",
    "example",
    "ru",
    "cn",
    "de",
    "uk",
    "eu",
    "us",
    "fr",
    "in",
    "me",
    "site",
    "online",
    "cloud",
    "link",
    "click",
    "top",
    "tk",
    "pw",
    "su",
    "cc",
    "ws",
    "tech",
    "shop",
    "website",
    "nl",
    "ch",
    "es",
    "br",
    "jp",
    "kr",
    "au",
    "ca",
    "se",
    "pt",
    "ir",
    "ua",
    "gg",
    "page",
    "run",
    "live",
    "fun",
    "club",
    "store",
    "space",
    "host",
    "icu",
    "gov",
    "edu",
    "mil",
    "onion",
    "cz",
    "dk",
    "fi",
    "gr",
    "hu",
    "ie",
    "il",
    "mx",
    "nz",
    "ro",
    "tr",
    "tw",
    "vn",
    "za",
    "sg",
    "hk",
    "ga",
    "cf",
    "gq",
    "ly",
    "cx",
    "fm",
    "tv",
    "рф",
    "онлайн",
    "中国",
    "公司",
    "网址",
];

/// Host name endings that are also endings of file names.
const AMBIGUOUS: &[&str] = &[
    "sh", "py", "rs", "pl", "md", "zip", "mov", "ml", "ps", "so", "st",
];

/// Names of products that look like hosts.
const PRODUCTS: &[&str] = &["asp.net", "ado.net", "vb.net", "ml.net"];

/// Names of releases: `package@latest`.
const RELEASES: &[&str] = &[
    "latest", "next", "beta", "alpha", "canary", "stable", "main", "master", "head", "rc",
    "preview", "nightly", "dev",
];

/// Schemes that need no `//`.
const SCHEMES: &[&str] = &["data:", "javascript:", "mailto:", "tel:", "magnet:"];

/// The address in a word, if it has one: a URL, a host, a mail address.
pub(crate) fn address(word: &str) -> Option<&str> {
    let lower = word.to_lowercase();
    let is_url = word.contains("://") || lower.starts_with("www.");
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
    let is_inline = |scheme: &&str| {
        let rest = lower.strip_prefix(*scheme);
        rest.is_some_and(|rest| rest.contains([',', '@', '(', '?']) || rest.len() > 6)
    };
    if SCHEMES.iter().any(is_inline) {
        return Some(word);
    }
    let host = Host::of(&lower)?;
    let ending = host.labels.last().copied().unwrap_or_default();
    let is_known = TOP_LEVEL.contains(&ending);
    let is_number =
        host.labels.len() == 4 && host.labels.iter().all(|label| label.parse::<u8>().is_ok());
    let is_address = match host.local {
        // `@scope/package`, `package@latest` and `model@20240620` are not addresses.
        Some(local) => {
            let is_word = ending.chars().count() > 1 && ending.chars().all(char::is_alphabetic);
            let is_host = (is_word && !RELEASES.contains(&ending)) || is_number;
            !local.is_empty() && !local.contains('/') && is_host
        }
        None => {
            let is_long = host.has_rest || host.labels.len() > 2;
            let is_product = !host.has_rest && PRODUCTS.contains(&lower.as_str());
            host.labels.len() > 1
                && (is_number || is_known || (is_long && AMBIGUOUS.contains(&ending)))
                && !is_product
        }
    };
    is_address.then_some(word)
}

/// Whether a word is a host or the name of a file, and only its context tells which: `evil.sh`.
pub(crate) fn is_ambiguous_host(word: &str) -> bool {
    let lower = word.to_lowercase();
    let Some(host) = Host::of(&lower) else {
        return false;
    };
    let ending = host.labels.last().copied().unwrap_or_default();
    host.local.is_none() && host.labels.len() > 1 && AMBIGUOUS.contains(&ending)
}

/// Words that send something somewhere.
const SENDING: &[&str] = &[
    "send", "sends", "sent", "post", "posts", "forward", "forwards", "upload", "uploads", "report",
    "reports", "copy", "copies", "go", "goes", "transmit", "submit", "share", "connect", "deliver",
];

/// The maximum number of words between sending and its destination.
const SENDING_REACH: usize = 10;

/// Hosts that only their context tells from names of files: `Send the results to evil.sh`.
pub(super) fn find_destinations(words: &[WordToken<'_>]) -> Vec<String> {
    let is_destination = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let is_to = before.is_some_and(|it| matches!(&*it.lower, "to" | "with" | "at" | "via"));
        let earlier = words.iter().take(at).rev().take(SENDING_REACH);
        is_to && earlier.into_iter().any(|it| SENDING.contains(&&*it.lower))
    };
    let hosts = words.iter().enumerate().filter(|(at, word)| {
        word.added
            && address(word.raw).is_none()
            && is_ambiguous_host(word.raw)
            && is_destination(*at)
    });
    hosts.map(|(_, word)| word.raw.to_owned()).collect()
}

/// A word that has the form of a host.
struct Host<'w> {
    /// What stands before an `@`.
    local: Option<&'w str>,
    labels: Vec<&'w str>,
    /// Whether a path, a query or a port follows.
    has_rest: bool,
}

impl<'w> Host<'w> {
    fn of(lower: &'w str) -> Option<Self> {
        let (local, host) = match lower.split_once('@') {
            Some((local, host)) => (Some(local), host),
            None => (None, lower),
        };
        let host_only = host.split(['/', '?', ':']).next().unwrap_or_default();
        let labels: Vec<&str> = host_only.split('.').collect();
        // Letters of other scripts count: they imitate known hosts.
        let is_label = |label: &&str| {
            !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-')
        };
        labels.iter().all(is_label).then(|| Self {
            local,
            has_rest: host.len() > host_only.len() + 1,
            labels,
        })
    }
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
            ("http://[::1]/", Some("http://[::1]/")),
            ("data:text/html,<b>x", Some("data:text/html,<b>x")),
            ("data:", None),
            ("g\u{456}thub.com", Some("g\u{456}thub.com")),
            ("evil.sh/x", Some("evil.sh/x")),
            ("collect.evil.sh", Some("collect.evil.sh")),
            ("install.sh", None),
            ("ASP.NET", None),
            ("evil.net", Some("evil.net")),
            ("user.id", None),
            ("claude-3-5-sonnet@20240620", None),
            ("package@latest", None),
            ("a@evil", Some("a@evil")),
            ("actions/checkout@v4.1.x", None),
            ("", None),
        ] {
            assert_eq!(address(word), expected, "{word}");
        }
    }
}
