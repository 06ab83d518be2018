use thiserror::Error;

use crate::definition::Definition;
use crate::did_you_mean::did_you_mean;
use crate::format::{Format, FormatFamily};
use crate::hints::{CostEstimate, Domain, Evidence, Hints, HintsEvidence};
use crate::json::{Object, Pointer, Value, type_name};
use crate::security::{DataClassification, PiiHandling, Security};
use crate::tool::{AbsentParts, Extensions, KeyOrder, Tool};

/// Why a document is not a tool in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{pointer}: {problem}")]
pub struct InvalidTool {
    /// The location in the document.
    pub pointer: Pointer,
    /// The problem.
    pub problem: ToolProblem,
}

/// A problem at one location of a document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ToolProblem {
    /// A value has another type than the field.
    #[error("is {found}, expected {expected}")]
    WrongType {
        /// The type the field has.
        expected: &'static str,
        /// The type the value has.
        found: &'static str,
    },
    /// The form has no such field.
    #[error("unknown field{suggestion}")]
    UnknownField {
        /// The nearest field, as a phrase.
        suggestion: String,
    },
    /// A word is not in a closed vocabulary.
    #[error("unknown word `{word}`{suggestion} (known: {known})")]
    UnknownWord {
        /// The word found.
        word: String,
        /// The nearest word, as a phrase.
        suggestion: String,
        /// The vocabulary.
        known: String,
    },
    /// A required field is missing.
    #[error("is missing")]
    Missing,
}

const TOOL_FIELDS: &[&str] = &[
    "name",
    "version",
    "description",
    "capabilities",
    "inputs",
    "outputs",
    "security",
    "title",
    "annotations",
    "strict",
    "examples",
    "dialect",
    "capability_sources",
    "absent",
    "extensions",
    "source_format",
    "format",
    "layout",
    "original_definition",
];
const HINT_FIELDS: &[&str] = &[
    "action",
    "domain",
    "side_effects",
    "idempotent",
    "cost_estimate",
];
const SECURITY_FIELDS: &[&str] = &[
    "required_permissions",
    "data_classification",
    "pii_handling",
];

impl Tool {
    /// The fields of the canonical document.
    pub const DOCUMENT_FIELDS: &'static [&'static str] = TOOL_FIELDS;

    /// Reads a tool from its canonical document.
    ///
    /// # Errors
    /// Names the first location that does not match the form.
    pub fn from_document(document: Value) -> Result<Self, InvalidTool> {
        let mut fields = Fields::open(document, Pointer::root(), TOOL_FIELDS)?;
        let mut tool = Self::new(read_format(&mut fields)?);
        tool.name = fields.text("name")?.ok_or_else(|| fields.missing("name"))?;
        if let Some(version) = fields.text("version")? {
            tool.version = version.into();
        }
        tool.description = fields.text("description")?.unwrap_or_default();
        tool.inputs = fields.object("inputs")?.unwrap_or_default();
        tool.outputs = fields.object("outputs")?.unwrap_or_default();
        tool.title = fields.text("title")?;
        tool.annotations = fields.object("annotations")?;
        tool.strict = fields.flag("strict")?;
        tool.examples = fields.array("examples")?.unwrap_or_default();
        if let Some(value) = fields.take("capabilities") {
            tool.hints = Hints::from_value(value, fields.at("capabilities"))?;
            tool.evidence = HintsEvidence::all(Evidence::Explicit);
        }
        if let Some(value) = fields.take("capability_sources") {
            tool.evidence = read_evidence(value, fields.at("capability_sources"))?;
        }
        if let Some(value) = fields.take("security") {
            tool.security = Some(Security::from_value(value, fields.at("security"))?);
        }
        tool.absent = read_absent(&mut fields)?;
        // A value written in the document overrides its absence mark.
        tool.absent.description &= tool.description.is_empty();
        tool.absent.inputs &= tool.inputs.is_empty();
        tool.extensions = read_extensions(&mut fields)?;
        tool.layout = read_layout(&mut fields)?;
        tool.definition = fields
            .take("original_definition")
            .filter(|value| value.as_object().is_none_or(|object| !object.is_empty()))
            .map(|value| Definition::from(&value));
        Ok(tool)
    }
}

impl Hints {
    /// Reads hints, as in `capabilities` and `x-capabilities`.
    ///
    /// # Errors
    /// Names the first unknown field or word, or wrong type.
    pub fn from_value(value: Value, at: Pointer) -> Result<Self, InvalidTool> {
        let mut fields = Fields::open(value, at, HINT_FIELDS)?;
        let action = fields.text("action")?.unwrap_or_default().into();
        let mut hints = Self {
            action,
            ..Self::default()
        };
        if let Some(domain) = fields.word("domain", Domain::from_word, Domain::WORDS)? {
            hints.domain = domain;
        }
        if let Some(side_effects) = fields.flag("side_effects")? {
            hints.side_effects = side_effects;
        }
        if let Some(idempotent) = fields.flag("idempotent")? {
            hints.idempotent = idempotent;
        }
        if let Some(cost) = fields.word(
            "cost_estimate",
            CostEstimate::from_word,
            CostEstimate::WORDS,
        )? {
            hints.cost_estimate = cost;
        }
        Ok(hints)
    }
}

impl Security {
    /// Reads security metadata, as in `security` and `x-security`.
    ///
    /// # Errors
    /// Names the first unknown field or word, or wrong type.
    pub fn from_value(value: Value, at: Pointer) -> Result<Self, InvalidTool> {
        let mut fields = Fields::open(value, at, SECURITY_FIELDS)?;
        let required_permissions = fields.words("required_permissions")?.unwrap_or_default();
        let mut security = Self {
            required_permissions,
            ..Self::default()
        };
        let words = DataClassification::WORDS;
        if let Some(word) =
            fields.word("data_classification", DataClassification::from_word, words)?
        {
            security.data_classification = word;
        }
        if let Some(word) =
            fields.word("pii_handling", PiiHandling::from_word, PiiHandling::WORDS)?
        {
            security.pii_handling = word;
        }
        Ok(security)
    }
}

fn read_format(fields: &mut Fields) -> Result<Format, InvalidTool> {
    let ids: Vec<&str> = Format::ALL.iter().map(|format| format.id()).collect();
    let families: Vec<&str> = Format::ALL
        .iter()
        .map(|format| format.family().as_str())
        .collect();
    let family = fields.word(
        "source_format",
        |word| word.parse::<FormatFamily>().ok(),
        &families,
    )?;
    let format = fields.word("format", |word| word.parse::<Format>().ok(), &ids)?;
    Ok(format
        .or_else(|| family.map(FormatFamily::default_format))
        .unwrap_or(Format::Raw))
}

fn read_evidence(value: Value, at: Pointer) -> Result<HintsEvidence, InvalidTool> {
    let mut fields = Fields::open(value, at, HINT_FIELDS)?;
    let mut word = |key| -> Result<Evidence, InvalidTool> {
        let word = fields.word(key, Evidence::from_word, Evidence::WORDS)?;
        Ok(word.unwrap_or(Evidence::Default))
    };
    Ok(HintsEvidence {
        action: word("action")?,
        domain: word("domain")?,
        side_effects: word("side_effects")?,
        idempotent: word("idempotent")?,
        cost_estimate: word("cost_estimate")?,
    })
}

fn read_absent(fields: &mut Fields) -> Result<AbsentParts, InvalidTool> {
    const WORDS: &[&str] = &["name", "description", "inputs"];
    let mut absent = AbsentParts::default();
    for (index, word) in fields
        .words("absent")?
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        match word.as_str() {
            "name" => absent.name = true,
            "description" => absent.description = true,
            "inputs" => absent.inputs = true,
            _ => return Err(unknown_word(fields.at("absent").index(index), word, WORDS)),
        }
    }
    Ok(absent)
}

fn read_extensions(fields: &mut Fields) -> Result<Extensions, InvalidTool> {
    let at = fields.at("extensions");
    let mut extensions = Extensions::new();
    for (key, value) in fields.object("extensions")?.unwrap_or_default() {
        let ids: Vec<&str> = Format::ALL.iter().map(|format| format.id()).collect();
        let format = key
            .parse()
            .map_err(|_| unknown_word(at.child(&key), &key, &ids))?;
        extensions.insert(format, expect_object(value, at.child(&key))?);
    }
    Ok(extensions)
}

fn read_layout(fields: &mut Fields) -> Result<KeyOrder, InvalidTool> {
    let mut layout = Fields {
        at: fields.at("layout"),
        members: fields.object("layout")?.unwrap_or_default(),
    };
    let pointers: Vec<String> = layout.members.keys().cloned().collect();
    pointers
        .into_iter()
        .map(|pointer| Ok((pointer.clone(), layout.words(&pointer)?.unwrap_or_default())))
        .collect()
}

/// The members of one object of the document, removed as they are read.
struct Fields {
    at: Pointer,
    members: Object,
}

impl Fields {
    fn open(value: Value, at: Pointer, known: &[&str]) -> Result<Self, InvalidTool> {
        let members = expect_object(value, at.clone())?;
        if let Some(key) = members.keys().find(|key| !known.contains(&key.as_str())) {
            let suggestion = did_you_mean(key, known.iter().copied());
            return Err(InvalidTool {
                pointer: at.child(key),
                problem: ToolProblem::UnknownField { suggestion },
            });
        }
        Ok(Self { at, members })
    }

    fn at(&self, key: &str) -> Pointer {
        self.at.child(key)
    }

    fn missing(&self, key: &str) -> InvalidTool {
        InvalidTool {
            pointer: self.at(key),
            problem: ToolProblem::Missing,
        }
    }

    /// Removes a member; `null` counts as absent.
    fn take(&mut self, key: &str) -> Option<Value> {
        self.members
            .get_mut(key)
            .map(Value::take)
            .filter(|value| !value.is_null())
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, InvalidTool> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(self.at(key), "a string", &other)),
        }
    }

    fn flag(&mut self, key: &str) -> Result<Option<bool>, InvalidTool> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(wrong_type(self.at(key), "a boolean", &other)),
        }
    }

    fn object(&mut self, key: &str) -> Result<Option<Object>, InvalidTool> {
        self.take(key)
            .map(|value| expect_object(value, self.at(key)))
            .transpose()
    }

    fn array(&mut self, key: &str) -> Result<Option<Vec<Value>>, InvalidTool> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(wrong_type(self.at(key), "an array", &other)),
        }
    }

    fn words(&mut self, key: &str) -> Result<Option<Vec<String>>, InvalidTool> {
        let Some(items) = self.array(key)? else {
            return Ok(None);
        };
        let words = items.into_iter().enumerate().map(|(index, item)| {
            let Value::String(word) = item else {
                return Err(wrong_type(self.at(key).index(index), "a string", &item));
            };
            Ok(word)
        });
        words.collect::<Result<_, _>>().map(Some)
    }

    fn word<T>(
        &mut self,
        key: &str,
        from_word: impl Fn(&str) -> Option<T>,
        known: &[&str],
    ) -> Result<Option<T>, InvalidTool> {
        let Some(word) = self.text(key)? else {
            return Ok(None);
        };
        match from_word(&word) {
            Some(value) => Ok(Some(value)),
            None => Err(unknown_word(self.at(key), &word, known)),
        }
    }
}

fn expect_object(value: Value, at: Pointer) -> Result<Object, InvalidTool> {
    let Value::Object(object) = value else {
        return Err(wrong_type(at, "an object", &value));
    };
    Ok(object)
}

fn wrong_type(pointer: Pointer, expected: &'static str, found: &Value) -> InvalidTool {
    InvalidTool {
        pointer,
        problem: ToolProblem::WrongType {
            expected,
            found: type_name(found),
        },
    }
}

fn unknown_word(pointer: Pointer, word: &str, known: &[&str]) -> InvalidTool {
    let suggestion = did_you_mean(word, known.iter().copied());
    let mut words: Vec<&str> = known
        .iter()
        .copied()
        .filter(|word| !word.is_empty())
        .collect();
    words.dedup();
    let problem = ToolProblem::UnknownWord {
        word: word.to_owned(),
        suggestion,
        known: words.join(", "),
    };
    InvalidTool { pointer, problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    fn read(text: &str) -> Result<Tool, InvalidTool> {
        Tool::from_document(parse(text).unwrap().value)
    }

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn the_documented_defaults_hold() {
        let tool = read(r#"{"name":"t"}"#).unwrap();
        let written = serde_json::to_string(&tool).unwrap();
        assert_eq!(
            written,
            concat!(
                r#"{"name":"t","version":"1.0.0","description":"","capabilities":{"action":"","domain":"","#,
                r#""side_effects":false,"idempotent":true,"cost_estimate":"unknown"},"inputs":{},"outputs":{},"#,
                r#""security":null,"capability_sources":{"action":"default","domain":"default","#,
                r#""side_effects":"default","idempotent":"default","cost_estimate":"default"},"#,
                r#""source_format":"raw","format":"raw","original_definition":{}}"#
            )
        );
    }

    #[test]
    fn a_full_document_reads_back_the_same() {
        let text = concat!(
            r#"{"name":"t","version":"2","description":"d","capabilities":{"action":"delete","domain":"database","#,
            r#""side_effects":true,"idempotent":false,"cost_estimate":"low"},"inputs":{"$schema":"x","maximum":1.0},"#,
            r#""outputs":{"type":"object"},"security":{"required_permissions":["db:write"],"#,
            r#""data_classification":"confidential","pii_handling":"processes"},"title":"T","annotations":{"a":1},"#,
            r#""strict":true,"examples":[{"a":1}],"dialect":"x","capability_sources":{"action":"explicit","#,
            r#""domain":"annotation","side_effects":"inferred","idempotent":"default","cost_estimate":"explicit"},"#,
            r#""absent":["name"],"extensions":{"mcp":{"_meta":{"k":1e5}}},"source_format":"mcp","format":"mcp","#,
            r#""layout":{"":["b","a"]},"original_definition":{"z":1}}"#
        );
        assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let cases = [
            ("[]", "/: is an array, expected an object"),
            ("{}", "/name: is missing"),
            (r#"{"name":1}"#, "/name: is a number, expected a string"),
            (
                r#"{"name":"t","inputz":{}}"#,
                "/inputz: unknown field, did you mean `inputs`?",
            ),
            (
                r#"{"name":"t","capabilities":{"cost_estimate":"hihg"}}"#,
                "/capabilities/cost_estimate: unknown word `hihg`, did you mean `high`? (known: free, low, medium, high, unknown)",
            ),
            (
                r#"{"name":"t","security":{"data_classification":"secret"}}"#,
                "/security/data_classification: unknown word `secret` (known: public, internal, confidential, restricted)",
            ),
            (
                r#"{"name":"t","security":{"pii_handling":"sells"}}"#,
                "/security/pii_handling: unknown word `sells` (known: none, processes, stores, anonymizes)",
            ),
            (
                r#"{"name":"t","security":{"required_permissions":["a",2]}}"#,
                "/security/required_permissions/1: is a number, expected a string",
            ),
            (
                r#"{"name":"t","capabilities":{"domain":"sea"}}"#,
                "/capabilities/domain: unknown word `sea` (known: filesystem, web, database, code, email, general)",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(error(text), expected, "{text}");
        }
    }

    #[test]
    fn a_document_of_the_original_program_reads() {
        let tool = read(
            r#"{"name":"s","version":"1.0.0","description":"d","capabilities":{"action":"search","domain":"web",
            "side_effects":false,"idempotent":true,"cost_estimate":"unknown"},"inputs":{},"outputs":{},
            "security":null,"source_format":"openai","original_definition":{"a":1}}"#,
        )
        .unwrap();
        assert_eq!(tool.format, Format::OpenaiChat);
        assert_eq!(tool.evidence, HintsEvidence::all(Evidence::Explicit));
    }
}
