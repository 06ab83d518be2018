//! The providers that a suite runs against. Known providers are presets in a data file; users can
//! describe others.

mod fixture;
mod headers;
mod presets;
pub(crate) mod read;

use std::collections::BTreeMap;

use reqwest::Url;
use thiserror::Error;
use toolwarden_model::did_you_mean;
use toolwarden_model::json::Object;
use toolwarden_model::reply::WireApi;

use crate::base_url::{InvalidBaseUrl, check_base_url};
use crate::secret::ApiKey;

pub use fixture::{FIXTURES, fixture};
pub use headers::{MissingVariable, ProviderHeaders};
pub use presets::presets;

/// An endpoint, a model, and how to send requests to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Its name in files and options.
    pub name: String,
    /// The address to which the paths of the wire are appended.
    pub base_url: String,
    /// The model.
    pub model_id: String,
    /// The environment variables that may hold the key; the first one that is set is used. Empty if
    /// no key is needed.
    pub key_env: Vec<String>,
    /// The wire protocol of the endpoint.
    pub wire: WireApi,
    /// Members added to every request body.
    pub extra_body: Object,
    /// Headers added to every request; `${NAME}` refers to an environment variable.
    pub headers: BTreeMap<String, String>,
    /// The day a preset was last compared with the vendor's documentation.
    pub verified_on: Option<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Why a provider cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidProvider {
    /// The name is unknown, and the provider was not described.
    #[error(transparent)]
    Unknown(#[from] UnknownProvider),
    /// The address is invalid.
    #[error(transparent)]
    BaseUrl(#[from] InvalidBaseUrl),
}

/// An unknown provider.
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

/// None of the variables that may hold the key of a provider is set.
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
    /// The preset with this name.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn find(name: &str) -> Result<Self, UnknownProvider> {
        let found = presets().iter().find(|it| it.name == name);
        found.cloned().ok_or_else(|| {
            let names = || presets().iter().map(|it| it.name.as_str());
            let suggestion = did_you_mean(name, names());
            let suggestion = suggestion.strip_prefix(", did");
            UnknownProvider {
                name: name.to_owned(),
                suggestion: suggestion.map_or(String::new(), |it| format!(" Did{it}")),
                known: names().collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// The provider that options describe: a preset with overrides, or another provider by its
    /// address and model.
    ///
    /// # Errors
    /// The name is unknown and the address or the model is missing, or the address is invalid.
    pub fn resolve(
        name: &str,
        model: Option<&str>,
        base_url: Option<&str>,
    ) -> Result<Self, InvalidProvider> {
        if let Some(base_url) = base_url {
            check_base_url(base_url)?;
        }
        match (Self::find(name), base_url, model) {
            (Ok(preset), _, _) => Ok(preset.with_overrides(model, base_url)),
            (Err(_), Some(base_url), Some(model)) => Ok(Self::custom(name, base_url, model)),
            (Err(unknown), _, _) => Err(unknown.into()),
        }
    }

    /// This provider with another model or address.
    #[must_use]
    pub fn with_overrides(mut self, model: Option<&str>, base_url: Option<&str>) -> Self {
        if let Some(model) = model {
            model.clone_into(&mut self.model_id);
        }
        if let Some(base_url) = base_url {
            base_url.clone_into(&mut self.base_url);
        }
        self
    }

    /// A provider given by its address and model, with an OpenAI-compatible wire. Its key is in the
    /// variable `NAME_API_KEY`.
    #[must_use]
    pub fn custom(name: &str, base_url: &str, model_id: &str) -> Self {
        Self {
            name: name.to_owned(),
            base_url: base_url.to_owned(),
            model_id: model_id.to_owned(),
            key_env: vec![key_variable(name)],
            wire: WireApi::OpenaiChat,
            extra_body: Object::new(),
            headers: BTreeMap::new(),
            verified_on: None,
            notes: Vec::new(),
        }
    }

    /// The key, from the first variable that is set. `env` reads one variable.
    ///
    /// If no variable is set, requests carry no key if the endpoint is on this machine or its
    /// headers authorize the request.
    ///
    /// # Errors
    /// No variable is set, and a key is needed.
    pub fn key(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Option<ApiKey>, MissingKey> {
        let mut set = self.key_env.iter().filter_map(|name| env(name));
        if let Some(key) = set.find_map(|text| ApiKey::new(&text)) {
            return Ok(Some(key));
        }
        match self.key_env.first() {
            Some(variable) if !self.is_local() && !self.has_auth_header() => Err(MissingKey {
                provider: self.name.clone(),
                variable: variable.clone(),
            }),
            _ => Ok(None),
        }
    }

    /// The variable that holds the key, if one is set.
    #[must_use]
    pub fn key_variable(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<&str> {
        let is_set = |name: &&String| env(name).is_some_and(|text| ApiKey::new(&text).is_some());
        self.key_env.iter().find(is_set).map(String::as_str)
    }

    /// Further models that the preset of this name lists.
    #[must_use]
    pub fn further_models(&self) -> &'static [String] {
        presets::further_models(&self.name)
    }

    /// Whether the endpoint is on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let url = Url::parse(&self.base_url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse();
        host == "localhost" || address.is_ok_and(|it: std::net::IpAddr| it.is_loopback())
    }

    fn has_auth_header(&self) -> bool {
        self.headers
            .keys()
            .any(|name| headers::is_auth_header(name))
    }
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
