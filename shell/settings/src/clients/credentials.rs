//! How clients authenticate to servers, and which of it the gateway supports.

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use super::import_server::ClientImport;
use super::placeholders::variable_name;

/// Keys for a bearer token in some clients.
const TOKEN_KEYS: &[&str] = &[
    "bearerToken",
    "bearer_token",
    "authToken",
    "auth_token",
    "token",
];
/// Keys that name the environment variable with the bearer token.
const TOKEN_VARIABLE_KEYS: &[&str] = &["bearerTokenEnvVar", "bearer_token_env_var"];

const AUTHORIZATION: &str = "Authorization";

impl ClientImport {
    /// The `Authorization` header that keys other than `headers` stand for. It adds a note with a remedy
    /// for whatever cannot be imported, and returns the keys that were handled.
    pub(super) fn authorization(
        &mut self,
        server: &str,
        members: &Object,
        at: &Pointer,
        headers: &mut Vec<(String, String)>,
    ) -> Vec<String> {
        let mut known = Vec::new();
        for (key, value) in members {
            let place = at.child(key);
            let header = match key.as_str() {
                key if TOKEN_KEYS.contains(&key) => bearer_header(value),
                key if TOKEN_VARIABLE_KEYS.contains(&key) => {
                    value.as_str().map(|name| format!("Bearer ${{{name}}}"))
                }
                "auth" => auth_header(value),
                _ => continue,
            };
            known.push(key.clone());
            let taken = headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION));
            match header {
                Some(header) if !taken => {
                    let header = self.translate_text(&header, &place);
                    let variable = variable_name(&format!("{server}-token"));
                    self.warn_of_secret(AUTHORIZATION, &header, &variable, &place);
                    headers.push((AUTHORIZATION.to_owned(), header));
                }
                Some(_) => self.add_note(
                    &place,
                    format!("`{key}` is not imported: `headers` has `{AUTHORIZATION}` already"),
                ),
                None => self.add_note(&place, login_note(key, server)),
            }
        }
        known
    }

    /// Adds a note for every key that a server of this kind does not use.
    pub(super) fn note_unused_keys(
        &mut self,
        members: &Object,
        at: &Pointer,
        keys: &[&str],
        remedy: &str,
    ) {
        for key in keys.iter().filter(|key| members.contains_key(**key)) {
            let message = format!("`{key}` is not imported: {remedy}");
            self.add_note(&at.child(key), message);
        }
    }
}

/// Why a key is not imported, and what to do instead.
pub(super) fn unsupported_key_note(key: &str, server: &str) -> String {
    match key {
        "oauth" | "auth" => login_note(key, server),
        "headersHelper" => format!(
            "`{key}` is not imported: the gateway does not run it; set `servers.{server}.headers`, \
             with secrets as `${{NAME}}`"
        ),
        "envFile" => format!(
            "`{key}` is not imported: set its variables in `servers.{server}.env`, or in the \
             environment of the gateway"
        ),
        key => format!("`{key}` is not imported"),
    }
}

fn login_note(key: &str, server: &str) -> String {
    let variable = variable_name(&format!("{server}-token"));
    format!(
        "`{key}` is not imported: the gateway does not log in by itself; obtain a token, set \
         `servers.{server}.headers: {{Authorization: \"Bearer ${{{variable}}}\"}}` and the variable \
         {variable}"
    )
}

fn bearer_header(token: &Value) -> Option<String> {
    let token = token.as_str().filter(|it| !it.trim().is_empty())?;
    Some(format!("Bearer {token}"))
}

/// The header that an `auth` stands for: a literal, or a token. OAuth clients need a login.
fn auth_header(auth: &Value) -> Option<String> {
    if let Some(text) = auth.as_str() {
        let has_scheme = ["Bearer ", "Basic "].iter().any(|it| text.starts_with(it));
        return has_scheme.then(|| text.to_owned());
    }
    let kind = auth.get("type").and_then(Value::as_str);
    if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return None;
    }
    TOKEN_KEYS
        .iter()
        .find_map(|key| bearer_header(auth.get(*key)?))
}
