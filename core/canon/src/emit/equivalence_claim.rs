use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::keywords::{SubschemaForm, subschema_form};
use toolwarden_model::{Format, Tool};

use crate::edit::{Edit, EditKind, LossKind};
use crate::formats;

/// The schemas of a tool before something rewrote it.
///
/// A rewrite reports edits. An edit that is not a semantic loss claims that the same calls stay valid.
/// A program that can compare schemas checks the claim; this crate cannot.
#[derive(Clone, Debug)]
pub struct OriginalSchemas {
    inputs: Option<Object>,
    outputs: Option<Object>,
}

/// The claim of a rewrite that two schemas accept the same values.
#[derive(Clone, Debug, PartialEq)]
pub struct EquivalenceClaim {
    /// Which schema of the tool.
    pub slot: SchemaSlot,
    /// The schema before a run of edits without semantic loss.
    pub before: Value,
    /// The schema after it.
    pub after: Value,
    /// The only subschemas that differ, before and after, if they are self-contained. If they accept the
    /// same values, so do the whole schemas.
    pub inner: Option<(Value, Value)>,
}

/// A schema of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaSlot {
    /// The arguments of a call.
    Inputs,
    /// Its result.
    Outputs,
}

/// The recorded edits do not lead from the original schema to the emitted one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditMismatch {
    /// An edit does not match the schema at its path.
    #[error("the edit of {path} does not match the schema at that path")]
    Edit {
        /// The path of the edit.
        path: Pointer,
    },
    /// The emitted definition cannot be read back.
    #[error("the emitted value is not a definition in {format}")]
    Unreadable {
        /// The format.
        format: Format,
    },
}

impl SchemaSlot {
    const fn key(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::Outputs => "outputs",
        }
    }
}

impl OriginalSchemas {
    /// Saves the schemas of a tool before it is rewritten.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        Self {
            inputs: (!tool.absent.inputs).then(|| tool.inputs.clone()),
            outputs: (!tool.outputs.is_empty()).then(|| tool.outputs.clone()),
        }
    }

    /// Passes each claim of the edits to `judge`, given the emitted definition. An unchanged schema makes
    /// no claim.
    ///
    /// # Errors
    /// The edits do not produce the emitted definition, or `judge` refuses a claim.
    pub fn check<E: From<EditMismatch>>(
        self,
        edits: &[Edit],
        written: &Value,
        format: Format,
        mut judge: impl FnMut(EquivalenceClaim) -> Result<(), E>,
    ) -> Result<(), E> {
        let again = read_emitted(written, format).ok_or(EditMismatch::Unreadable { format })?;
        let inputs = (!again.absent.inputs).then_some(again.inputs);
        let outputs = (!again.outputs.is_empty()).then_some(again.outputs);
        let slots = [
            (SchemaSlot::Inputs, self.inputs, inputs),
            (SchemaSlot::Outputs, self.outputs, outputs),
        ];
        for (slot, before, after) in slots {
            let trail = EditReplay::new(slot, before.map(Value::Object));
            trail.follow(edits, after.map(Value::Object), &mut judge)?;
        }
        Ok(())
    }
}

/// One schema while its edits are replayed.
struct EditReplay {
    slot: SchemaSlot,
    /// The contract, reduced to the one schema.
    document: Value,
}

impl EditReplay {
    fn new(slot: SchemaSlot, schema: Option<Value>) -> Self {
        let members = schema.map(|it| (slot.key().to_owned(), it));
        Self {
            slot,
            document: Value::Object(members.into_iter().collect()),
        }
    }

    fn follow<E: From<EditMismatch>>(
        mut self,
        edits: &[Edit],
        written: Option<Value>,
        judge: &mut impl FnMut(EquivalenceClaim) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole = Pointer::of([self.slot.key()]);
        let below = format!("{whole}/");
        let mine = |edit: &&Edit| edit.path == whole || edit.path.as_str().starts_with(&below);
        // References connect places: a constraint lost at one place may remain where it was inlined from
        // the original. After the first loss, a run of edits therefore makes no claim by itself.
        let is_tied = self
            .current()
            .is_some_and(|schema| mentions_reference(&schema));
        let mut has_lost = false;
        // The schema before the current run of edits, once the run has an edit.
        let mut since: Option<Option<Value>> = None;
        for edit in edits.iter().filter(mine) {
            // The whole schema was added or removed.
            let replaces = edit.path == whole && (edit.before.is_none() || edit.after.is_none());
            if replaces || edit.kind == EditKind::Loss(LossKind::Semantic) {
                has_lost = true;
                if let Some(since) = since.take() {
                    self.claim(since, self.current(), judge)?;
                }
            } else if since.is_none() && !(is_tied && has_lost) {
                since = Some(self.current());
            }
            if !edit.apply(&mut self.document) {
                let path = edit.path.clone();
                return Err(EditMismatch::Edit { path }.into());
            }
        }
        let since = since.unwrap_or_else(|| self.current());
        self.claim(since, written, judge)
    }

    fn current(&self) -> Option<Value> {
        self.document.get(self.slot.key()).cloned()
    }

    /// Claims that the schema means the same before and after a run of edits.
    fn claim<E>(
        &self,
        before: Option<Value>,
        after: Option<Value>,
        judge: &mut impl FnMut(EquivalenceClaim) -> Result<(), E>,
    ) -> Result<(), E> {
        if before == after {
            return Ok(());
        }
        // A missing schema accepts every value.
        let before = before.unwrap_or(Value::Bool(true));
        let after = after.unwrap_or(Value::Bool(true));
        let inner = innermost_difference(&before, &after);
        judge(EquivalenceClaim {
            slot: self.slot,
            inner: inner.map(|(before, after)| (before.clone(), after.clone())),
            before,
            after,
        })
    }
}

/// Keywords that apply a schema of another place.
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Whether the schema contains a reference anywhere; a property of that name counts as well.
fn mentions_reference(schema: &Value) -> bool {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) if REFERENCES.iter().any(|it| members.contains_key(*it)) => {
                return true;
            }
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

/// The only subschemas of two schemas that differ, unless references connect them to the rest.
fn innermost_difference<'v>(before: &'v Value, after: &'v Value) -> Option<(&'v Value, &'v Value)> {
    let (mut old, mut new) = (before, after);
    while let Some((inner_old, inner_new)) = only_difference(old, new) {
        (old, new) = (inner_old, inner_new);
    }
    let inside = !std::ptr::eq(old, before);
    let stands_alone = |schema: &Value| {
        let mut open = vec![schema];
        while let Some(value) = open.pop() {
            match value {
                Value::Object(members) => {
                    if members
                        .keys()
                        .any(|key| key.starts_with('$') && key != "$comment")
                    {
                        return false;
                    }
                    open.extend(members.values());
                }
                Value::Array(items) => open.extend(items),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        true
    };
    (inside && stands_alone(old) && stands_alone(new)).then_some((old, new))
}

/// The schemas directly inside two others, if they are all that differs.
fn only_difference<'v>(old: &'v Value, new: &'v Value) -> Option<(&'v Value, &'v Value)> {
    let (old, new) = (old.as_object()?, new.as_object()?);
    let (keyword, old, new) = only_differing_member(old, new)?;
    let (old, new) = match (subschema_form(keyword)?, old, new) {
        (SubschemaForm::Map, Value::Object(old), Value::Object(new)) => {
            let (_, old, new) = only_differing_member(old, new)?;
            (old, new)
        }
        (SubschemaForm::List | SubschemaForm::OneOrList, Value::Array(old), Value::Array(new))
            if old.len() == new.len() =>
        {
            let mut pairs = old.iter().zip(new).filter(|(old, new)| old != new);
            let only = pairs.next()?;
            if pairs.next().is_some() {
                return None;
            }
            only
        }
        (SubschemaForm::One | SubschemaForm::OneOrList, old, new) => (old, new),
        _ => return None,
    };
    (old.is_object() && new.is_object()).then_some((old, new))
}

/// The only member whose value differs, where both have the same keys.
fn only_differing_member<'v>(
    old: &'v Object,
    new: &'v Object,
) -> Option<(&'v str, &'v Value, &'v Value)> {
    if old.len() != new.len() {
        return None;
    }
    let mut found = None;
    for (key, value) in old {
        let other = new.get(key)?;
        if value != other && found.replace((key.as_str(), value, other)).is_some() {
            return None;
        }
    }
    found
}

fn read_emitted(written: &Value, format: Format) -> Option<Tool> {
    let Value::Object(members) = written.clone() else {
        return None;
    };
    formats::read(format, members).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonicalize::{FormatChoice, canonicalize};
    use crate::emit::{EmitTarget, emit};
    use serde_json::json;

    fn claims(definition: &Value, target: EmitTarget) -> Vec<EquivalenceClaim> {
        let read = canonicalize(definition.clone(), FormatChoice::Detect).unwrap();
        let tool = read.tools.into_iter().next().unwrap().tool;
        let originals = OriginalSchemas::of(&tool);
        let emission = emit(tool, target).unwrap();
        let mut claims = Vec::new();
        let format = target.format();
        let checked = originals.check(&emission.edits, &emission.value, format, |claim| {
            claims.push(claim);
            Ok::<(), EditMismatch>(())
        });
        assert_eq!(checked, Ok(()));
        claims
    }

    #[test]
    fn a_schema_that_is_not_touched_claims_nothing() {
        let definition = json!({"name": "t", "inputSchema": {"type": "object"}});
        assert_eq!(claims(&definition, EmitTarget::Anthropic), []);
    }

    #[test]
    fn stretches_between_losses_are_claims() {
        let definition = json!({"name": "t", "inputSchema": {"type": "object", "properties": {
            "a": {"const": "x"}, "b": {"not": {}}, "c": {"const": "y"}}}});
        let all = claims(&definition, EmitTarget::Gemini);
        let places: Vec<(bool, bool)> = all
            .iter()
            .map(|claim| {
                let has = |schema: &Value, place: &str| schema.pointer(place).is_some();
                (
                    has(&claim.before, "/properties/b/not"),
                    has(&claim.after, "/properties/b/not"),
                )
            })
            .collect();
        // One run of edits before `not` is lost and one after; none contains the loss.
        assert_eq!(places, [(true, true), (false, false)]);
        let inner = all.first().and_then(|claim| claim.inner.clone());
        assert_eq!(inner, Some((json!({"const": "x"}), json!({"enum": ["x"]}))));
    }

    #[test]
    fn an_account_that_does_not_fit_is_refused() {
        let tool = Tool {
            inputs: json!({"type": "object"}).as_object().unwrap().clone(),
            ..Tool::new(Format::Mcp)
        };
        let edit = Edit::change(
            Pointer::of(["inputs", "type"]),
            Some(json!("array")),
            None,
            "",
        );
        let written = json!({"name": "t", "inputSchema": {}});
        let found = OriginalSchemas::of(&tool).check(&[edit], &written, Format::Mcp, |_| Ok(()));
        let path = Pointer::of(["inputs", "type"]);
        assert_eq!(found, Err(EditMismatch::Edit { path }));
    }
}
