//! Translates the references in client files into ours.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::interpolate::is_variable_name;

/// The values that VS Code asks its user for, by id.
#[derive(Debug, Default)]
pub(super) struct VsCodeInputs(BTreeMap<String, String>);

/// A translated text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TranslatedText {
    pub(super) text: String,
    /// Whether it contains a reference.
    pub(super) has_references: bool,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

impl VsCodeInputs {
    /// The inputs of a file, with their descriptions.
    pub(super) fn of(root: &Value) -> Self {
        let places = ["/inputs", "/mcp/inputs", "/mcp.inputs"];
        let lists = places.iter().filter_map(|at| root.pointer(at)?.as_array());
        let inputs = lists.flatten().filter_map(|input| {
            let id = input.get("id")?.as_str()?;
            let about = input.get("description").and_then(Value::as_str);
            Some((id.to_owned(), about.unwrap_or_default().to_owned()))
        });
        Self(inputs.collect())
    }

    /// A text of a client with its references translated into ours, and other dollar signs unchanged.
    pub(super) fn translate(&self, written: &str) -> TranslatedText {
        let mut out = TranslatedText::default();
        let mut rest = written;
        while let Some((before, after)) = rest.split_once('$') {
            out.text.push_str(before);
            let reference = after.strip_prefix('{').and_then(|it| it.split_once('}'));
            if let Some((inside, after)) = reference
                && let Some(ours) = self.reference(inside, &mut out.notes)
            {
                out.text.push_str(&format!("${{{ours}}}"));
                out.has_references = true;
                rest = after;
                continue;
            }
            // Doubled only if a single one would be read as a reference.
            let alone = !after.starts_with(['$', '{']);
            out.text.push_str(if alone { "$" } else { "$$" });
            rest = after;
        }
        out.text.push_str(rest);
        out
    }

    /// The inside of our braces for the inside of theirs.
    fn reference(&self, inside: &str, notes: &mut Vec<String>) -> Option<String> {
        if let Some(id) = inside.strip_prefix("input:") {
            let name = variable_name(id);
            let about = self.0.get(id).filter(|about| !about.is_empty());
            let about = about.map_or_else(String::new, |about| format!(" ({about})"));
            notes.push(format!(
                "VS Code asks for `{id}`{about}; set the environment variable `{name}` instead"
            ));
            return Some(name);
        }
        if let Some(name) = inside.strip_prefix("env:") {
            return is_variable_name(name).then(|| name.to_owned());
        }
        if inside == "userHome" {
            return Some("HOME".to_owned());
        }
        let name = inside.split_once(":-").map_or(inside, |(name, _)| name);
        let of_editor = [
            "workspaceFolder",
            "workspaceFolderBasename",
            "pathSeparator",
        ];
        if of_editor.contains(&name) || name.starts_with("workspaceFolder:") {
            let ours = variable_name(name);
            notes.push(format!(
                "there is no `${{{name}}}` outside the editor; set the environment variable `{ours}`"
            ));
            return Some(ours);
        }
        is_variable_name(name).then(|| inside.to_owned())
    }
}

/// A variable name made from a text: `api-key` and `apiKey` become `API_KEY`.
pub(super) fn variable_name(text: &str) -> String {
    let mut name = String::new();
    let mut before = '_';
    for c in text.chars() {
        let fits = c.is_ascii_alphanumeric();
        if (c.is_ascii_uppercase() && before.is_ascii_lowercase()) || (!fits && before != '_') {
            name.push('_');
        }
        if fits {
            name.push(c.to_ascii_uppercase());
        }
        before = if fits { c } else { '_' };
    }
    let name = name.trim_matches('_');
    match name.chars().next() {
        Some(c) if c.is_ascii_alphabetic() => name.to_owned(),
        _ => format!("INPUT_{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_of_clients_become_ours() {
        let inputs = VsCodeInputs::of(&json!({
            "inputs": [{"id": "api-key", "type": "promptString", "description": "The key"}],
        }));
        let cases = [
            ("plain", "plain", false, vec![]),
            ("${NAME}", "${NAME}", true, vec![]),
            ("${NAME:-x}", "${NAME:-x}", true, vec![]),
            ("a${env:NAME}b", "a${NAME}b", true, vec![]),
            ("${userHome}/x", "${HOME}/x", true, vec![]),
            (
                "Bearer ${input:api-key}",
                "Bearer ${API_KEY}",
                true,
                vec![
                    "VS Code asks for `api-key` (The key); set the environment variable `API_KEY` instead",
                ],
            ),
            (
                "${input:other}",
                "${OTHER}",
                true,
                vec!["VS Code asks for `other`; set the environment variable `OTHER` instead"],
            ),
            (
                "${workspaceFolder}/x",
                "${WORKSPACE_FOLDER}/x",
                true,
                vec![
                    "there is no `${workspaceFolder}` outside the editor; set the environment \
                     variable `WORKSPACE_FOLDER`",
                ],
            ),
            ("a$b", "a$b", false, vec![]),
            ("$", "$", false, vec![]),
            ("a$$b", "a$$$b", false, vec![]),
            ("${not one}", "$${not one}", false, vec![]),
            ("${", "$${", false, vec![]),
        ];
        for (written, text, refers, notes) in cases {
            let expected = TranslatedText {
                text: text.to_owned(),
                has_references: refers,
                notes: notes.into_iter().map(str::to_owned).collect(),
            };
            assert_eq!(inputs.translate(written), expected, "{written}");
        }
    }

    #[test]
    fn names_of_variables() {
        let cases = [
            ("api-key", "API_KEY"),
            ("apiKey", "API_KEY"),
            ("API_KEY", "API_KEY"),
            ("x--y z", "X_Y_Z"),
            ("1st", "INPUT_1ST"),
            ("", "INPUT_"),
        ];
        for (text, name) in cases {
            assert_eq!(variable_name(text), name, "{text}");
        }
    }
}
