use jiff::Timestamp;
use serde_json::{Value, json};
use toolwarden_model::{Change, Fingerprint, summarize_changes};

use crate::notice::{Notice, NoticeKind};

/// How many changes the text of a notice lists; the details have all of them.
const MAX_LINES: usize = 10;

/// Where changes were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSource {
    /// What was compared: definitions, results or the calls of a model.
    pub kind: NoticeKind,
    /// The server, or the provider and model.
    pub server: String,
    /// The tool, if all changes are about one.
    pub tool: Option<String>,
    /// The time.
    pub at: Timestamp,
}

impl Notice {
    /// A notice of changes, whatever comparison found them; `None` if there are none.
    ///
    /// Its id depends on the source and on the ids of the changes, so the same drift found again is
    /// delivered once.
    #[must_use]
    pub fn of_changes<E>(source: ChangeSource, changes: &[Change<E>]) -> Option<Self> {
        let severity = changes.iter().map(Change::severity).max()?;
        let ChangeSource {
            kind,
            server,
            tool,
            at,
        } = source;
        let subject = match &tool {
            Some(tool) => format!("{tool} of {server}"),
            None => server.clone(),
        };
        Some(Self {
            id: notice_id(kind, &server, tool.as_deref(), changes),
            kind,
            severity,
            title: match kind {
                NoticeKind::ProbeDrift => format!("{subject} calls tools differently"),
                NoticeKind::ResultDrift => format!("results of {subject} drifted"),
                _ => format!("{subject} drifted"),
            },
            text: lines(changes),
            at,
            details: json!({
                "summary": summarize_changes(changes),
                "changes": changes.iter().map(change_document).collect::<Vec<_>>(),
            }),
            link: None,
            server,
            tool,
        })
    }
}

fn notice_id<E>(
    kind: NoticeKind,
    server: &str,
    tool: Option<&str>,
    changes: &[Change<E>],
) -> String {
    let mut ids: Vec<String> = changes.iter().map(|it| it.id.to_string()).collect();
    ids.sort_unstable();
    let source = [kind.as_str(), server, tool.unwrap_or_default()];
    let parts = source.into_iter().chain(ids.iter().map(String::as_str));
    let digest = Fingerprint::tagged("toolwarden/notice/v1", parts).to_string();
    digest.chars().take(12).collect()
}

/// One line per change, the most severe first.
fn lines<E>(changes: &[Change<E>]) -> String {
    let mut sorted: Vec<&Change<E>> = changes.iter().collect();
    sorted.sort_by_key(|it| std::cmp::Reverse(it.severity()));
    let mut lines: Vec<String> = sorted.iter().take(MAX_LINES).map(|it| line(it)).collect();
    let more = changes.len().saturating_sub(MAX_LINES);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

fn line<E>(change: &Change<E>) -> String {
    let tool = change.tool.as_deref().map(|it| format!("{it} "));
    let word = change.severity().as_str();
    format!(
        "{word}: {}{}: {}",
        tool.unwrap_or_default(),
        change.rule,
        change.message
    )
}

fn change_document<E>(change: &Change<E>) -> Value {
    json!({
        "id": change.id.to_string(),
        "tool": change.tool,
        "rule": change.rule,
        "pointer": change.pointer.as_str(),
        "kind": change.kind.as_str(),
        "class": change.class.as_str(),
        "severity": change.severity().as_str(),
        "before": change.before,
        "after": change.after,
        "message": change.message,
    })
}

#[cfg(test)]
mod tests {
    use toolwarden_model::json::Pointer;
    use toolwarden_model::{ChangeClass, ChangeId, ChangeKind};

    use super::*;

    fn change(class: ChangeClass, rule: &'static str, after: &str) -> Change<()> {
        let pointer = Pointer::from("/city");
        Change {
            id: ChangeId::of("get_weather", rule, &pointer, None, None),
            tool: Some("get_weather".to_owned()),
            rule,
            pointer,
            kind: ChangeKind::Added,
            class,
            before: Some(json!("0 of 20")),
            after: Some(json!(after)),
            message: format!("seen in {after}"),
            evidence: (),
        }
    }

    fn source() -> ChangeSource {
        ChangeSource {
            kind: NoticeKind::ProbeDrift,
            server: "deepseek/deepseek-chat".to_owned(),
            tool: None,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn changes_of_a_probe_become_a_notice() {
        let changes = [
            change(ChangeClass::Behavioural, "id_class", "20 of 20"),
            change(ChangeClass::Breaking, "wrong_type", "3 of 20"),
        ];
        let notice = Notice::of_changes(source(), &changes).unwrap();
        let whole = Value::Object(notice.document());
        let row = |at: usize, class: &str, severity: &str| {
            json!({
                "id": changes[at].id.to_string(), "tool": "get_weather", "rule": changes[at].rule,
                "pointer": "/city", "kind": "added", "class": class, "severity": severity,
                "before": "0 of 20", "after": changes[at].after, "message": changes[at].message,
            })
        };
        assert_eq!(
            whole,
            json!({
                "id": notice.id, "kind": "probe_drift", "severity": "high",
                "server": "deepseek/deepseek-chat", "tool": null,
                "title": "deepseek/deepseek-chat calls tools differently",
                "text": "breaking: get_weather wrong_type: seen in 3 of 20\n\
                         warning: get_weather id_class: seen in 20 of 20",
                "at": "1970-01-01T00:00:00.000Z", "link": null,
                "details": {
                    "summary": "seen in 20 of 20 and 1 more",
                    "changes": [row(0, "behavioural", "warning"), row(1, "breaking", "breaking")],
                },
            })
        );
        assert_eq!(Notice::of_changes::<()>(source(), &[]), None);
    }

    #[test]
    fn the_id_depends_on_what_changed_and_not_on_counts() {
        let id = |source: ChangeSource, changes: &[Change<()>]| {
            Notice::of_changes(source, changes).unwrap().id
        };
        let leak = |after: &str| change(ChangeClass::Breaking, "leak", after);
        let first = id(source(), &[leak("1 of 20")]);
        assert_eq!(first, id(source(), &[leak("7 of 20")]));
        let other = ChangeSource {
            server: "moonshot/kimi".to_owned(),
            ..source()
        };
        assert_ne!(first, id(other, &[leak("1 of 20")]));
        let more = change(ChangeClass::Breaking, "wrong_type", "1 of 20");
        assert_ne!(first, id(source(), &[leak("1 of 20"), more]));
    }
}
