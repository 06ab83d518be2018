//! The environment of started programs.

use std::ffi::{OsStr, OsString};

/// Which environment variables a started program inherits from this process, beside its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvInheritance {
    /// Every variable: for a program that users start for themselves.
    All,
    /// The variables that programs need to run at all, plus the listed ones. The environment of a
    /// gateway holds the tokens of all its servers, and no server may read the tokens of another.
    Minimal(Vec<String>),
}

impl Default for EnvInheritance {
    fn default() -> Self {
        Self::Minimal(Vec::new())
    }
}

/// Variables for paths and text encoding. Official MCP clients pass the first six.
const DEFAULT_VARIABLES: [&str; 32] = [
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
    // The trusted certificate authorities: without them downloads fail behind a corporate proxy.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    // Where `npx` and `uvx` store downloads.
    "NPM_CONFIG_CACHE",
    "npm_config_cache",
    "UV_CACHE_DIR",
    "UV_TOOL_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "PNPM_HOME",
    "VOLTA_HOME",
];

/// Variables with addresses, which `npx` and `uvx` need to download a server. An address that
/// contains a password is not passed.
const ADDRESS_VARIABLES: [&str; 13] = [
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

impl EnvInheritance {
    /// The variables that a program gets; `None` when it inherits the whole environment.
    pub(crate) fn select(
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
            DEFAULT_VARIABLES.contains(&name)
                || name.starts_with("LC_")
                || ADDRESS_VARIABLES.contains(&name) && !has_password()
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

    fn chosen(inherit: &EnvInheritance) -> Vec<String> {
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
        let chosen = inherit.select(environment.into_iter()).unwrap();
        let names = chosen.into_iter().map(|(name, _)| name.into_string());
        names.map(Result::unwrap).collect()
    }

    #[test]
    fn secrets_are_passed_only_by_name() {
        assert_eq!(
            chosen(&EnvInheritance::default()),
            ["PATH", "LC_ALL", "HTTPS_PROXY"]
        );
        let named = EnvInheritance::Minimal(vec!["DB_PASSWORD".to_owned()]);
        assert_eq!(
            chosen(&named),
            ["PATH", "LC_ALL", "HTTPS_PROXY", "DB_PASSWORD"]
        );
        assert_eq!(EnvInheritance::All.select(std::iter::empty()), None);
    }
}
