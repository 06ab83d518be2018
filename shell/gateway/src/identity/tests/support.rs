use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use toolwarden_settings::{IdentitySettings, JwtKeys, JwtSettings};

use crate::identity::{AuthenticationFailure, Identities, Principal, Timing};

pub(super) const ISSUER: &str = "https://issuer.example";
pub(super) const AUDIENCE: &str = "gateway";

/// A private key that signs tokens.
pub(super) enum Signer {
    Es256(Box<EcdsaKeyPair>),
    EdDsa(Ed25519KeyPair),
    Hs256(Vec<u8>),
}

impl Signer {
    pub(super) fn es256() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self::Es256(Box::new(pair))
    }

    pub(super) fn eddsa() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::EdDsa(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::EdDsa(_) => "EdDSA",
            Self::Hs256(_) => "HS256",
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Es256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), message).unwrap();
                signature.as_ref().to_vec()
            }
            Self::EdDsa(pair) => pair.sign(message).as_ref().to_vec(),
            Self::Hs256(secret) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::sign(&key, message).as_ref().to_vec()
            }
        }
    }

    /// A token with these claims.
    pub(super) fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({"alg": self.algorithm()}), claims)
    }

    /// A token that names its key.
    pub(super) fn token_by(&self, kid: &str, claims: &Value) -> String {
        self.token_with(&json!({"alg": self.algorithm(), "kid": kid}), claims)
    }

    /// A token with any header.
    pub(super) fn token_with(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encoded(header), encoded(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// The public part as a member of a key set.
    pub(super) fn jwk(&self, kid: &str) -> Value {
        match self {
            Self::Es256(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = point[1..].split_at(32);
                json!({
                    "kty": "EC", "crv": "P-256", "kid": kid, "use": "sig",
                    "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
                })
            }
            Self::EdDsa(pair) => json!({
                "kty": "OKP", "crv": "Ed25519", "kid": kid,
                "x": URL_SAFE_NO_PAD.encode(pair.public_key()),
            }),
            Self::Hs256(secret) => json!({
                "kty": "oct", "kid": kid, "k": URL_SAFE_NO_PAD.encode(secret),
            }),
        }
    }

    /// The public part in PEM.
    pub(super) fn pem(&self) -> String {
        let (prefix, key): (&[u8], Vec<u8>) = match self {
            Self::Es256(pair) => (
                &[
                    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
                    0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
                ],
                pair.public_key().as_ref().to_vec(),
            ),
            Self::EdDsa(pair) => (
                &[
                    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
                ],
                pair.public_key().as_ref().to_vec(),
            ),
            Self::Hs256(_) => panic!("a secret has no public part"),
        };
        let der = [prefix, &key].concat();
        let body = STANDARD.encode(der);
        format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n")
    }
}

pub(super) fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

pub(super) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap().as_secs()
}

/// Claims that are in order.
pub(super) fn claims() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": now() + 600})
}

/// These claims with some others.
pub(super) fn claims_with(changes: &Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

pub(super) fn jwt(keys: JwtKeys) -> JwtSettings {
    JwtSettings {
        issuer: Some(ISSUER.to_owned()),
        audience: AUDIENCE.to_owned(),
        keys,
        principal_claim: "sub".to_owned(),
        principal_prefix: "jwt:".to_owned(),
        scopes: Vec::new(),
        leeway: Duration::from_secs(5),
        roles: None,
        refresh: Duration::from_secs(600),
        max_stale: Duration::from_secs(3600),
    }
}

/// Who a caller with this token is: the principal's name, or why there is none.
pub(super) async fn name_of(
    identities: &Identities,
    token: &str,
) -> Result<String, AuthenticationFailure> {
    let found = identities.identify(&bearer(token), None).await;
    let found: Result<Principal, _> = found.map_err(|refusal| refusal.reason());
    found.map(|principal| principal.name.to_string())
}

pub(super) fn bearer(token: &str) -> HeaderMap {
    let value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

pub(super) fn with_issuer(issuer: JwtSettings, timing: Timing) -> Identities {
    let settings = IdentitySettings {
        jwt: vec![issuer],
        ..IdentitySettings::default()
    };
    Identities::build(&settings, timing, None).unwrap()
}

/// Answers of an issuer, by path. They can be changed while it runs.
pub(super) type Answers = Vec<(String, StatusCode, String)>;

/// An issuer on loopback.
pub(super) struct Issuer {
    pub(super) url: String,
    answers: Arc<ArcSwap<Answers>>,
    fetches: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Issuer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers: Arc<ArcSwap<Answers>> = Arc::default();
        let fetches: Arc<AtomicUsize> = Arc::default();
        let router = Router::new().fallback({
            let (answers, fetches) = (Arc::clone(&answers), Arc::clone(&fetches));
            move |request: Request| {
                fetches.fetch_add(1, Ordering::SeqCst);
                let answers = answers.load_full();
                async move {
                    let path = request.uri().path();
                    let found = answers.iter().find(|(known, ..)| known == path);
                    match found {
                        Some((_, status, body)) => (*status, body.clone()).into_response(),
                        None => StatusCode::NOT_FOUND.into_response(),
                    }
                }
            }
        });
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            answers,
            fetches,
            task,
        }
    }

    pub(super) fn answer(&self, answers: &[(&str, StatusCode, &Value)]) {
        let answers = answers
            .iter()
            .map(|(path, status, body)| ((*path).to_owned(), *status, body.to_string()));
        self.answers.store(Arc::new(answers.collect()));
    }

    /// Shows these keys at `/keys`.
    pub(super) fn show(&self, keys: &[Value]) {
        self.answer(&[("/keys", StatusCode::OK, &json!({"keys": keys}))]);
    }

    pub(super) fn keys(&self) -> JwtKeys {
        JwtKeys::Jwks(format!("{}/keys", self.url))
    }

    /// How many requests it received.
    pub(super) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
