//! Reads the parts of the settings that use the policy language.

use serde_json::{Value, json};
use toolwarden_guard::{Policy, PolicyError};
use toolwarden_model::document::{Document, LocatedValue};
use toolwarden_model::json::Pointer;

use super::super::{PolicySource, SettingsProblem};
use super::SettingsReader;
use toolwarden_live_guard::{LoadedPolicy, PolicyFileError};

impl SettingsReader<'_> {
    pub(super) fn policy(&mut self, at: &LocatedValue<'_>) -> Option<PolicySource> {
        let Some(written) = at.value.as_object() else {
            return self.path(at).map(PolicySource::File);
        };
        let mut policy = written.clone();
        // The tools are those of the servers, so a policy need not name any.
        policy.entry("tools").or_insert_with(|| json!({}));
        let text = Value::Object(policy).to_string();
        let path = self.folder.join("policy");
        match LoadedPolicy::of_text(text.as_bytes(), &path, self.folder) {
            Ok(loaded) => {
                for warning in loaded.warnings {
                    self.warn(&at.pointer.join(&warning.pointer), &warning.message);
                }
                Some(PolicySource::Inline(text))
            }
            Err(PolicyFileError::Invalid { errors, .. }) => {
                self.policy_errors(&at.pointer, errors, 0);
                None
            }
            Err(other) => {
                let message = other.to_string();
                self.reader
                    .report(&at.pointer, SettingsProblem::Unusable { message });
                None
            }
        }
    }

    /// The rules of a tool, checked like those of a policy with one tool.
    pub(super) fn tool_rules(&mut self, at: &LocatedValue<'_>) -> Option<Value> {
        self.reader.object(at)?;
        let text = json!({"tools": {"every": at.value}}).to_string();
        let read = Document::read(&text).ok()?;
        if let Err(errors) = Policy::read(&read) {
            self.policy_errors(&at.pointer, errors, 2);
            return None;
        }
        Some(at.value.clone())
    }

    /// Reports the mistakes of a policy at their place in the settings; `outside` segments are not written
    /// there.
    fn policy_errors(&mut self, at: &Pointer, errors: Vec<PolicyError>, outside: usize) {
        for error in errors {
            let inside: Vec<String> = error.pointer.segments().skip(outside).collect();
            let pointer = at.join(&Pointer::of(inside.iter().map(String::as_str)));
            self.reader.report(&pointer, error.problem);
        }
    }
}
