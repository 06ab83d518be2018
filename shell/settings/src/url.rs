/// An address without user, password, query and fragment, which may contain secrets.
#[must_use]
pub fn bare_url(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, url),
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, Some(path)),
        None => (rest, None),
    };
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let scheme = scheme.map_or_else(String::new, |scheme| format!("{scheme}://"));
    let path = path.map_or_else(String::new, |path| format!("/{path}"));
    format!("{scheme}{host}{path}")
}

/// The scheme and host of an address whose path is a secret, as in chat webhooks.
#[must_use]
pub fn origin_of(url: &str) -> String {
    let bare = bare_url(url);
    match bare.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split('/').next().unwrap_or_default();
            format!("{scheme}://{host}/***")
        }
        None => "***".to_owned(),
    }
}

/// Whether an attacker on the network cannot change data fetched from an address: it is https, or on
/// loopback.
#[must_use]
pub fn is_loopback_or_https(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    if scheme.eq_ignore_ascii_case("https") {
        return true;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(host, _)| host),
    };
    let loopback = host
        .parse::<std::net::IpAddr>()
        .is_ok_and(|it| it.is_loopback());
    loopback || host.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_trusted_without_tls() {
        for (url, expected) in [
            ("https://id.example/keys", true),
            ("HTTPS://id.example", true),
            ("http://127.0.0.1:8080/keys", true),
            ("http://localhost/keys", true),
            ("http://[::1]:1/keys", true),
            ("http://id.example/keys", false),
            ("http://127.0.0.1@id.example/keys", false),
            ("http://id.example#@127.0.0.1", false),
            ("http://id.example\\@127.0.0.1", false),
            ("http://localhost.id.example", false),
            ("http://10.0.0.1/keys", false),
            ("keys", false),
        ] {
            assert_eq!(is_loopback_or_https(url), expected, "{url}");
        }
    }

    #[test]
    fn nothing_secret_is_left_of_an_address() {
        let cases = [
            (
                "https://u:p@host:8/a/b?key=s#f",
                "https://host:8/a/b",
                "https://host:8/***",
            ),
            ("http://host", "http://host", "http://host/***"),
            ("http://host?token=s", "http://host", "http://host/***"),
            (
                "https://hooks.slack.com/services/T0/B0/secret",
                "https://hooks.slack.com/services/T0/B0/secret",
                "https://hooks.slack.com/***",
            ),
            ("a@b/c?d", "b/c", "***"),
            // The host ends at the first slash, so an @ after it is part of the path.
            (
                "https://host/@scope",
                "https://host/@scope",
                "https://host/***",
            ),
            ("", "", "***"),
        ];
        for (url, bare, origin) in cases {
            assert_eq!(
                (bare_url(url).as_str(), origin_of(url).as_str()),
                (bare, origin),
                "{url}"
            );
        }
    }
}
