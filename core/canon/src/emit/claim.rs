use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::keywords::{Position, position};
use toolwarden_model::{Format, Tool};

use super::edit::{Edit, Kind, Severity};
use crate::formats;

/// The schemas of a tool before something rewrote it.
///
/// Rewriting reports edits. What they do not call a semantic loss is a claim that the same calls are
/// valid as before; a program that can compare schemas checks it. This crate cannot.
#[derive(Clone, Debug)]
pub struct Originals {
    inputs: Option<Object>,
    outputs: Option<Object>,
}

/// Two schemas that accept the same values, by the account of a rewrite.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Which schema of the tool.
    pub slot: SchemaSlot,
    /// The schema before a stretch of edits that lose nothing.
    pub before: Value,
    /// The schema after it.
    pub after: Value,
    /// The only schemas inside that differ, before and after, where they stand for themselves. If they
    /// accept the same values, so do the whole ones.
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

/// The account of a rewrite does not lead from what went in to what came out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unaccounted {
    /// An edit does not fit what stands at its place.
    #[error("the edit of {path} does not fit what stands there")]
    Edit {
        /// The place.
        path: Pointer,
    },
    /// What was written cannot be read again.
    #[error("what was written is not a definition in {format}")]
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

impl Originals {
    /// Keeps the schemas of a tool that is about to be rewritten.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        Self {
            inputs: (!tool.absent.inputs).then(|| tool.inputs.clone()),
            outputs: (!tool.outputs.is_empty()).then(|| tool.outputs.clone()),
        }
    }

    /// Hands over what the edits claim, given the definition that was written. Nothing is claimed of a
    /// schema that came out as it went in.
    ///
    /// # Errors
    /// The edits do not lead to what was written, or a claim is refused.
    pub fn check<E: From<Unaccounted>>(
        self,
        edits: &[Edit],
        written: &Value,
        format: Format,
        mut judge: impl FnMut(Claim) -> Result<(), E>,
    ) -> Result<(), E> {
        let again = read_again(written, format).ok_or(Unaccounted::Unreadable { format })?;
        let inputs = (!again.absent.inputs).then_some(again.inputs);
        let outputs = (!again.outputs.is_empty()).then_some(again.outputs);
        let slots = [
            (SchemaSlot::Inputs, self.inputs, inputs),
            (SchemaSlot::Outputs, self.outputs, outputs),
        ];
        for (slot, before, after) in slots {
            let trail = Trail::new(slot, before.map(Value::Object));
            trail.follow(edits, after.map(Value::Object), &mut judge)?;
        }
        Ok(())
    }
}

/// One schema as the edits change it.
struct Trail {
    slot: SchemaSlot,
    /// The contract, of which only the one schema is here.
    document: Value,
}

impl Trail {
    fn new(slot: SchemaSlot, schema: Option<Value>) -> Self {
        let members = schema.map(|it| (slot.key().to_owned(), it));
        Self {
            slot,
            document: Value::Object(members.into_iter().collect()),
        }
    }

    fn follow<E: From<Unaccounted>>(
        mut self,
        edits: &[Edit],
        written: Option<Value>,
        judge: &mut impl FnMut(Claim) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole = Pointer::of([self.slot.key()]);
        let below = format!("{whole}/");
        let mine = |edit: &&Edit| edit.path == whole || edit.path.as_str().starts_with(&below);
        // References tie places together: what one place lost is still there where it was inlined from
        // the original. After the first loss, stretches say nothing by themselves.
        let is_tied = self.now().is_some_and(|schema| mentions_reference(&schema));
        let mut has_lost = false;
        // The schema where the present stretch of edits began, once there is an edit in it.
        let mut since: Option<Option<Value>> = None;
        for edit in edits.iter().filter(mine) {
            // Something took the place of nothing, or nothing that of something.
            let replaces = edit.path == whole && (edit.before.is_none() || edit.after.is_none());
            if replaces || edit.kind == Kind::Loss(Severity::Semantic) {
                has_lost = true;
                if let Some(since) = since.take() {
                    self.claim(since, self.now(), judge)?;
                }
            } else if since.is_none() && !(is_tied && has_lost) {
                since = Some(self.now());
            }
            if !edit.apply(&mut self.document) {
                let path = edit.path.clone();
                return Err(Unaccounted::Edit { path }.into());
            }
        }
        let since = since.unwrap_or_else(|| self.now());
        self.claim(since, written, judge)
    }

    fn now(&self) -> Option<Value> {
        self.document.get(self.slot.key()).cloned()
    }

    /// Claims that the schema means the same at two places of the trail.
    fn claim<E>(
        &self,
        before: Option<Value>,
        after: Option<Value>,
        judge: &mut impl FnMut(Claim) -> Result<(), E>,
    ) -> Result<(), E> {
        if before == after {
            return Ok(());
        }
        // Where there is no schema, every value is as good as any other.
        let before = before.unwrap_or(Value::Bool(true));
        let after = after.unwrap_or(Value::Bool(true));
        let inner = innermost(&before, &after);
        judge(Claim {
            slot: self.slot,
            inner: inner.map(|(before, after)| (before.clone(), after.clone())),
            before,
            after,
        })
    }
}

/// Whether a reference stands anywhere inside; a property of that name counts as well.
fn mentions_reference(schema: &Value) -> bool {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) if members.contains_key("$ref") => return true,
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

/// The only schemas inside two others that differ, unless references tie them to the rest.
fn innermost<'v>(before: &'v Value, after: &'v Value) -> Option<(&'v Value, &'v Value)> {
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
    let (keyword, old, new) = differing(old, new)?;
    let (old, new) = match (position(keyword)?, old, new) {
        (Position::Map, Value::Object(old), Value::Object(new)) => {
            let (_, old, new) = differing(old, new)?;
            (old, new)
        }
        (Position::List | Position::OneOrList, Value::Array(old), Value::Array(new))
            if old.len() == new.len() =>
        {
            let mut pairs = old.iter().zip(new).filter(|(old, new)| old != new);
            let only = pairs.next()?;
            if pairs.next().is_some() {
                return None;
            }
            only
        }
        (Position::One | Position::OneOrList, old, new) => (old, new),
        _ => return None,
    };
    (old.is_object() && new.is_object()).then_some((old, new))
}

/// The only member whose value differs, where both have the same keys.
fn differing<'v>(old: &'v Object, new: &'v Object) -> Option<(&'v str, &'v Value, &'v Value)> {
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

fn read_again(written: &Value, format: Format) -> Option<Tool> {
    let Value::Object(members) = written.clone() else {
        return None;
    };
    formats::read(format, members).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonicalize::{Source, canonicalize};
    use crate::emit::{Target, emit};
    use serde_json::json;

    fn claims(definition: &Value, target: Target) -> Vec<Claim> {
        let read = canonicalize(definition.clone(), Source::Detect).unwrap();
        let tool = read.tools.into_iter().next().unwrap().tool;
        let originals = Originals::of(&tool);
        let emission = emit(tool, target).unwrap();
        let mut claims = Vec::new();
        let format = target.format();
        let checked = originals.check(&emission.edits, &emission.value, format, |claim| {
            claims.push(claim);
            Ok::<(), Unaccounted>(())
        });
        assert_eq!(checked, Ok(()));
        claims
    }

    #[test]
    fn a_schema_that_is_not_touched_claims_nothing() {
        let definition = json!({"name": "t", "inputSchema": {"type": "object"}});
        assert_eq!(claims(&definition, Target::Anthropic), []);
    }

    #[test]
    fn stretches_between_losses_are_claims() {
        let definition = json!({"name": "t", "inputSchema": {"type": "object", "properties": {
            "a": {"const": "x"}, "b": {"not": {}}, "c": {"const": "y"}}}});
        let all = claims(&definition, Target::Gemini);
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
        // One stretch before `not` is lost and one after; none that contains the loss.
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
        let found = Originals::of(&tool).check(&[edit], &written, Format::Mcp, |_| Ok(()));
        let path = Pointer::of(["inputs", "type"]);
        assert_eq!(found, Err(Unaccounted::Edit { path }));
    }
}
