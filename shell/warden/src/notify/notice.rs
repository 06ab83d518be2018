use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use toolwarden_drift::Severity;

/// Something that people are told of.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Names it: the same id is delivered once to the same target.
    pub id: String,
    /// What it is about.
    pub kind: NoticeKind,
    /// The server.
    pub server: String,
    /// The tool, where it is about one.
    pub tool: Option<String>,
    /// How grave it is.
    pub severity: Severity,
    /// What happened, in one line.
    pub title: String,
    /// What happened, in a few lines.
    pub text: String,
    /// When.
    pub at: Timestamp,
    /// Everything about it, for programs.
    pub details: Value,
    /// Where to read on.
    pub link: Option<String>,
}

impl Notice {
    /// The same without secrets of the settings.
    pub(super) fn masked(self) -> Self {
        let details = self.details.to_string();
        let details = match toolwarden_mcp::masked(&details) {
            // A secret stands within a text, so that what is left is JSON still.
            Cow::Owned(text) => serde_json::from_str(&text).unwrap_or_default(),
            Cow::Borrowed(_) => self.details,
        };
        Self {
            title: toolwarden_mcp::masked(&self.title).into_owned(),
            text: toolwarden_mcp::masked(&self.text).into_owned(),
            details,
            ..self
        }
    }
}

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// A definition is not as pinned.
    Drift,
    /// Results do not have the shape they had.
    ResultDrift,
    /// A text holds something suspicious.
    Finding,
    /// A server is gone or back.
    Upstream,
    /// A principal behaves as a rule for misuse describes.
    Misuse,
    /// The audit log is not what it should be.
    Audit,
    /// Somebody tries out whether notices arrive.
    Test,
}

impl NoticeKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Drift,
        Self::ResultDrift,
        Self::Finding,
        Self::Upstream,
        Self::Misuse,
        Self::Audit,
        Self::Test,
    ];

    /// The word it is told by.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Drift => "drift",
            Self::ResultDrift => "result_drift",
            Self::Finding => "finding",
            Self::Upstream => "upstream",
            Self::Misuse => "misuse",
            Self::Audit => "audit",
            Self::Test => "test",
        }
    }
}

impl Notice {
    /// The notice as it is sent to programs and kept.
    pub(super) fn document(&self) -> Map<String, Value> {
        let document = json!({
            "id": self.id,
            "kind": self.kind.as_str(),
            "severity": self.severity.as_str(),
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

    /// A notice that was kept; none if it is none.
    pub(super) fn read(document: &str) -> Option<Self> {
        let document: Value = serde_json::from_str(document).ok()?;
        let text = |key: &str| document.get(key)?.as_str().map(str::to_owned);
        let kind = text("kind")?;
        let severity = text("severity")?;
        let severities = [Severity::Low, Severity::Medium, Severity::High];
        Some(Self {
            id: text("id")?,
            kind: NoticeKind::ALL.into_iter().find(|it| it.as_str() == kind)?,
            server: text("server")?,
            tool: text("tool"),
            severity: severities.into_iter().find(|it| it.as_str() == severity)?,
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
    fn a_notice_is_read_as_it_was_kept() {
        for kind in NoticeKind::ALL {
            let notice = Notice {
                id: "n-1".to_owned(),
                kind,
                server: "browser".to_owned(),
                tool: Some("click\n".to_owned()),
                severity: Severity::Medium,
                title: "drifted".to_owned(),
                text: "a\nb".to_owned(),
                at: "2026-11-16T10:00:00.125Z".parse().unwrap(),
                details: json!({"changes": [1.50, null]}),
                link: None,
            };
            let kept = Value::Object(notice.document()).to_string();
            assert_eq!(Notice::read(&kept), Some(notice));
        }
        assert_eq!(Notice::read("{}"), None);
        assert_eq!(Notice::read("no"), None);
    }
}
