//! A provider together with the secrets that it needs.

use reqwest::header::HeaderValue;
use thiserror::Error;

use crate::provider::{MissingKey, MissingVariable, Provider, ProviderHeaders};
use crate::secret::ApiKey;

/// A provider with its secrets.
#[derive(Clone, Debug)]
pub struct ProbeTarget {
    /// The provider.
    pub provider: Provider,
    /// The key. Local providers need none.
    pub key: Option<ApiKey>,
    /// The provider's own headers, with their variables resolved.
    pub headers: ProviderHeaders,
}

/// A required secret is missing or unusable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MissingSecret {
    /// The key.
    #[error(transparent)]
    Key(#[from] MissingKey),
    /// A variable of a header.
    #[error(transparent)]
    Variable(#[from] MissingVariable),
    /// A secret that cannot be sent.
    #[error(
        "${variable} has a line break or other characters that a header cannot hold; \
         provider '{provider}' cannot be used with it"
    )]
    Unusable {
        /// The provider.
        provider: String,
        /// The variable that holds it.
        variable: String,
    },
}

impl ProbeTarget {
    /// A provider with its secrets from the environment. `env` reads one variable.
    ///
    /// # Errors
    /// A secret is missing, or a header cannot hold it.
    pub fn new(
        provider: Provider,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, MissingSecret> {
        let key = provider.key(env)?;
        let headers = provider.resolve_headers(env)?;
        let unusable = |name: &&str| {
            let key = env(name).and_then(|it| ApiKey::new(&it));
            key.is_some_and(|it| HeaderValue::try_from(it.expose()).is_err())
        };
        let variable = provider.key_variable(env);
        let variables = variable.into_iter().chain(provider.header_variables());
        let unusable = variables.filter(unusable).map(str::to_owned).next();
        if let Some(variable) = unusable {
            return Err(MissingSecret::Unusable {
                provider: provider.name,
                variable,
            });
        }
        Ok(Self {
            provider,
            key,
            headers,
        })
    }

    /// All secrets that must be masked.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &ApiKey> {
        self.key.iter().chain(&self.headers.secrets)
    }
}
