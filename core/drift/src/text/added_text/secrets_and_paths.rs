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
        if word.added && (is_path(word.raw) || SECRETS.contains(&&*word.lower)) {
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

fn is_path(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let parts = || lower.split(['/', '\\']);
    let is_rooted = lower.starts_with('/')
        && parts().nth(1).is_some_and(|root| ROOTS.contains(&root))
        && parts().count() > 2;
    let mut start = lower.chars();
    let drive = (start.next(), start.next(), start.next());
    let is_drive =
        matches!(drive, (Some(letter), Some(':'), Some('\\')) if letter.is_ascii_alphabetic());
    let is_secret = parts().any(|part| FILES.contains(&part));
    let is_home = lower.starts_with("~/") || lower.starts_with("$home");
    is_rooted || is_drive || is_home || is_secret || FILES.contains(&lower.as_str())
}
