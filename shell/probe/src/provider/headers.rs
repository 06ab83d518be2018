use std::collections::BTreeMap;

use thiserror::Error;

use super::Provider;
use crate::probe_file::ProbeFileProblem;
use crate::secret::{ApiKey, looks_like_secret};

/// The headers of a provider with their variables resolved. All of them are treated as secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderHeaders {
    /// The headers by name.
    pub values: BTreeMap<String, ApiKey>,
    /// The values of variables in them, to be masked like keys.
    pub secrets: Vec<ApiKey>,
}

/// An environment variable in a header is not set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("${variable} is not set; the header '{header}' of provider '{provider}' needs it")]
pub struct MissingVariable {
    /// The provider.
    pub provider: String,
    /// The header.
    pub header: String,
    /// The variable.
    pub variable: String,
}

impl Provider {
    /// The headers to send, with their variables resolved. `env` reads one variable.
    ///
    /// # Errors
    /// A variable is not set.
    pub fn resolve_headers(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ProviderHeaders, MissingVariable> {
        let mut headers = ProviderHeaders::default();
        for (name, text) in &self.headers {
            let mut value = String::new();
            for part in parts(text).unwrap_or_else(|| vec![HeaderPart::Text(text)]) {
                match part {
                    HeaderPart::Text(text) => value.push_str(text),
                    HeaderPart::Variable(variable) => {
                        let set = env(variable).and_then(|it| ApiKey::new(&it));
                        let secret = set.ok_or_else(|| MissingVariable {
                            provider: self.name.clone(),
                            header: name.clone(),
                            variable: variable.to_owned(),
                        })?;
                        value.push_str(secret.expose());
                        headers.secrets.push(secret);
                    }
                }
            }
            if let Some(value) = ApiKey::new(&value) {
                headers.values.insert(name.clone(), value);
            }
        }
        Ok(headers)
    }

    /// The variables that the headers reference.
    pub(crate) fn header_variables(&self) -> impl Iterator<Item = &str> {
        let parts = self.headers.values().filter_map(|text| parts(text));
        parts.flatten().filter_map(|part| match part {
            HeaderPart::Variable(variable) => Some(variable),
            HeaderPart::Text(_) => None,
        })
    }
}

/// Checks a header as written in the file.
pub(super) fn check_header(name: &str, text: &str) -> Result<(), ProbeFileProblem> {
    let invalid = |why| {
        let name = name.to_owned();
        Err(ProbeFileProblem::Header { name, why })
    };
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return invalid("its name has other characters than letters, digits and -");
    }
    if text.trim().is_empty() {
        return invalid("it has no value");
    }
    if !text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        return invalid("its value has other characters than visible ASCII");
    }
    let Some(parts) = parts(text) else {
        return invalid("a variable is written ${NAME}");
    };
    let has_variable = parts.iter().any(|it| matches!(it, HeaderPart::Variable(_)));
    let secret =
        |part: &HeaderPart<'_>| matches!(part, HeaderPart::Text(text) if looks_like_secret(text));
    if parts.iter().any(secret) || (is_auth_header(name) && !has_variable) {
        let name = name.to_owned();
        return Err(ProbeFileProblem::SecretHeader { name });
    }
    Ok(())
}

/// Whether a header carries a key.
pub(super) fn is_auth_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "api-key", "apikey", "token", "cookie"]
        .iter()
        .any(|word| name.contains(word))
}

/// A piece of a header's value.
enum HeaderPart<'t> {
    Text(&'t str),
    Variable(&'t str),
}

/// The parts of a value; `None` if a variable in it is malformed.
fn parts(text: &str) -> Option<Vec<HeaderPart<'_>>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}')?;
        if !is_variable(name) {
            return None;
        }
        parts.push(HeaderPart::Text(before));
        parts.push(HeaderPart::Variable(name));
        rest = after;
    }
    parts.push(HeaderPart::Text(rest));
    Some(parts)
}

/// Whether a text is a valid name of an environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
