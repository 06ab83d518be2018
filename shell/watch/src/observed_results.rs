//! The results of a tool, processed one at a time and never stored.

use serde_json::Value;
use toolwarden_drift::shape::{Shape, ValueKey};
use toolwarden_drift::toolwatch::ResponsePattern;
use toolwarden_drift::{Change, output_schema_violation};
use toolwarden_schema::{Rejection, Validator};

/// The statistics of the results of one tool.
#[derive(Debug)]
pub struct ObservedResults {
    shape: Shape,
    pattern: ResponsePattern,
    output_validator: Option<Validator>,
    rejected: u64,
    first_rejection: Option<Rejection>,
    structured: u64,
}

impl ObservedResults {
    /// The toolwatch hash of an empty set of results.
    pub const NO_PATTERN: &'static str =
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    /// No results yet, for a tool that may declare an output schema. A declaration that is not a schema is
    /// ignored.
    #[must_use]
    pub fn new(key: &ValueKey, promised: Option<&Value>) -> Self {
        Self {
            shape: Shape::new(key.id()),
            pattern: ResponsePattern::default(),
            output_validator: promised.and_then(|schema| Validator::new(schema).ok()),
            rejected: 0,
            first_rejection: None,
            structured: 0,
        }
    }

    /// Adds a result.
    pub fn observe(&mut self, result: &Value, key: &ValueKey) {
        self.shape.observe(result, key);
        self.pattern.observe(result);
        let Some(promised) = &self.output_validator else {
            return;
        };
        let is_error = result.get("isError").and_then(Value::as_bool) == Some(true);
        let structured = match (result.get("structuredContent"), result.get("content")) {
            (Some(structured), _) => Some(structured),
            // An output schema does not apply to text for people.
            (None, Some(Value::Array(_))) => None,
            (None, _) => Some(result),
        };
        let Some(structured) = structured.filter(|_| !is_error) else {
            return;
        };
        self.structured += 1;
        if let Some(rejection) = promised.rejection(structured) {
            self.rejected += 1;
            self.first_rejection.get_or_insert(rejection);
        }
    }

    /// Adds a shape that was observed elsewhere.
    pub fn merge(&mut self, other: &Shape) {
        self.shape.merge(other);
    }

    /// Their shape.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The hash that the toolwatch program would compute for them.
    #[must_use]
    pub fn pattern_hash(&self) -> String {
        self.pattern.hash()
    }

    /// Results that do not satisfy the output schema, as changes.
    #[must_use]
    pub fn violations(&self, tool: &str) -> Vec<Change> {
        let first = self.first_rejection.as_ref();
        let told = first.map(|rejection| {
            output_schema_violation(
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
