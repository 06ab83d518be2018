//! Callers: their identity, their limits, and what they must not learn.

mod connections;
mod revoked;
mod secrets;
mod tokens;

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};

const ISSUER: &str = "https://login.example";
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Settings of an issuer with a shared secret.
fn issuer(more: Value) -> Value {
    let mut issuer = json!({"issuer": ISSUER, "audience": "gateway", "secret": SECRET});
    if let (Value::Object(members), Value::Object(more)) = (&mut issuer, more) {
        members.extend(more);
    }
    issuer
}

/// The header of a caller with a token.
fn bearer(subject: &str, more: Value) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut claims = json!({
        "iss": ISSUER, "aud": "gateway", "sub": subject, "exp": now.as_secs() + 600,
    });
    if let (Value::Object(members), Value::Object(more)) = (&mut claims, more) {
        members.extend(more);
    }
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let token = encode(&Header::default(), &claims, &key).unwrap();
    format!("Bearer {token}")
}
