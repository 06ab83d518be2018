//! The environment of started programs.

use std::ffi::{OsStr, OsString};

/// What a started program gets of the environment of this process, beside its own variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inherit {
    /// Every variable: for a program that the user of this process starts for themself.
    All,
    /// What programs need to run at all, and these variables. The environment of a gateway holds the tokens of
    /// all its servers, and none of them may read those of another.
    Minimal(Vec<String>),
}

impl Default for Inherit {
    fn default() -> Self {
        Self::Minimal(Vec::new())
    }
}

/// Variables that say where things are and how texts are written. Official MCP clients pass the first six.
const PLAIN: [&str; 32] = [
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TZDIR",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    // Which certificate authorities are trusted: without them downloads fail behind a company's proxy.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    // Where `npx` and `uvx` keep what they download.
    "NPM_CONFIG_CACHE",
    "npm_config_cache",
    "UV_CACHE_DIR",
    "UV_TOOL_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "PNPM_HOME",
    "VOLTA_HOME",
];

/// Variables with addresses, which `npx` and `uvx` need to download a server. An address with a password in it
/// is not passed.
const ADDRESSES: [&str; 13] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "PIP_INDEX_URL",
];

impl Inherit {
    /// The variables of an environment that a program gets; none where it gets the environment as it is.
    pub(crate) fn chosen(
        &self,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> Option<Vec<(OsString, OsString)>> {
        let Self::Minimal(named) = self else {
            return None;
        };
        let is_passed = |name: &OsStr, value: &OsStr| {
            let Some(name) = name.to_str() else {
                return false;
            };
            let has_password = || value.to_str().is_none_or(|value| value.contains('@'));
            PLAIN.contains(&name)
                || name.starts_with("LC_")
                || ADDRESSES.contains(&name) && !has_password()
                || named.iter().any(|it| it == name)
        };
        Some(
            environment
                .filter(|(name, value)| is_passed(name, value))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(inherit: &Inherit) -> Vec<String> {
        let environment = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("HTTPS_PROXY", "http://proxy:3128"),
            ("https_proxy", "http://me:secret@proxy:3128"),
            ("GITHUB_TOKEN", "secret"),
            ("NPM_TOKEN", "secret"),
            ("DB_PASSWORD", "secret"),
        ];
        let environment = environment.map(|(name, value)| (name.into(), value.into()));
        let chosen = inherit.chosen(environment.into_iter()).unwrap();
        let names = chosen.into_iter().map(|(name, _)| name.into_string());
        names.map(Result::unwrap).collect()
    }

    #[test]
    fn secrets_are_passed_only_by_name() {
        assert_eq!(
            chosen(&Inherit::default()),
            ["PATH", "LC_ALL", "HTTPS_PROXY"]
        );
        let named = Inherit::Minimal(vec!["DB_PASSWORD".to_owned()]);
        assert_eq!(
            chosen(&named),
            ["PATH", "LC_ALL", "HTTPS_PROXY", "DB_PASSWORD"]
        );
        assert_eq!(Inherit::All.chosen(std::iter::empty()), None);
    }
}
