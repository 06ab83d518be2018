//! Changes that only show when two schemas are compared at the same place of a call: behind references,
//! and in combinations that were removed or added as a whole.

use serde_json::Value;
use toolwarden_model::json::Pointer;

use super::call_effect::{self, declares};
use super::surface::{Declared, MAX_VISITS, SchemaDeclarations};
use super::value_path::{Step, ValuePath};
use super::{SchemaChange, SchemaComparison};
use crate::change::{CallEffect, ChangeClass, ChangeKind, Judgement};

/// The message for a changed default that has no effect.
const SETTLED: &str = ": the same default holds";

/// The old and the new schema.
type DeclarationPair<'s> = (SchemaDeclarations<'s>, SchemaDeclarations<'s>);

/// An argument that is accepted but no longer declared.
#[derive(Debug)]
pub(super) struct LostMember {
    pub(super) path: ValuePath,
    /// The call that shows it, if one was found.
    effect: Option<CallEffect>,
}

impl SchemaComparison<'_> {
    /// Finds the members of calls that only the old schema declares.
    pub(super) fn find_lost_members(&mut self) {
        let (Some((old, new)), Ok(pair)) = (&self.surfaces, &mut self.pair) else {
            return;
        };
        let members = old.places().filter(|(path, _)| path.is_member());
        // What is declared for every value is not lost.
        let doubtful = members.filter(|(path, _)| !new.at(path).is_some_and(|it| it.always));
        for (path, said) in doubtful {
            if self.lost.iter().any(|lost| path.is_below(&lost.path)) {
                continue;
            }
            if self.options.budget.time.is_over() {
                self.unexamined = true;
                return;
            }
            let Some((at, property)) = said.schemas.first() else {
                continue;
            };
            let (schemas, options) = ((self.old, self.new), self.options);
            let argument = (path, at, *property);
            let effect = call_effect::find_ignored_argument(pair, schemas, argument, options);
            if effect.is_some() || (said.always && new.lacks(path)) {
                let path = path.clone();
                self.lost.push(LostMember { path, effect });
            }
        }
        self.find_lost_keys();
    }

    /// Finds members without a name that only the old schema declares: by a pattern, or as the values of
    /// a map.
    fn find_lost_keys(&mut self) {
        let (Some((old, new)), Ok(pair)) = (&self.surfaces, &mut self.pair) else {
            return;
        };
        for (path, said) in old.places() {
            let Some(pattern) = path.keys() else {
                continue;
            };
            let holder = path.holder();
            let is_declared = new.at(path).is_some_and(|it| it.always)
                || (pattern.is_none() && new.welcomes_members(&holder));
            // An object without any declaration is a map: its keys are read, whatever they are.
            if is_declared || !new.declares_members(&holder) {
                continue;
            }
            if self.options.budget.time.is_over() {
                self.unexamined = true;
                return;
            }
            let Some((at, schema)) = said.schemas.first() else {
                continue;
            };
            let names = call_effect::key_names(pattern, self.options);
            let effect = names.iter().find_map(|name| {
                let member = holder.join(Step::Member(name.clone()));
                let argument = (&member, at, *schema);
                let schemas = (self.old, self.new);
                call_effect::find_ignored_argument(pair, schemas, argument, self.options)
            });
            let is_unnamed = names.is_empty() && said.always && new.lacks(path);
            if effect.is_some() || is_unnamed {
                let path = path.clone();
                self.lost.push(LostMember { path, effect });
            }
        }
    }

    /// Whether a property of the old schema is no longer declared. A property that only moved within
    /// the schema is still declared.
    pub(super) fn is_lost(&self, property: &Pointer) -> bool {
        match &self.surfaces {
            Some((old, new)) if old.is_complete() && new.is_complete() => {
                self.lost_member(property).is_some()
            }
            _ => !self.is_still_declared(property),
        }
    }

    fn lost_member(&self, property: &Pointer) -> Option<&LostMember> {
        let (old, _) = self.surfaces.as_ref()?;
        let mut lost = self.lost.iter();
        lost.find(|lost| old.described_by(property).any(|path| *path == lost.path))
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
    pub(super) fn of_ignored(&self, at: &Pointer) -> Option<CallEffect> {
        self.lost_member(at)?.effect.clone()
    }

    /// Adds arguments that are accepted but no longer read, because the schema part that declared them
    /// was removed as a whole.
    pub(super) fn lost_members(
        &self,
        changes: &mut Vec<SchemaChange>,
        old: &SchemaDeclarations<'_>,
        whole: &Judgement,
    ) {
        let nothing_is_rejected = matches!(whole, Judgement::Equivalent | Judgement::Compatible(_));
        for LostMember { path, effect } in &self.lost {
            let Some(said) = old.at(path) else {
                continue;
            };
            let is_told = |change: &SchemaChange| {
                said.is_described_by(&change.pointer)
                    || (change.rename.is_some()
                        && ValuePath::of(&change.pointer).as_ref() == Some(path))
            };
            let Some((at, property)) = said.schemas.first() else {
                continue;
            };
            if effect.is_none() && !nothing_is_rejected {
                continue;
            }
            if path.keys().is_some() && mark_lost_keys(changes, at, effect.as_ref()) {
                continue;
            }
            if changes.iter().any(is_told) {
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
                effect: effect.clone(),
                message: format!(
                    "{} was removed: still accepted, and no longer read",
                    subject(path)
                ),
            });
        }
    }

    /// Reports that arguments and defaults were not compared: a schema has too many subschemas, or
    /// there was no time.
    pub(super) fn not_compared(
        &self,
        changes: &mut Vec<SchemaChange>,
        (old, new): &DeclarationPair<'_>,
    ) {
        let message = if !old.is_complete() || !new.is_complete() {
            format!(
                "the schema has more than {MAX_VISITS} subschemas: whether arguments are still read and \
                 defaults still apply is not known"
            )
        } else if self.unexamined {
            "the comparison took longer than its time limit: whether arguments are still read is not known"
                .to_owned()
        } else {
            return;
        };
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
            message,
        });
    }

    /// Whether no argument has the schema that contains a default: it is an unused definition, or
    /// the condition of an `if`.
    pub(super) fn is_without_argument(&self, default: &Pointer) -> bool {
        let Some((old, new)) = &self.surfaces else {
            return false;
        };
        let is_read = old.applies_default(default) || new.applies_default(default);
        old.is_complete() && new.is_complete() && !is_read
    }

    /// Adds changed defaults that neither schema has at the same pointer, and removes those that only
    /// moved.
    pub(super) fn changed_defaults(
        &mut self,
        changes: &mut Vec<SchemaChange>,
        (old, new): &DeclarationPair<'_>,
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

/// Marks the change that removed the declaration of keys, if there is one.
fn mark_lost_keys(changes: &mut [SchemaChange], at: &Pointer, effect: Option<&CallEffect>) -> bool {
    let mut map = at.clone();
    map.pop();
    let mut changes = changes.iter_mut();
    let told = changes.find(|it| {
        let is_here = it.pointer == *at || it.pointer == map;
        is_here && it.after.is_none() && it.class <= ChangeClass::Ignored
    });
    let Some(told) = told else {
        return false;
    };
    if told.class < ChangeClass::Ignored {
        told.class = ChangeClass::Ignored;
        told.message
            .push_str(": keys that it declared are still accepted, and no longer read");
        told.effect = effect.cloned();
    }
    true
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
    match path.keys() {
        Some(Some(pattern)) => return format!("the declaration of keys that match `{pattern}`"),
        Some(None) => return "the declaration of further keys".to_owned(),
        None => {}
    }
    let mut names = path.names().rev();
    match (names.next(), names.next()) {
        (None, _) => "the schema".to_owned(),
        (Some(name), None) => format!("argument `{name}`"),
        (Some(name), Some(holder)) => format!("`{name}` in `{holder}`"),
    }
}
