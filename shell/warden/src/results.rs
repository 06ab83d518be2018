//! What a tool returned, taken in one result at a time and never kept.

use serde_json::Value;
use toolwarden_drift::shape::{Shape, ValueKey};
use toolwarden_drift::toolwatch::ResponsePattern;
use toolwarden_drift::{Change, broken_promise};
use toolwarden_schema::{Rejection, Validator};

/// What is known of the results of one tool.
#[derive(Debug)]
pub struct Results {
    shape: Shape,
    pattern: ResponsePattern,
    promised: Option<Validator>,
    rejected: u64,
    first: Option<Rejection>,
    structured: u64,
}

impl Results {
    /// The toolwatch hash of no results.
    pub const NO_PATTERN: &'static str =
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    /// No results yet, of a tool that may promise a schema for them. A promise that is no schema
    /// binds nobody.
    #[must_use]
    pub fn new(key: &ValueKey, promised: Option<&Value>) -> Self {
        Self {
            shape: Shape::new(key.id()),
            pattern: ResponsePattern::default(),
            promised: promised.and_then(|schema| Validator::new(schema).ok()),
            rejected: 0,
            first: None,
            structured: 0,
        }
    }

    /// Takes in a result.
    pub fn observe(&mut self, result: &Value, key: &ValueKey) {
        self.shape.observe(result, key);
        self.pattern.observe(result);
        let Some(promised) = &self.promised else {
            return;
        };
        let is_error = result.get("isError").and_then(Value::as_bool) == Some(true);
        let structured = match (result.get("structuredContent"), result.get("content")) {
            (Some(structured), _) => Some(structured),
            // Text for people promises nothing.
            (None, Some(Value::Array(_))) => None,
            (None, _) => Some(result),
        };
        let Some(structured) = structured.filter(|_| !is_error) else {
            return;
        };
        self.structured += 1;
        if let Some(rejection) = promised.rejection(structured) {
            self.rejected += 1;
            self.first.get_or_insert(rejection);
        }
    }

    /// Takes in what was seen elsewhere.
    pub fn merge(&mut self, other: &Shape) {
        self.shape.merge(other);
    }

    /// Their shape.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The hash the toolwatch program would have of them.
    #[must_use]
    pub fn pattern_hash(&self) -> String {
        self.pattern.hash()
    }

    /// Results that are not what the tool promises, as changes.
    #[must_use]
    pub fn violations(&self, tool: &str) -> Vec<Change> {
        let first = self.first.as_ref();
        let told = first.map(|rejection| {
            broken_promise(
                tool,
                &rejection.schema_pointer,
                &rejection.value_pointer,
                &rejection.keyword,
                (self.rejected, self.structured),
            )
        });
        told.into_iter().collect()
    }
}
