//! The keys of the settings as a document for people.

use super::keys::ROOT;
use super::table::{Field, Kind, Table};

/// Every key of `toolwarden.yaml` in Markdown, a table for each mapping, from the table that the reader
/// uses.
#[must_use]
pub fn reference() -> String {
    let mut sections: Vec<(String, &'static Table)> = vec![("toolwarden.yaml".to_owned(), &ROOT)];
    let mut out = String::new();
    let mut next = 0;
    while let Some((title, table)) = sections.get(next).cloned() {
        next += 1;
        out.push_str(&format!("### `{title}`\n\n{}\n\n", table.about));
        out.push_str("| key | value | without it | what it is for |\n|---|---|---|---|\n");
        for field in table.fields {
            out.push_str(&row(field));
            for inner in inside(field.kind) {
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

fn row(field: &Field) -> String {
    let without = match (field.required, field.default) {
        (true, _) => "needed".to_owned(),
        (false, Some("{}") | None) => String::new(),
        (false, Some(default)) => format!("`{}`", default.trim_matches('"')),
    };
    let without = without.replace("``", "");
    let spelled = field.others.last().unwrap_or(&field.name);
    let name = if field.name == "mcp_servers" {
        spelled
    } else {
        &field.name
    };
    format!(
        "| `{name}` | {} | {without} | {} |\n",
        value(field.kind),
        field.about
    )
}

/// What a key holds, in words.
fn value(kind: Kind) -> String {
    match kind {
        Kind::Version => "`1`".to_owned(),
        Kind::Text | Kind::Scalar => "text".to_owned(),
        Kind::Secret | Kind::SecretScalar => "secret".to_owned(),
        Kind::Address | Kind::SecretAddress => "address".to_owned(),
        Kind::Truth => "`true` or `false`".to_owned(),
        Kind::Count => "number from 1".to_owned(),
        Kind::Share => "number from 0 to 1".to_owned(),
        Kind::Duration => "duration".to_owned(),
        Kind::Size => "size".to_owned(),
        Kind::Word(words) => {
            let words: Vec<String> = words().iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        Kind::Texts => "texts".to_owned(),
        Kind::List(kind) => format!("list of {}", value(*kind)),
        Kind::Names(kind, _) => format!("by name: {}", value(*kind)),
        Kind::Section(table) => match table.short {
            Some(_) => format!("text or `{}`", table.name),
            None => format!("`{}`", table.name),
        },
        Kind::Either(kinds) => {
            let kinds: Vec<String> = kinds.iter().map(|kind| value(*kind)).collect();
            kinds.join(" or ")
        }
        Kind::Policy => "keys of a policy".to_owned(),
        Kind::Anything => "anything".to_owned(),
    }
}

/// The mappings within what a key holds.
fn inside(kind: Kind) -> Vec<&'static Table> {
    match kind {
        Kind::Section(table) => vec![table],
        Kind::List(kind) | Kind::Names(kind, _) => inside(*kind),
        Kind::Either(kinds) => kinds.iter().flat_map(|kind| inside(*kind)).collect(),
        Kind::Version
        | Kind::Text
        | Kind::Scalar
        | Kind::Secret
        | Kind::SecretScalar
        | Kind::Address
        | Kind::SecretAddress
        | Kind::Truth
        | Kind::Count
        | Kind::Share
        | Kind::Duration
        | Kind::Size
        | Kind::Word(_)
        | Kind::Texts
        | Kind::Policy
        | Kind::Anything => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mapping_has_a_table_with_its_keys() {
        let text = reference();
        let titles: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("### "))
            .collect();
        assert_eq!(
            titles.join(" "),
            "`toolwarden.yaml` `listen` `server` `identity` `watch` `timeouts` `alert` `misuse` `sessions` `traces` \
             `tls` `limits` `restart` `breaker` `server_limits` `api_key` `jwt` `certificate` `admin` `on_drift` `smtp` `roles`"
        );
        let end = "### `sessions`\n\nHow conversations are kept.\n\n\
                   | key | value | without it | what it is for |\n|---|---|---|---|\n\
                   | `idle` | duration | `30m` | How long a conversation without a message is remembered. |\n";
        assert!(text.contains(end), "{text}");
    }
}
