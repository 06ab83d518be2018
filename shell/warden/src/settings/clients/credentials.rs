//! How clients authenticate to servers, and what of that the gateway can do as well.

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use super::reference::variable;
use super::server::Taking;

/// Keys that some clients have for a bearer token.
const TOKENS: &[&str] = &[
    "bearerToken",
    "bearer_token",
    "authToken",
    "auth_token",
    "token",
];
/// Keys that name the variable with the bearer token.
const TOKEN_VARIABLES: &[&str] = &["bearerTokenEnvVar", "bearer_token_env_var"];

const AUTHORIZATION: &str = "Authorization";

impl Taking {
    /// The `Authorization` header that keys other than `headers` amount to. What cannot be carried over
    /// is noted with its remedy; the keys that were dealt with either way are returned.
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
                key if TOKENS.contains(&key) => bearer(value),
                key if TOKEN_VARIABLES.contains(&key) => {
                    value.as_str().map(|name| format!("Bearer ${{{name}}}"))
                }
                "auth" => written_auth(value),
                _ => continue,
            };
            known.push(key.clone());
            let taken = headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION));
            match header {
                Some(header) if !taken => {
                    let header = self.text(&header, &place);
                    let variable = variable(&format!("{server}-token"));
                    self.warn_of_secret(AUTHORIZATION, &header, &variable, &place);
                    headers.push((AUTHORIZATION.to_owned(), header));
                }
                Some(_) => self.note(
                    &place,
                    format!("`{key}` is not carried over: `headers` has `{AUTHORIZATION}` already"),
                ),
                None => self.note(&place, no_login(key, server)),
            }
        }
        known
    }

    /// Notes every key that a server of this kind does not use.
    pub(super) fn unused(&mut self, members: &Object, at: &Pointer, keys: &[&str], remedy: &str) {
        for key in keys.iter().filter(|key| members.contains_key(**key)) {
            let message = format!("`{key}` is not carried over: {remedy}");
            self.note(&at.child(key), message);
        }
    }
}

/// Why a key is not carried over, and what to do instead.
pub(super) fn not_carried_over(key: &str, server: &str) -> String {
    match key {
        "oauth" | "auth" => no_login(key, server),
        "headersHelper" => format!(
            "`{key}` is not carried over: the gateway does not run it; set `servers.{server}.headers`, \
             with secrets as `${{NAME}}`"
        ),
        "envFile" => format!(
            "`{key}` is not carried over: set its variables in `servers.{server}.env`, or in the \
             environment of the gateway"
        ),
        key => format!("`{key}` is not taken over"),
    }
}

fn no_login(key: &str, server: &str) -> String {
    let variable = variable(&format!("{server}-token"));
    format!(
        "`{key}` is not carried over: the gateway does not log in by itself; obtain a token, set \
         `servers.{server}.headers: {{Authorization: \"Bearer ${{{variable}}}\"}}` and the variable \
         {variable}"
    )
}

fn bearer(token: &Value) -> Option<String> {
    let token = token.as_str().filter(|it| !it.trim().is_empty())?;
    Some(format!("Bearer {token}"))
}

/// The header that an `auth` amounts to: written out, or a token. OAuth clients need a login.
fn written_auth(auth: &Value) -> Option<String> {
    if let Some(text) = auth.as_str() {
        let has_scheme = ["Bearer ", "Basic "].iter().any(|it| text.starts_with(it));
        return has_scheme.then(|| text.to_owned());
    }
    let kind = auth.get("type").and_then(Value::as_str);
    if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return None;
    }
    TOKENS.iter().find_map(|key| bearer(auth.get(*key)?))
}
