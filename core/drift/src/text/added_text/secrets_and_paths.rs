//! Secrets and file system paths.

use super::token::WordToken;

/// Directories at the root of common systems.
const ROOTS: [&str; 19] = [
    "bin", "boot", "dev", "etc", "home", "lib", "mnt", "opt", "private", "proc", "root", "run",
    "srv", "sys", "tmp", "users", "usr", "var", "windows",
];

/// Files that hold secrets, in any directory.
const FILES: [&str; 17] = [
    ".ssh",
    "id_rsa",
    "id_ed25519",
    ".env",
    ".aws",
    ".npmrc",
    ".pypirc",
    ".netrc",
    ".git-credentials",
    ".kube",
    ".docker/config.json",
    ".bash_history",
    "mcp.json",
    "claude_desktop_config.json",
    "wallet.dat",
    ".gnupg",
    "credentials.json",
];

/// Roots that are also common in the paths of HTTP interfaces.
const ROUTE_ROOTS: [&str; 8] = [
    "users", "home", "run", "lib", "dev", "private", "opt", "srv",
];

/// Parts of the names of variables that hold secrets.
const SECRET_VARIABLES: [&str; 11] = [
    "KEY",
    "KEYS",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "CREDENTIALS",
    "COOKIE",
];

/// How programs read variables of the environment.
const ENVIRONMENT: [&str; 3] = ["process.env", "os.environ", "os.getenv"];

/// Words that are secrets by themselves.
const SECRETS: [&str; 12] = [
    "password",
    "passwords",
    "passphrase",
    "passwd",
    "credential",
    "credentials",
    "secret",
    "secrets",
    "api_key",
    "apikey",
    "access_token",
    "private_key",
];

/// Words that turn the next word into a secret.
const PAIRS: [(&[&str], &[&str]); 3] = [
    (
        &[
            "api",
            "private",
            "access",
            "secret",
            "ssh",
            "encryption",
            "signing",
        ],
        &["key", "keys"],
    ),
    (
        &[
            "access",
            "auth",
            "authentication",
            "bearer",
            "session",
            "refresh",
            "api",
        ],
        &["token", "tokens", "cookie", "cookies"],
    ),
    (&["environment", "env"], &["variable", "variables", "vars"]),
];

/// The secrets and paths that are named by added words.
pub(super) fn find_secrets_and_paths(words: &[WordToken<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).filter(|_| !word.ends);
        let is_secret = is_secret_or_path(word.raw) || SECRETS.contains(&&*word.lower);
        if word.added && is_secret {
            found.push(word.raw.to_owned());
        }
        if let Some(next) = next
            && (word.added || next.added)
            && is_pair(&word.lower, &next.lower)
        {
            found.push(format!("{} {}", word.raw, next.raw));
        }
    }
    found
}

fn is_pair(first: &str, second: &str) -> bool {
    let mut pairs = PAIRS.iter();
    pairs.any(|(firsts, seconds)| firsts.contains(&first) && seconds.contains(&second))
}

/// Whether a single word is a path or a variable that holds a secret.
pub(crate) fn is_secret_or_path(word: &str) -> bool {
    is_path(word) || is_secret_variable(word)
}

/// `$OPENAI_API_KEY`, `${GITHUB_TOKEN}`, `%AWS_SECRET%`, `process.env.X`.
fn is_secret_variable(word: &str) -> bool {
    if ENVIRONMENT.iter().any(|call| word.starts_with(call)) {
        return true;
    }
    let is_marked = word.starts_with('$') || word.starts_with('%');
    let name = word.trim_matches(['$', '{', '}', '%', '"', '(', ')']);
    let upper = name.to_ascii_uppercase();
    let is_name = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
    // A lower-case name such as `page_token` is an argument, unless it is marked as a variable.
    is_name
        && name.contains('_')
        && (is_marked || upper == name)
        && upper
            .split(['_', ':'])
            .any(|part| SECRET_VARIABLES.contains(&part))
}

fn is_path(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let parts = || lower.split(['/', '\\']);
    let root = parts().nth(1).unwrap_or_default();
    // `/users/{id}` and `/home/:page` are routes.
    let is_route = ROUTE_ROOTS.contains(&root)
        && (word.contains(['{', ':', '<']) || (root == "users" && !word.starts_with("/Users")));
    let is_rooted =
        lower.starts_with('/') && ROOTS.contains(&root) && parts().count() > 2 && !is_route;
    let is_share = lower.starts_with("\\\\") && parts().count() > 3;
    let mut start = lower.chars();
    let drive = (start.next(), start.next(), start.next());
    let is_drive =
        matches!(drive, (Some(letter), Some(':'), Some('\\')) if letter.is_ascii_alphabetic());
    let is_secret = parts().any(|part| FILES.contains(&part));
    let is_home = lower.starts_with("~/") || lower.starts_with("$home");
    is_rooted || is_share || is_drive || is_home || is_secret || FILES.contains(&lower.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_paths_are_told_from_names_and_routes() {
        for (word, expected) in [
            ("$OPENAI_API_KEY", true),
            ("${GITHUB_TOKEN", true),
            ("${GITHUB_TOKEN}", true),
            ("AWS_SECRET_ACCESS_KEY", true),
            ("process.env.X", true),
            ("/etc/passwd", true),
            ("~/.ssh/id_rsa", true),
            ("/Users/eve/notes", true),
            ("/home/{user}/.ssh/id_rsa", true),
            ("\\\\evil\\share", true),
            ("page_token", false),
            ("PRIMARY_COLOR", false),
            ("/users/{id}", false),
            ("/users/me/messages", false),
            ("/run/:id", false),
            ("a/b", false),
        ] {
            assert_eq!(is_secret_or_path(word), expected, "{word}");
        }
    }
}
