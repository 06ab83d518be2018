use reqwest::header::HeaderValue;
use thiserror::Error;

use crate::provider::{Headers, MissingKey, MissingVariable, Provider};
use crate::secret::Key;

/// A provider with the secrets it is asked with.
#[derive(Clone, Debug)]
pub struct Target {
    /// The provider.
    pub provider: Provider,
    /// The key. Local providers need none.
    pub key: Option<Key>,
    /// The provider's own headers, with what their variables hold.
    pub headers: Headers,
}

/// A secret that is needed and not there, or of no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MissingSecret {
    /// The key.
    #[error(transparent)]
    Key(#[from] MissingKey),
    /// What a header needs.
    #[error(transparent)]
    Variable(#[from] MissingVariable),
    /// A secret that cannot be sent.
    #[error(
        "${variable} has a line break or other characters that no header can hold; \
         provider '{provider}' cannot be asked with it"
    )]
    Unusable {
        /// The provider.
        provider: String,
        /// The variable that holds it.
        variable: String,
    },
}

impl Target {
    /// A provider with its secrets from the environment. `env` reads one variable.
    ///
    /// # Errors
    /// A secret is missing, or no header can hold it.
    pub fn new(
        provider: Provider,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, MissingSecret> {
        let key = provider.key(env)?;
        let headers = provider.resolved_headers(env)?;
        let unusable = |name: &&str| {
            let key = env(name).and_then(|it| Key::new(&it));
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

    /// Everything that must not be told.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Key> {
        self.key.iter().chain(&self.headers.secrets)
    }
}
