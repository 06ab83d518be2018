//! The default name of a server: derived from how it is reached, never from what it says.

use toolwarden_mcp::Endpoint;
use toolwarden_model::Fingerprint;

/// Programs that start another program.
const RUNNERS: &[&str] = &[
    "npx", "npm", "pnpm", "yarn", "bunx", "bun", "deno", "node", "uvx", "uv", "pipx", "python",
    "python3", "docker", "podman", "env",
];
/// Programs whose argument is itself a command line.
const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "fish",
    "cmd",
    "powershell",
    "pwsh",
];
/// Options of runners that take no value.
const FLAGS: &[&str] = &[
    "-y",
    "--yes",
    "-q",
    "--quiet",
    "-m",
    "-i",
    "-u",
    "-t",
    "-it",
    "--rm",
    "--init",
    "-E",
    "-s",
    "-B",
    "-P",
    "-I",
    "-O",
    "--silent",
    "--offline",
    "--prefer-offline",
    "--isolated",
    "--no-install",
    "--bun",
    "-A",
    "--",
];
/// Script names that do not identify a server.
const GENERIC_SCRIPT_NAMES: &[&str] = &["index.", "main.", "server.", "__main__."];
const RUNNER_WORDS: &[&str] = &["exec", "dlx", "run", "tool", "x", "start", "/c"];

/// The name of a server: the package or program of its command without a version, or the host and path of
/// its address.
#[must_use]
pub fn server_name(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Command(command) => {
            let words = std::iter::once(&command.program).chain(&command.args);
            name_from_command(&words.map(String::as_str).collect::<Vec<_>>())
        }
        Endpoint::Url(url) => name_from_url(&url.url),
    }
}

fn name_from_command(words: &[&str]) -> String {
    let program = words.first().copied().unwrap_or_default();
    let word = package_word(words)
        .filter(|word| is_plain(word))
        .unwrap_or(program);
    let base = base_name(word);
    // An npm scope starts like a path, but is part of the name; many scripts share a few names.
    let name = if word.starts_with('@') {
        word
    } else if GENERIC_SCRIPT_NAMES.iter().any(|it| base.starts_with(it)) {
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

/// The first word that is neither a runner nor one of its options. The word after an option may be its
/// value, and a secret.
fn package_word<'w>(words: &[&'w str]) -> Option<&'w str> {
    let in_container = words
        .first()
        .is_some_and(|it| ["docker", "podman"].contains(&base_name(it)));
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let program = base_name(word);
        if SHELLS.contains(&program) {
            return None;
        }
        if word.starts_with('-') {
            let runs_code = ["-c", "--eval"].contains(&word) || (word == "-e" && !in_container);
            if runs_code {
                return None;
            }
            if !FLAGS.contains(&word) && !word.contains('=') {
                words.next();
            }
        } else if !is_assignment(word)
            && !RUNNERS.contains(&program)
            && !RUNNER_WORDS.contains(&program)
        {
            return Some(word);
        }
    }
    None
}

/// Whether a word looks like the name of a package or program.
fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@/\\_.:=<>~+-".contains(c);
    word.len() <= 200 && word.chars().all(plain) && !word.contains("://")
}

/// Whether a word sets a variable for the program after it.
fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        name.bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    let pair = word.split_once('=');
    pair.is_some_and(|(name, value)| is_name(name) && !value.starts_with('='))
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

fn name_from_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    // A user name before the host may come with a password.
    let host = host.rsplit('@').next().unwrap_or(host);
    let mut name = host.to_owned();
    for segment in path
        .trim_end_matches('/')
        .split('/')
        .filter(|it| !it.is_empty())
    {
        name.push('/');
        // A long segment with digits may be a key.
        if segment.len() >= 16 && segment.bytes().any(|it| it.is_ascii_digit()) {
            let digest = Fingerprint::tagged("toolwarden/segment/v1", [segment]).to_string();
            name.extend(digest.chars().take(8));
        } else {
            name.push_str(segment);
        }
    }
    name
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
            ("npx -y --token s3cret some-server", "some-server"),
            ("bash -c 'exec server --token s3cret'", "bash"),
            ("python3 -c 'print(1)'", "python3"),
            ("node --require ./x.js srv.js", "srv.js"),
            ("docker run -i --rm -e TOKEN mcp/github", "github"),
            ("uvx --from ./tools weather", "weather"),
            (
                "docker run --privileged mcp/postgres postgresql://u:s3cret@h",
                "docker",
            ),
            ("env token=s3cret some-server", "some-server"),
        ] {
            let Ok(endpoint) = Endpoint::command_line(line) else {
                panic!("{line}");
            };
            assert_eq!(server_name(&endpoint), expected, "{line}");
        }
        assert_eq!(
            name_from_url("https://ada:s3cret@tools.example:8443/mcp/?key=1"),
            "tools.example:8443/mcp"
        );
        assert_eq!(name_from_url("http://localhost:8000/"), "localhost:8000");
        let keyed = name_from_url("https://mcp.example/v1/sk-ant-api03-0123456789/mcp");
        assert!(
            keyed.starts_with("mcp.example/v1/") && !keyed.contains("sk-ant"),
            "{keyed}"
        );
    }
}
