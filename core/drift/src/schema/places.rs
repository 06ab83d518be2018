//! Changes that only show when two schemas are compared at the same place of a call: behind references,
//! and in combinations that were removed or added as a whole.

use serde_json::Value;
use toolwarden_model::json::Pointer;

use super::call_effect::{self, ValuePath, declares};
use super::surface::{Declared, MAX_VISITS, Surface};
use super::{SchemaChange, SchemaComparison};
use crate::change::{CallEffect, ChangeClass, ChangeKind, Judgement};

/// The message for a changed default that has no effect.
const SETTLED: &str = ": the same default holds";

/// The old and the new schema.
type Surfaces<'s> = (Surface<'s>, Surface<'s>);

impl SchemaComparison<'_> {
    /// Whether a property of the old schema is no longer declared. A property that only moved within
    /// the schema is still declared.
    pub(super) fn is_lost(&self, property: &Pointer) -> bool {
        if let Some((old, new)) = &self.surfaces {
            let mut places = old.described_by(property).peekable();
            if new.is_complete() && places.peek().is_some() {
                return places.any(|path| new.lacks(path));
            }
        }
        !self.is_still_declared(property)
    }

    /// Whether the new schema describes the property at the same place.
    fn is_still_declared(&self, property: &Pointer) -> bool {
        let Some(name) = property.segments().last() else {
            return false;
        };
        let mut holder = property.clone();
        holder.pop();
        holder.pop();
        let schema = holder.find(self.new);
        schema.is_some_and(|schema| declares(self.new, schema, &name))
    }

    /// A call that sets a property that is no longer declared, so that its value loses its meaning.
    pub(super) fn of_ignored(&mut self, at: &Pointer) -> Option<CallEffect> {
        let described = self.surfaces.as_ref().and_then(|(old, new)| {
            let mut places = old.described_by(at);
            places.find(|path| new.lacks(path)).cloned()
        });
        let path = described.or_else(|| ValuePath::of(at))?;
        let property = at.find(self.old)?;
        let pair = self.pair.as_mut().ok()?;
        call_effect::find_ignored_argument(
            pair,
            (self.old, self.new),
            (&path, property),
            self.options,
        )
    }

    /// Adds arguments that are accepted but no longer read, because the schema part that declared them
    /// was removed as a whole.
    pub(super) fn lost_members(
        &mut self,
        changes: &mut Vec<SchemaChange>,
        (old, new): &Surfaces<'_>,
        whole: &Judgement,
    ) {
        let nothing_is_rejected = matches!(whole, Judgement::Equivalent | Judgement::Compatible(_));
        for (path, said) in old.places().filter(|(path, _)| new.lacks(path)) {
            let is_told = |change: &SchemaChange| {
                said.is_described_by(&change.pointer)
                    || (change.rename.is_some()
                        && ValuePath::of(&change.pointer).as_ref() == Some(path))
            };
            if changes.iter().any(is_told) || self.is_out_of_time() {
                continue;
            }
            let (Some((at, property)), Ok(pair)) = (said.schemas.first(), &mut self.pair) else {
                continue;
            };
            let schemas = (self.old, self.new);
            let effect =
                call_effect::find_ignored_argument(pair, schemas, (path, property), self.options);
            if effect.is_none() && !nothing_is_rejected {
                continue;
            }
            changes.push(SchemaChange {
                rule: "properties",
                pointer: at.clone(),
                kind: ChangeKind::Removed,
                class: ChangeClass::Ignored,
                judgement: Some(Judgement::Compatible(None)),
                before: Some((*property).clone()),
                after: None,
                rename: None,
                effect,
                message: format!(
                    "{} was removed: still accepted, and no longer read",
                    subject(path)
                ),
            });
        }
    }

    /// Reports that arguments and defaults were not compared, if a schema has too many subschemas.
    pub(super) fn too_large_to_compare(
        &self,
        changes: &mut Vec<SchemaChange>,
        (old, new): &Surfaces<'_>,
    ) {
        if old.is_complete() && new.is_complete() {
            return;
        }
        changes.push(SchemaChange {
            rule: "properties",
            pointer: Pointer::root(),
            kind: ChangeKind::Changed,
            class: ChangeClass::Unknown,
            judgement: None,
            before: None,
            after: None,
            rename: None,
            effect: None,
            message: format!(
                "the schema has more than {MAX_VISITS} subschemas: whether arguments are still read and \
                 defaults still apply is not known"
            ),
        });
    }

    /// Adds changed defaults that neither schema has at the same pointer, and removes those that only
    /// moved.
    pub(super) fn changed_defaults(
        &mut self,
        changes: &mut Vec<SchemaChange>,
        (old, new): &Surfaces<'_>,
    ) {
        if !old.is_complete() || !new.is_complete() {
            return;
        }
        let both = || {
            let optional = old.places().filter(|(path, _)| !new.requires(path));
            optional.filter_map(|(path, was)| Some((path, was, new.at(path)?)))
        };
        let is_same = |before: &[&Value], after: &[&Value]| {
            before.len() == after.len() && before.iter().all(|it| after.contains(it))
        };
        for (_, was, is) in both() {
            if is_same(&was.defaults(), &is.defaults()) {
                settle(changes, (was, is));
            }
        }
        for (path, was, is) in both() {
            let (before, after) = (was.defaults(), is.defaults());
            if is_same(&before, &after) {
                continue;
            }
            let gone = before.iter().find(|it| !after.contains(it));
            let come = after.iter().find(|it| !before.contains(it));
            let before = gone.or(before.first()).copied();
            let after = come.or(after.first()).copied();
            self.changed_default(changes, path, (was, is), (before, after));
        }
    }

    fn changed_default(
        &mut self,
        changes: &mut Vec<SchemaChange>,
        path: &ValuePath,
        (was, is): (&Declared<'_>, &Declared<'_>),
        (before, after): (Option<&Value>, Option<&Value>),
    ) {
        let calls = match &mut self.pair {
            Ok(pair) if !self.options.budget.time.is_over() => {
                call_effect::completed(pair, self.old, path, (before, after), self.options)
            }
            _ => None,
        };
        let is_truth = |value: Option<&Value>| value.is_some_and(Value::is_boolean);
        let effect = CallEffect::Default {
            calls,
            replaced: before.is_some_and(|before| after.is_some() || !before.is_null()),
            switch: was.is_choice() || is.is_choice() || is_truth(before) || is_truth(after),
            writes: true,
        };
        let told = changes.iter_mut().find(|it| is_default_of(it, (was, is)));
        if let Some(told) = told {
            // The default is unchanged at one place, but not at this one.
            if let Some(message) = told.message.strip_suffix(SETTLED) {
                told.message = message.to_owned();
                told.class = ChangeClass::Behavioural;
            }
            told.effect = Some(effect);
            return;
        }
        let holds = |said: &Declared<'_>, value: Option<&Value>| {
            let mut schemas = said.schemas.iter();
            let found =
                schemas.find(|(_, schema)| value.is_some() && schema.get("default") == value);
            found.map(|(at, _)| at.child("default"))
        };
        let Some(pointer) = holds(was, before).or_else(|| holds(is, after)) else {
            return;
        };
        let kind = match (before, after) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Changed,
        };
        let (before, after) = (before.cloned(), after.cloned());
        let is_known =
            |it: &SchemaChange| it.pointer == pointer && it.before == before && it.after == after;
        if changes.iter().any(is_known) {
            return;
        }
        changes.push(SchemaChange {
            rule: "default",
            pointer,
            kind,
            class: ChangeClass::Behavioural,
            judgement: None,
            before,
            after,
            rename: None,
            effect: Some(effect),
            message: format!("`default` of {} was {}", subject(path), kind.as_str()),
        });
    }
}

/// Removes the change of a default whose effect is unchanged: it moved, or it does not count.
fn settle(changes: &mut [SchemaChange], sides: (&Declared<'_>, &Declared<'_>)) {
    for change in changes.iter_mut().filter(|it| is_default_of(it, sides)) {
        if change.class == ChangeClass::Behavioural {
            change.class = ChangeClass::Equivalent;
            change.effect = None;
            change.message.push_str(SETTLED);
        }
    }
}

/// Whether a change is of a default that is written for a place.
fn is_default_of(change: &SchemaChange, (was, is): (&Declared<'_>, &Declared<'_>)) -> bool {
    let mut holder = change.pointer.clone();
    holder.pop();
    change.rule == "default" && (was.is_described_by(&holder) || is.is_described_by(&holder))
}

fn subject(path: &ValuePath) -> String {
    let mut names = path.names().rev();
    match (names.next(), names.next()) {
        (None, _) => "the schema".to_owned(),
        (Some(name), None) => format!("argument `{name}`"),
        (Some(name), Some(holder)) => format!("`{name}` in `{holder}`"),
    }
}
