//! Whom a suite is put to. What is known of providers is data, and any other can be described.

mod fixture;
mod headers;
mod preset;
pub(crate) mod read;

use std::collections::BTreeMap;

use reqwest::Url;
use thiserror::Error;
use toolwarden_model::closest;
use toolwarden_model::json::Object;
use toolwarden_model::reply::Wire;

use crate::secret::Key;

pub use fixture::{FIXTURES, fixture};
pub use headers::{Headers, MissingVariable};
pub use preset::presets;

/// An endpoint, a model, and how the two are asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// What it is called in files and options.
    pub name: String,
    /// The address that the paths of the wire are appended to.
    pub base_url: String,
    /// The model.
    pub model_id: String,
    /// The environment variables that may hold the key; the first that is set counts. None at all
    /// if no key is needed.
    pub key_env: Vec<String>,
    /// How the endpoint speaks.
    pub wire: Wire,
    /// What is added to every body.
    pub extra_body: Object,
    /// What is added to every request; `${NAME}` stands for an environment variable.
    pub headers: BTreeMap<String, String>,
    /// The day somebody last compared a preset with what the vendor says.
    pub verified_on: Option<String>,
    /// What is worth knowing about it.
    pub notes: Vec<String>,
}

/// Why there is no provider to ask.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidProvider {
    /// The name is not known, and it was not described.
    #[error(transparent)]
    Unknown(#[from] UnknownProvider),
    /// The address is none.
    #[error(transparent)]
    BaseUrl(#[from] InvalidBaseUrl),
}

/// A provider nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unknown provider '{name}' and no base_url/model_id override supplied.{suggestion} \
     Known providers: {known}."
)]
pub struct UnknownProvider {
    name: String,
    suggestion: String,
    known: String,
}

/// An address that cannot be asked. It is not repeated, for it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected a base_url such as https://api.example.com/v1, {why}")]
pub struct InvalidBaseUrl {
    why: &'static str,
}

/// No variable that may hold the key of a provider is set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "missing API key: set ${variable} for provider '{provider}', \
     or run with --from-fixtures to replay an offline sample."
)]
pub struct MissingKey {
    /// The provider.
    pub provider: String,
    /// The variable to set.
    pub variable: String,
}

impl Provider {
    /// The preset of a name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(name: &str) -> Result<Self, UnknownProvider> {
        let found = presets().iter().find(|it| it.name == name);
        found.cloned().ok_or_else(|| {
            let names = || presets().iter().map(|it| it.name.as_str());
            let suggestion = closest(name, names());
            let suggestion = suggestion.strip_prefix(", did");
            UnknownProvider {
                name: name.to_owned(),
                suggestion: suggestion.map_or(String::new(), |it| format!(" Did{it}")),
                known: names().collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// The provider that options describe: a preset with what they say differently, or any other by
    /// its address and its model.
    ///
    /// # Errors
    /// The name is not known and one of the two is missing, or the address is none.
    pub fn resolve(
        name: &str,
        model: Option<&str>,
        base_url: Option<&str>,
    ) -> Result<Self, InvalidProvider> {
        if let Some(base_url) = base_url {
            check_base_url(base_url)?;
        }
        match (Self::find(name), base_url, model) {
            (Ok(preset), _, _) => Ok(preset.with(model, base_url)),
            (Err(_), Some(base_url), Some(model)) => Ok(Self::custom(name, base_url, model)),
            (Err(unknown), _, _) => Err(unknown.into()),
        }
    }

    /// This provider with another model or address.
    #[must_use]
    pub fn with(mut self, model: Option<&str>, base_url: Option<&str>) -> Self {
        if let Some(model) = model {
            model.clone_into(&mut self.model_id);
        }
        if let Some(base_url) = base_url {
            base_url.clone_into(&mut self.base_url);
        }
        self
    }

    /// A provider by its address and its model, with a wire like OpenAI's. Its key is in the variable
    /// `NAME_API_KEY`.
    #[must_use]
    pub fn custom(name: &str, base_url: &str, model_id: &str) -> Self {
        Self {
            name: name.to_owned(),
            base_url: base_url.to_owned(),
            model_id: model_id.to_owned(),
            key_env: vec![key_variable(name)],
            wire: Wire::OpenaiChat,
            extra_body: Object::new(),
            headers: BTreeMap::new(),
            verified_on: None,
            notes: Vec::new(),
        }
    }

    /// The key, from the first variable that is set. `env` reads one.
    ///
    /// Without one, an endpoint on this machine is asked without a key, and so is one whose headers
    /// authorize the request.
    ///
    /// # Errors
    /// No variable is set, and a key is needed.
    pub fn key(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Key>, MissingKey> {
        let mut set = self.key_env.iter().filter_map(|name| env(name));
        if let Some(key) = set.find_map(|text| Key::new(&text)) {
            return Ok(Some(key));
        }
        match self.key_env.first() {
            Some(variable) if !self.is_local() && !self.has_authorizing_header() => {
                Err(MissingKey {
                    provider: self.name.clone(),
                    variable: variable.clone(),
                })
            }
            _ => Ok(None),
        }
    }

    /// The variable that holds the key, if one is set.
    #[must_use]
    pub fn key_variable(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<&str> {
        let is_set = |name: &&String| env(name).is_some_and(|text| Key::new(&text).is_some());
        self.key_env.iter().find(is_set).map(String::as_str)
    }

    /// Further models the preset of this name lists.
    #[must_use]
    pub fn further_models(&self) -> &'static [String] {
        preset::models(&self.name)
    }

    /// Whether the endpoint is on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let url = Url::parse(&self.base_url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse();
        host == "localhost" || address.is_ok_and(|it: std::net::IpAddr| it.is_loopback())
    }

    fn has_authorizing_header(&self) -> bool {
        self.headers.keys().any(|name| headers::authorizes(name))
    }
}

/// Checks that an address can be asked and holds no password.
pub(crate) fn check_base_url(text: &str) -> Result<(), InvalidBaseUrl> {
    let invalid = |why| Err(InvalidBaseUrl { why });
    let Ok(url) = Url::parse(text) else {
        return invalid("this is no address");
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return invalid("only http and https are spoken");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return invalid("a name or password does not belong in it");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return invalid("a query does not belong in it");
    }
    Ok(())
}

/// `MY_PROXY_API_KEY` for `my-proxy`.
fn key_variable(name: &str) -> String {
    let mut variable: String = name
        .chars()
        .map(|c| match c.is_ascii_alphanumeric() {
            true => c.to_ascii_uppercase(),
            false => '_',
        })
        .collect();
    variable.push_str("_API_KEY");
    variable
}
