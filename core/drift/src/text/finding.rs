use std::collections::BTreeMap;
use std::fmt;

use toolwarden_model::json::Pointer;

/// What a detector looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Detector {
    /// Characters that people cannot see and a model reads.
    HiddenUnicode,
    /// Characters that show text in a different order than it is read.
    BidiControl,
    /// Control characters that a terminal obeys.
    TerminalEscape,
    /// A name written with letters that imitate others.
    ConfusableName,
    /// A name that equals or imitates the name of another tool.
    CollidingName,
    /// Text that names a tool of another server.
    CrossServerReference,
    /// Text that instructs the model.
    Injection,
    /// Annotations that contradict the name or the arguments.
    AnnotationContradiction,
    /// A change of text that brings in an address, an instruction, the name of another tool, a secret or
    /// a path, or that lifts a restriction. Only comparisons find it.
    Introduced,
}

impl Detector {
    /// Every detector.
    pub const ALL: [Self; 9] = [
        Self::HiddenUnicode,
        Self::BidiControl,
        Self::TerminalEscape,
        Self::ConfusableName,
        Self::CollidingName,
        Self::CrossServerReference,
        Self::Injection,
        Self::AnnotationContradiction,
        Self::Introduced,
    ];

    /// The stable id.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HiddenUnicode => "hidden-unicode",
            Self::BidiControl => "bidi-control",
            Self::TerminalEscape => "terminal-escape",
            Self::ConfusableName => "confusable-name",
            Self::CollidingName => "colliding-name",
            Self::CrossServerReference => "cross-server-reference",
            Self::Injection => "injection",
            Self::AnnotationContradiction => "annotation-contradiction",
            Self::Introduced => "introduced",
        }
    }
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much a finding means on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// Only a reason on a change: honest tools look like this too.
    Low,
    /// Rare in honest tools.
    Medium,
    /// Nothing legitimate looks like this.
    High,
}

impl Weight {
    /// The stable id.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing found in the text of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFinding {
    /// What was looked for.
    pub detector: Detector,
    /// How much it means on its own.
    pub weight: Weight,
    /// The string it was found in; for a property name, the member it names.
    ///
    /// It holds names as written, so code that prints it must escape it.
    pub pointer: Pointer,
    /// One sentence, free of characters that do not print.
    pub message: String,
    /// The decoded hidden text, free of characters that do not print.
    pub decoded: Option<String>,
}

/// Whether a finding matters on its own.
pub(crate) fn is_suspicious(finding: &TextFinding) -> bool {
    finding.weight >= Weight::Medium
}

/// The findings in `new` that `old` did not have.
///
/// A finding is known if `old` has an equal one at the same place. Text that moved is new: a harmless
/// phrase in a comment may be harmful in a description. Each finding of `old` excuses one of `new`, so
/// a second occurrence is new too.
#[must_use]
pub fn new_findings<'a>(old: &[TextFinding], new: &'a [TextFinding]) -> Vec<&'a TextFinding> {
    let mut known: BTreeMap<(Content<'_>, &Pointer), usize> = BTreeMap::new();
    for finding in old {
        *known
            .entry((content(finding), &finding.pointer))
            .or_default() += 1;
    }
    let mut fresh = Vec::new();
    for finding in new {
        if !take(known.get_mut(&(content(finding), &finding.pointer))) {
            fresh.push(finding);
        }
    }
    fresh
}

/// Decrements the count, if it is positive.
fn take(count: Option<&mut usize>) -> bool {
    match count {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    }
}

type Content<'a> = (Detector, Weight, &'a str, Option<&'a str>);

fn content(finding: &TextFinding) -> Content<'_> {
    (
        finding.detector,
        finding.weight,
        &finding.message,
        finding.decoded.as_deref(),
    )
}
