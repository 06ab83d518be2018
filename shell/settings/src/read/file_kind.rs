//! Tells settings from a policy. Both were published under the name `toolwarden.yaml`.

use toolwarden_model::document::{Document, DocumentReader};

use super::super::keys::ROOT;
use super::super::{Settings, SettingsProblem};

/// The keys that a policy has too.
const SHARED_KEYS: &[&str] = &["version", "sessions"];

impl Settings {
    /// Whether a document is meant as settings and not as a policy: one of its keys belongs to settings
    /// only. Its other keys may be wrong.
    #[must_use]
    pub fn is_settings(document: &Document) -> bool {
        let mut reader = DocumentReader::<SettingsProblem>::default();
        let root = reader.section(&document.root(), &ROOT.keys());
        let mut fields = ROOT.fields.iter().map(|field| field.name);
        fields.any(|name| !SHARED_KEYS.contains(&name) && root.get(name).is_some())
    }
}
