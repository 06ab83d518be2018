//! What a server is called when nobody names it: by how it is reached, never by what it says.

use toolwarden_mcp::Endpoint;

/// Programs that start another one, and the words they put before it.
const RUNNERS: &[&str] = &[
    "npx", "npm", "pnpm", "yarn", "bunx", "bun", "deno", "node", "uvx", "uv", "pipx", "python",
    "python3", "docker", "podman", "env", "sh", "bash", "cmd",
];
const RUNNER_WORDS: &[&str] = &["exec", "dlx", "run", "tool", "x", "start", "/c"];

/// The name of a server: the package or program of its command without a version, or the host and
/// path of its address.
#[must_use]
pub fn server_name(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Command(command) => {
            let words = std::iter::once(&command.program).chain(&command.args);
            of_command(&words.map(String::as_str).collect::<Vec<_>>())
        }
        Endpoint::Url(url) => of_url(&url.url),
    }
}

fn of_command(words: &[&str]) -> String {
    let is_runner = |word: &str| RUNNERS.contains(&word) || RUNNER_WORDS.contains(&word);
    let mut named = words.iter().copied().filter(|word| {
        let program = base_name(word);
        !word.starts_with('-') && !is_assignment(word) && !is_runner(program)
    });
    let word = named.next().or_else(|| words.first().copied());
    let word = word.unwrap_or_default();
    let base = base_name(word);
    // A scope of npm starts like a path, but is part of the name; scripts share a few names.
    let name = if word.starts_with('@') {
        word
    } else if ["index.", "main.", "server.", "__main__."]
        .iter()
        .any(|it| base.starts_with(it))
    {
        let folder = word.strip_suffix(base).unwrap_or_default();
        let folder = base_name(folder.trim_end_matches(['/', '\\']));
        let length = if folder.is_empty() {
            0
        } else {
            folder.len() + 1
        };
        let start = word.len() - base.len() - length;
        word.get(start..).unwrap_or(base)
    } else {
        base
    };
    without_version(name).to_owned()
}

/// Whether a word sets a variable for the program after it.
fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        name.bytes()
            .all(|it| it.is_ascii_uppercase() || it == b'_' || it.is_ascii_digit())
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

fn base_name(word: &str) -> &str {
    word.rsplit(['/', '\\']).next().unwrap_or(word)
}

fn without_version(name: &str) -> &str {
    let scope = usize::from(name.starts_with('@'));
    let rest = name.get(scope..).unwrap_or_default();
    let end = ["@", "==", ">=", "~="]
        .iter()
        .filter_map(|mark| rest.find(mark))
        .min();
    end.and_then(|end| name.get(..scope + end)).unwrap_or(name)
}

fn of_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    // A name before the host may come with a password.
    let host = host.rsplit('@').next().unwrap_or(host);
    match path.trim_end_matches('/') {
        "" => host.to_owned(),
        path => format!("{host}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_runners_and_secrets_are_left_out() {
        for (line, expected) in [
            (
                "npx -y @playwright/mcp@0.0.40 --headless",
                "@playwright/mcp",
            ),
            ("npx -y @playwright/mcp@latest", "@playwright/mcp"),
            (
                "uvx mcp-server-time==2025.7.1 --local-timezone UTC",
                "mcp-server-time",
            ),
            ("/usr/local/bin/github-mcp stdio", "github-mcp"),
            ("node /srv/tools/index.js", "tools/index.js"),
            ("node index.js", "index.js"),
            ("python3 -m weather_server", "weather_server"),
            ("env TOKEN=s3cret npx some-server", "some-server"),
            ("npx", "npx"),
        ] {
            let Ok(endpoint) = Endpoint::command_line(line) else {
                panic!("{line}");
            };
            assert_eq!(server_name(&endpoint), expected, "{line}");
        }
        assert_eq!(
            of_url("https://ada:s3cret@tools.example:8443/mcp/?key=1"),
            "tools.example:8443/mcp"
        );
        assert_eq!(of_url("http://localhost:8000/"), "localhost:8000");
    }
}
