//! The address of a server: a program to start or a URL to post to.

use std::fmt;
use std::path::PathBuf;

use reqwest::header::{HeaderName, HeaderValue};

use crate::environment::EnvInheritance;

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A program that the client starts and talks to over its standard streams.
    Command(Command),
    /// An address of the streamable HTTP transport, or of the older HTTP+SSE one.
    Url(ServerUrl),
}

/// A program that speaks MCP on its standard streams.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// Name or path of the program; a bare name is looked up in `PATH`.
    pub program: String,
    /// Arguments, passed without a shell.
    pub args: Vec<String>,
    /// Variables set for this program; they replace inherited ones of the same name.
    pub env: Vec<(String, String)>,
    /// Which variables of this process it inherits.
    pub inherit: EnvInheritance,
    /// Working directory; the client's own when absent.
    pub directory: Option<PathBuf>,
    /// Whether its error output also goes to the client's error output, as if it had been started
    /// by hand.
    pub shows_errors: bool,
}

/// An HTTP address with the headers every request to it carries.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    /// The absolute `http` or `https` address.
    pub url: String,
    /// Extra headers, usually `Authorization`.
    pub headers: Vec<(String, String)>,
}

/// Why a text does not name an endpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEndpoint {
    /// The command line is empty.
    #[error("the command line is empty")]
    EmptyCommandLine,
    /// A quote is not closed or the line ends in a backslash.
    #[error("the command line `{line}` has an unclosed quote or a trailing backslash")]
    UnbalancedQuote {
        /// The line as given.
        line: String,
    },
    /// The address is not an absolute URL.
    #[error("`{url}` is not an absolute URL")]
    NotAUrl {
        /// The text as given.
        url: String,
    },
    /// The scheme is neither `http` nor `https`.
    #[error("`{url}` has the scheme `{scheme}`; only http and https carry MCP")]
    Scheme {
        /// The text as given.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// A header's name is not a token or its value has forbidden characters.
    ///
    /// The value is left out because it is usually a secret.
    #[error("the header `{name}` has an invalid name or value")]
    Header {
        /// The header's name.
        name: String,
    },
}

impl Endpoint {
    /// Splits a command line into words as a POSIX shell would, without running one.
    ///
    /// Quotes and backslashes work; variables, globs, pipes and redirections stay plain text.
    pub fn command_line(line: &str) -> Result<Self, InvalidEndpoint> {
        let words = shlex::split(line).ok_or_else(|| InvalidEndpoint::UnbalancedQuote {
            line: line.to_owned(),
        })?;
        let mut words = words.into_iter();
        let program = words.next().ok_or(InvalidEndpoint::EmptyCommandLine)?;
        Ok(Self::Command(Command {
            program,
            args: words.collect(),
            env: Vec::new(),
            inherit: EnvInheritance::default(),
            directory: None,
            shows_errors: false,
        }))
    }

    /// The endpoint; a program inherits every variable of this process. For programs that users
    /// start for themselves.
    #[must_use]
    pub fn with_whole_environment(self) -> Self {
        match self {
            Self::Command(command) => Self::Command(Command {
                inherit: EnvInheritance::All,
                ..command
            }),
            Self::Url(url) => Self::Url(url),
        }
    }

    /// An HTTP address without extra headers.
    pub fn url(url: &str) -> Result<Self, InvalidEndpoint> {
        let endpoint = ServerUrl {
            url: url.to_owned(),
            headers: Vec::new(),
        };
        endpoint.parse()?;
        Ok(Self::Url(endpoint))
    }
}

impl Endpoint {
    /// Checks that a client could use the endpoint.
    ///
    /// # Errors
    /// Names what is wrong with the address or a header.
    pub fn validate(&self) -> Result<(), InvalidEndpoint> {
        if let Self::Url(url) = self {
            url.parse()?;
            url.parse_headers()?;
        }
        Ok(())
    }
}

impl ServerUrl {
    /// The address as the HTTP client needs it.
    pub(crate) fn parse(&self) -> Result<reqwest::Url, InvalidEndpoint> {
        let url = reqwest::Url::parse(&self.url).map_err(|_invalid| InvalidEndpoint::NotAUrl {
            url: self.url.clone(),
        })?;
        match url.scheme() {
            "http" | "https" => Ok(url),
            scheme => Err(InvalidEndpoint::Scheme {
                url: self.url.clone(),
                scheme: scheme.to_owned(),
            }),
        }
    }

    /// The extra headers, validated, with values marked as sensitive.
    pub(crate) fn parse_headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, InvalidEndpoint> {
        self.headers
            .iter()
            .map(|(name, value)| {
                let invalid = || InvalidEndpoint::Header { name: name.clone() };
                let parsed = HeaderName::try_from(name.as_str()).map_err(|_bad| invalid())?;
                let mut value = HeaderValue::try_from(value.as_str()).map_err(|_bad| invalid())?;
                value.set_sensitive(true);
                Ok((parsed, value))
            })
            .collect()
    }
}

// Environment and header values are usually secrets, so debug output shows their names only.

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names(&self.env))
            .field("inherit", &self.inherit)
            .field("directory", &self.directory)
            .finish()
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Url")
            .field("url", &self.url)
            .field("headers", &names(&self.headers))
            .finish()
    }
}

fn names(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(name, _value)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_split_like_a_shell() {
        let Ok(Endpoint::Command(command)) = Endpoint::command_line("npx -y @x/y 'a b' c\\ d $E")
        else {
            panic!("not a command");
        };
        assert_eq!(command.program, "npx");
        assert_eq!(command.args, ["-y", "@x/y", "a b", "c d", "$E"]);
    }

    #[test]
    fn bad_endpoints_say_why() {
        let text = |result: Result<Endpoint, InvalidEndpoint>| result.unwrap_err().to_string();
        assert_eq!(
            text(Endpoint::command_line("  ")),
            "the command line is empty"
        );
        assert_eq!(
            text(Endpoint::command_line("a 'b")),
            "the command line `a 'b` has an unclosed quote or a trailing backslash"
        );
        assert_eq!(text(Endpoint::url("/mcp")), "`/mcp` is not an absolute URL");
        assert_eq!(
            text(Endpoint::url("ws://h/mcp")),
            "`ws://h/mcp` has the scheme `ws`; only http and https carry MCP"
        );
    }

    #[test]
    fn debug_hides_secrets() {
        let url = ServerUrl {
            url: "https://h/mcp".to_owned(),
            headers: vec![("Authorization".to_owned(), "Bearer s3cret".to_owned())],
        };
        assert_eq!(
            format!("{url:?}"),
            r#"Url { url: "https://h/mcp", headers: ["Authorization"] }"#
        );
    }
}
