//! The reference of all settings keys as a document.

use super::key_table::{KeyTable, SettingsField, ValueKind};
use super::keys::ROOT;

/// Every key of `toolwarden.yaml` in Markdown, with one table for each mapping, from the table that the
/// reader uses.
#[must_use]
pub fn markdown_reference() -> String {
    let mut sections: Vec<(String, &'static KeyTable)> =
        vec![("toolwarden.yaml".to_owned(), &ROOT)];
    let mut out = String::new();
    let mut next = 0;
    while let Some((title, table)) = sections.get(next).cloned() {
        next += 1;
        out.push_str(&format!("### `{title}`\n\n{}\n\n", table.about));
        out.push_str("| key | value | default | description |\n|---|---|---|---|\n");
        for field in table.fields {
            out.push_str(&row(field));
            for inner in nested_tables(field.kind) {
                let known = sections.iter().any(|(_, it)| it.name == inner.name);
                if !known && inner.ignored.is_empty() {
                    sections.push((inner.name.to_owned(), inner));
                }
            }
        }
        out.push('\n');
    }
    out
}

fn row(field: &SettingsField) -> String {
    let without = match (field.required, field.default) {
        (true, _) => "required".to_owned(),
        (false, Some("{}") | None) => String::new(),
        (false, Some(default)) => format!("`{}`", default.trim_matches('"')),
    };
    let without = without.replace("``", "");
    let spelled = field.aliases.last().unwrap_or(&field.name);
    let name = if field.name == "mcp_servers" {
        spelled
    } else {
        &field.name
    };
    format!(
        "| `{name}` | {} | {without} | {} |\n",
        describe_value(field.kind),
        field.about
    )
}

/// The value of a key, in words.
fn describe_value(kind: ValueKind) -> String {
    match kind {
        ValueKind::Version => "`1`".to_owned(),
        ValueKind::Text | ValueKind::Scalar => "text".to_owned(),
        ValueKind::Secret | ValueKind::SecretScalar => "secret".to_owned(),
        ValueKind::Address | ValueKind::SecretAddress => "address".to_owned(),
        ValueKind::Boolean => "`true` or `false`".to_owned(),
        ValueKind::Count => "number from 1".to_owned(),
        ValueKind::Fraction => "number from 0 to 1".to_owned(),
        ValueKind::Duration => "duration".to_owned(),
        ValueKind::Size => "size".to_owned(),
        ValueKind::OneOf(words) => {
            let words: Vec<String> = words().iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        ValueKind::TextList => "texts".to_owned(),
        ValueKind::List(kind) => format!("list of {}", describe_value(*kind)),
        ValueKind::Map(kind, _) => format!("by name: {}", describe_value(*kind)),
        ValueKind::Section(table) => match table.shorthand {
            Some(_) => format!("text or `{}`", table.name),
            None => format!("`{}`", table.name),
        },
        ValueKind::Either(kinds) => {
            let kinds: Vec<String> = kinds.iter().map(|kind| describe_value(*kind)).collect();
            kinds.join(" or ")
        }
        ValueKind::Policy => "keys of a policy".to_owned(),
        ValueKind::Object => "any mapping".to_owned(),
        ValueKind::Any => "anything".to_owned(),
    }
}

/// The mappings inside the value of a key.
fn nested_tables(kind: ValueKind) -> Vec<&'static KeyTable> {
    match kind {
        ValueKind::Section(table) => vec![table],
        ValueKind::List(kind) | ValueKind::Map(kind, _) => nested_tables(*kind),
        ValueKind::Either(kinds) => kinds.iter().flat_map(|kind| nested_tables(*kind)).collect(),
        ValueKind::Version
        | ValueKind::Text
        | ValueKind::Scalar
        | ValueKind::Secret
        | ValueKind::SecretScalar
        | ValueKind::Address
        | ValueKind::SecretAddress
        | ValueKind::Boolean
        | ValueKind::Count
        | ValueKind::Fraction
        | ValueKind::Duration
        | ValueKind::Size
        | ValueKind::OneOf(_)
        | ValueKind::TextList
        | ValueKind::Policy
        | ValueKind::Object
        | ValueKind::Any => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mapping_has_a_table_with_its_keys() {
        let text = markdown_reference();
        let titles: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("### "))
            .collect();
        assert_eq!(
            titles.join(" "),
            "`toolwarden.yaml` `listen` `server` `identity` `watch` `timeouts` `alert` `misuse` `sessions` `traces` \
             `tls` `limits` `call` `restart` `breaker` `server_limits` `api_key` `jwt` `certificate` `admin` `on_drift` `smtp` `roles`"
        );
        let end = "### `sessions`\n\nLifetime and limits of conversations.\n\n\
                   | key | value | default | description |\n|---|---|---|---|\n\
                   | `idle` | duration | `30m` | How long an idle conversation is kept. |\n";
        assert!(text.contains(end), "{text}");
    }
}
