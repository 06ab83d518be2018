use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use toolwarden_drift::ToolwatchSeverity;
use toolwarden_model::Severity;

/// A notice for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Its id: a notice with the same id is delivered only once to the same target.
    pub id: String,
    /// Its kind.
    pub kind: NoticeKind,
    /// The server.
    pub server: String,
    /// The tool, if it is about one.
    pub tool: Option<String>,
    /// Its severity.
    pub severity: Severity,
    /// What happened, in one line.
    pub title: String,
    /// What happened, in a few lines.
    pub text: String,
    /// The time.
    pub at: Timestamp,
    /// All details, for programs.
    pub details: Value,
    /// A link to more information.
    pub link: Option<String>,
}

impl Notice {
    /// The same notice without secrets from the settings.
    pub(super) fn redacted(self) -> Self {
        let details = self.details.to_string();
        let details = match toolwarden_secrets::mask_secrets(&details) {
            // Secrets occur only inside strings, so the masked text is still JSON.
            Cow::Owned(text) => serde_json::from_str(&text).unwrap_or_default(),
            Cow::Borrowed(_) => self.details,
        };
        Self {
            title: toolwarden_secrets::mask_secrets(&self.title).into_owned(),
            text: toolwarden_secrets::mask_secrets(&self.text).into_owned(),
            details,
            ..self
        }
    }
}

/// The kind of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// A definition does not match its pin.
    Drift,
    /// Results no longer have their pinned shape.
    ResultDrift,
    /// A model calls tools differently than before.
    ProbeDrift,
    /// A text contains something suspicious.
    Finding,
    /// A server went down or came back.
    Upstream,
    /// A principal matches a misuse rule.
    Misuse,
    /// The audit log has a fault.
    Audit,
    /// A test of whether notices arrive.
    Test,
}

impl NoticeKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Drift,
        Self::ResultDrift,
        Self::ProbeDrift,
        Self::Finding,
        Self::Upstream,
        Self::Misuse,
        Self::Audit,
        Self::Test,
    ];

    /// The word for the kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Drift => "drift",
            Self::ResultDrift => "result_drift",
            Self::ProbeDrift => "probe_drift",
            Self::Finding => "finding",
            Self::Upstream => "upstream",
            Self::Misuse => "misuse",
            Self::Audit => "audit",
            Self::Test => "test",
        }
    }
}

impl Notice {
    /// The notice as it is sent to programs and stored.
    pub(super) fn document(&self) -> Map<String, Value> {
        let document = json!({
            "id": self.id,
            "kind": self.kind.as_str(),
            "severity": ToolwatchSeverity::from(self.severity).as_str(),
            "server": self.server,
            "tool": self.tool,
            "title": self.title,
            "text": self.text,
            "at": format!("{:.3}", self.at),
            "link": self.link,
            "details": self.details,
        });
        match document {
            Value::Object(document) => document,
            _ => Map::new(),
        }
    }

    /// A stored notice; `None` if it is invalid.
    pub(super) fn parse(document: &str) -> Option<Self> {
        let document: Value = serde_json::from_str(document).ok()?;
        let text = |key: &str| document.get(key)?.as_str().map(str::to_owned);
        let kind = text("kind")?;
        let severity = text("severity")?;
        Some(Self {
            id: text("id")?,
            kind: NoticeKind::ALL.into_iter().find(|it| it.as_str() == kind)?,
            server: text("server")?,
            tool: text("tool"),
            severity: ToolwatchSeverity::ALL
                .into_iter()
                .find(|it| it.as_str() == severity)?
                .severity(),
            title: text("title")?,
            text: text("text")?,
            at: text("at")?.parse().ok()?,
            details: document.get("details")?.clone(),
            link: text("link"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_notice_reads_back() {
        for kind in NoticeKind::ALL {
            let notice = Notice {
                id: "n-1".to_owned(),
                kind,
                server: "browser".to_owned(),
                tool: Some("click\n".to_owned()),
                severity: Severity::Warning,
                title: "drifted".to_owned(),
                text: "a\nb".to_owned(),
                at: "2026-11-16T10:00:00.125Z".parse().unwrap(),
                details: json!({"changes": [1.50, null]}),
                link: None,
            };
            let kept = Value::Object(notice.document()).to_string();
            assert_eq!(Notice::parse(&kept), Some(notice));
        }
        assert_eq!(Notice::parse("{}"), None);
        assert_eq!(Notice::parse("no"), None);
    }
}
