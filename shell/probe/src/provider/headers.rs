use std::collections::BTreeMap;

use thiserror::Error;

use super::Provider;
use crate::file::Problem;
use crate::secret::{Key, looks_secret};

/// The headers of a provider with the values of their variables. All of them are kept as secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// The headers by name.
    pub values: BTreeMap<String, Key>,
    /// The values of variables within them, to be masked like keys.
    pub secrets: Vec<Key>,
}

/// A variable of a header is not set.
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
    /// The headers to send, with what the variables in them hold. `env` reads one.
    ///
    /// # Errors
    /// A variable is not set.
    pub fn resolved_headers(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Headers, MissingVariable> {
        let mut headers = Headers::default();
        for (name, text) in &self.headers {
            let mut value = String::new();
            for part in parts(text).unwrap_or_else(|| vec![Part::Text(text)]) {
                match part {
                    Part::Text(text) => value.push_str(text),
                    Part::Variable(variable) => {
                        let set = env(variable).and_then(|it| Key::new(&it));
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
            if let Some(value) = Key::new(&value) {
                headers.values.insert(name.clone(), value);
            }
        }
        Ok(headers)
    }

    /// The variables that the headers need.
    pub(crate) fn header_variables(&self) -> impl Iterator<Item = &str> {
        let parts = self.headers.values().filter_map(|text| parts(text));
        parts.flatten().filter_map(|part| match part {
            Part::Variable(variable) => Some(variable),
            Part::Text(_) => None,
        })
    }
}

/// What is wrong with a header as it is written.
pub(super) fn check(name: &str, text: &str) -> Result<(), Problem> {
    let invalid = |why| {
        let name = name.to_owned();
        Err(Problem::Header { name, why })
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
    let has_variable = parts.iter().any(|it| matches!(it, Part::Variable(_)));
    let secret = |part: &Part<'_>| matches!(part, Part::Text(text) if looks_secret(text));
    if parts.iter().any(secret) || (authorizes(name) && !has_variable) {
        let name = name.to_owned();
        return Err(Problem::SecretHeader { name });
    }
    Ok(())
}

/// Whether a header carries a key.
pub(super) fn authorizes(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "api-key", "apikey", "token", "cookie"]
        .iter()
        .any(|word| name.contains(word))
}

/// A piece of a header's value.
enum Part<'t> {
    Text(&'t str),
    Variable(&'t str),
}

/// The pieces of a value, unless a variable in it is misspelled.
fn parts(text: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}')?;
        if !is_variable(name) {
            return None;
        }
        parts.push(Part::Text(before));
        parts.push(Part::Variable(name));
        rest = after;
    }
    parts.push(Part::Text(rest));
    Some(parts)
}

/// Whether a text can name an environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
