//! Masks secrets of servers and of the gateway in every text that leaves the process.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// Shorter words occur everywhere, so masking them protects nothing.
const MIN_SECRET_LENGTH: usize = 6;
/// The shortest secret whose encoded forms are masked as well.
const MIN_ENCODED_LENGTH: usize = 8;
/// The text that replaces a secret.
const MASK: &str = "***";

/// Parts of names that suggest that a value is a secret.
const SECRET_NAMES: [&str; 11] = [
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "auth",
    "cred",
    "cookie",
    "bearer",
    "signature",
    "dsn",
];

/// The secrets of all settings that this process has read, in every form in which they may appear.
static PROCESS_SECRETS: RwLock<Option<Secrets>> = RwLock::new(None);

/// The secrets of a server, or of all settings. A server may repeat them in its description of
/// itself, which others read.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[String]>);

impl Secrets {
    /// These texts, word by word, in every form in which they may appear. Short words are skipped.
    pub fn new<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let words = texts.into_iter().flat_map(str::split_whitespace);
        let words = words.filter(|word| word.len() >= MIN_SECRET_LENGTH && !is_scheme(word));
        let mut forms: Vec<String> = words.flat_map(encoded_forms).collect();
        // One secret may be part of another, so longer ones come first.
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        forms.dedup();
        Self(forms.into())
    }

    /// The text with these secrets and the secrets of all settings masked.
    #[must_use]
    pub fn mask(&self, mut text: String) -> String {
        self.mask_in_place(&mut text);
        match mask_secrets(&text) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => text,
        }
    }

    fn mask_in_place(&self, text: &mut String) {
        for word in &*self.0 {
            if text.contains(word.as_str()) {
                *text = text.replace(word.as_str(), MASK);
            }
        }
    }

    fn occurs_in(&self, text: &str) -> bool {
        self.0.iter().any(|word| text.contains(word.as_str()))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

/// Adds secrets to those that [`mask_secrets`] hides. They stay hidden until the process exits, because
/// their effects may outlive the settings they came from.
pub fn register_secrets<'t>(texts: impl IntoIterator<Item = &'t str>) {
    let added = Secrets::new(texts);
    // A value replaced in one step is intact after a panic.
    let mut known = PROCESS_SECRETS
        .write()
        .unwrap_or_else(PoisonError::into_inner);
    let all = known
        .iter()
        .flat_map(|known| known.0.iter())
        .chain(added.0.iter());
    let mut all: Vec<String> = all.cloned().collect();
    all.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    all.dedup();
    *known = Some(Secrets(all.into()));
}

/// The text with the secrets of all settings masked: in plain text, in base64, percent-encoded and
/// JSON-escaped. Every text that leaves the process and does not come from a tool passes through
/// here.
#[must_use]
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    let known = PROCESS_SECRETS
        .read()
        .unwrap_or_else(PoisonError::into_inner);
    match known.as_ref() {
        Some(known) if known.occurs_in(text) => {
            let mut text = text.to_owned();
            known.mask_in_place(&mut text);
            Cow::Owned(text)
        }
        Some(_) | None => Cow::Borrowed(text),
    }
}

/// Whether the name of a variable, a header, a flag or a parameter suggests that its value is a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// The arguments of a program that look like secrets: `--token=…`, `--token …`, `TOKEN=…`, and the
/// secret parts of addresses among them.
pub fn secret_arguments(args: &[String]) -> impl Iterator<Item = &str> {
    let before = std::iter::once("").chain(args.iter().map(String::as_str));
    before.zip(args).flat_map(|(before, arg)| {
        let assigned = arg.split_once('=').filter(|(name, _)| is_secret_name(name));
        let is_flag = before.starts_with('-') && !before.contains('=');
        let follows = is_flag && is_secret_name(before) && !arg.starts_with('-');
        let own = assigned.map(|(_, value)| value);
        own.into_iter()
            .chain(follows.then_some(arg.as_str()))
            .chain(secret_url_parts(arg))
    })
}

/// The parts of an address that look like secrets: user and password, and parameters whose names suggest it.
pub fn secret_url_parts(address: &str) -> impl Iterator<Item = &str> {
    let rest = address.split_once("://").map(|(_, rest)| rest);
    let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let user = authority
        .and_then(|it| it.rsplit_once('@'))
        .map(|(user, _)| user);
    let password = user.and_then(|it| it.split_once(':')).map(|(_, word)| word);
    let query = rest
        .and_then(|rest| rest.split_once('?'))
        .map(|(_, query)| query);
    let pairs = query.unwrap_or_default().split(['&', '#']);
    let values = pairs.filter_map(|pair| pair.split_once('='));
    let values = values
        .filter(|(name, _)| is_secret_name(name))
        .map(|(_, value)| value);
    user.into_iter().chain(password).chain(values)
}

/// Whether a word names an authentication scheme rather than a credential.
fn is_scheme(word: &str) -> bool {
    ["bearer", "digest", "negotiate"].contains(&word.to_ascii_lowercase().as_str())
}

/// A secret in every form in which it may appear.
fn encoded_forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    let escaped = serde_json::to_string(secret).unwrap_or_default();
    forms.push(escaped.trim_matches('"').to_owned());
    // The secret parts of an address are already percent-encoded.
    let decoded = percent_decoded(secret);
    for plain in [Some(secret), decoded.as_deref()].into_iter().flatten() {
        if plain.len() >= MIN_ENCODED_LENGTH {
            forms.extend([
                plain.to_owned(),
                STANDARD.encode(plain),
                STANDARD_NO_PAD.encode(plain),
                URL_SAFE.encode(plain),
                URL_SAFE_NO_PAD.encode(plain),
                percent_encoded(plain),
                percent_encoded(plain).to_ascii_lowercase(),
            ]);
        }
    }
    forms.retain(|form| form.len() >= MIN_SECRET_LENGTH);
    forms
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    let mut any = false;
    for part in parts {
        let byte = part
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())?;
        bytes.push(byte);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
        any = true;
    }
    any.then(|| String::from_utf8(bytes).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_hidden_and_short_ones_stay() {
        let secrets = Secrets::new(["Bearer abcdef", "abcdef-and-more", "1"]);
        let text = "1: abcdef-and-more, then abcdef; Bearer".to_owned();
        assert_eq!(secrets.mask(text), "1: ***, then ***; Bearer");
        assert_eq!(format!("{secrets:?}"), "Secrets");
    }

    #[test]
    fn encoded_forms_are_hidden() {
        let secret = "s3cr\"t+v/lue?";
        let secrets = Secrets::new([secret]);
        for form in [
            secret.to_owned(),
            serde_json::to_string(secret)
                .unwrap()
                .trim_matches('"')
                .to_owned(),
            STANDARD.encode(secret),
            URL_SAFE_NO_PAD.encode(secret),
            "s3cr%22t%2Bv%2Flue%3F".to_owned(),
            "s3cr%22t%2bv%2flue%3f".to_owned(),
        ] {
            assert_eq!(secrets.mask(format!("<{form}>")), "<***>", "{form}");
        }
    }

    #[test]
    fn registered_secrets_are_masked_everywhere() {
        assert_eq!(mask_secrets("remembered-secret"), "remembered-secret");
        register_secrets(["remembered-secret", "short"]);
        register_secrets(["another-secret"]);
        assert_eq!(
            mask_secrets("remembered-secret short another-secret"),
            "*** short ***"
        );
        assert_eq!(
            Secrets::default().mask("a remembered-secret".to_owned()),
            "a ***"
        );
    }
}
