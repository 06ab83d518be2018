//! Judges a schema change: as a whole, and change by change.

mod call_effect;
mod change_group;
mod content;
mod places;
mod role;
mod surface;
mod value_path;

use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_schema::{Callers, SchemaPair, Unknown, UnknownReason, ValueDomain, Witness};

use crate::change::{CallEffect, ChangeClass, ChangeKind, Judgement};
use crate::difference::{Difference, apply, differences};
use crate::options::Options;
use crate::rename::Rename;
use change_group::{ChangeGroup, group_differences};
use places::LostMember;
use role::{SchemaRole, adds_header, is_reordering};
use surface::SchemaDeclarations;

/// The maximum number of changes of one schema that are judged individually.
const MAX_JUDGED: usize = 48;

/// The combined effect of all changes of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaDrift {
    /// For callers that send only declared keys.
    pub declared: Judgement,
    /// For callers that send any accepted key.
    pub open: Judgement,
    /// The results of replaying recorded calls.
    pub replay: Option<ReplaySummary>,
}

impl SchemaDrift {
    /// The judgement for these callers.
    #[must_use]
    pub const fn for_callers(&self, callers: Callers) -> &Judgement {
        match callers {
            Callers::Declared => &self.declared,
            Callers::Open => &self.open,
        }
    }
}

/// The results of replaying recorded calls.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplaySummary {
    /// The number of recorded calls of the tool.
    pub calls: usize,
    /// How many of them the old schema accepts.
    pub accepted: usize,
    /// How many of the accepted calls the new schema rejects.
    pub rejected: usize,
    /// The first rejected call.
    pub first: Option<Witness>,
    /// Values in calls that the tool no longer reads, in the order of the calls.
    pub lost: Vec<LostValue>,
}

/// A value of a recorded call that is now accepted but ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct LostValue {
    /// The index of the call among the recorded calls of the tool, from 0.
    pub index: usize,
    /// The call.
    pub call: Value,
    /// The place of the value in the call.
    pub pointer: Pointer,
}

/// Whether callers send or receive the values of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaDirection {
    /// Callers send the values: what was accepted must stay accepted.
    Input,
    /// Callers receive the values: what may come now must have been possible before.
    Output,
}

/// One change of a schema, with pointers relative to the schema.
#[derive(Clone, Debug)]
pub(crate) struct SchemaChange {
    pub(crate) rule: &'static str,
    pub(crate) pointer: Pointer,
    pub(crate) kind: ChangeKind,
    pub(crate) class: ChangeClass,
    pub(crate) judgement: Option<Judgement>,
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
    pub(crate) rename: Option<Rename>,
    pub(crate) effect: Option<CallEffect>,
    pub(crate) message: String,
}

/// Compares two schemas, as a whole and change by change.
pub(crate) fn compare(
    old: &Value,
    new: &Value,
    direction: SchemaDirection,
    options: &Options,
    calls: &[Value],
) -> (SchemaDrift, Vec<SchemaChange>) {
    let mut comparison = SchemaComparison {
        old,
        new,
        direction,
        options,
        pair: pair(old, new, direction, options),
        surfaces: None,
        lost: Vec::new(),
        unexamined: false,
    };
    let (mut drift, vanished) = comparison.compare_whole(calls);
    if vanished {
        return (drift, vec![unconstrained_change(old, new)]);
    }
    let changes = comparison.changes(new, &drift);
    if let Some(replayed) = &mut drift.replay {
        replayed.lost = comparison.lost_values(calls);
    }
    (drift, changes)
}

fn pair<'s>(
    old: &'s Value,
    new: &'s Value,
    direction: SchemaDirection,
    options: &Options,
) -> Result<SchemaPair<'s>, Unknown> {
    let is_object = |schema: &Value| schema.get("type").is_some_and(|word| word == "object");
    let (from, to, domain) = match direction {
        SchemaDirection::Input => (old, new, ValueDomain::Objects),
        // If one side declares the result to be an object, it is an object on the other side too.
        SchemaDirection::Output if is_object(old) || is_object(new) => {
            (new, old, ValueDomain::Objects)
        }
        SchemaDirection::Output => (new, old, ValueDomain::Values),
    };
    SchemaPair::new(from, to, domain, options.formats, options.budget)
}

fn unconstrained_change(old: &Value, new: &Value) -> SchemaChange {
    SchemaChange {
        rule: "contract-vanished",
        pointer: Pointer::root(),
        kind: ChangeKind::Changed,
        class: ChangeClass::Trust,
        judgement: None,
        before: Some(old.clone()),
        after: Some(new.clone()),
        rename: None,
        effect: None,
        message: "the schema accepts everything now: nothing is promised any more".to_owned(),
    }
}

struct SchemaComparison<'s> {
    old: &'s Value,
    new: &'s Value,
    direction: SchemaDirection,
    options: &'s Options,
    pair: Result<SchemaPair<'s>, Unknown>,
    /// What the old and the new schema declare about each place of a call.
    surfaces: Option<(SchemaDeclarations<'s>, SchemaDeclarations<'s>)>,
    /// Arguments that the new schema accepts and does not declare any more.
    lost: Vec<LostMember>,
    /// Whether there was no time to look for all of them.
    unexamined: bool,
}

impl SchemaComparison<'_> {
    fn compare_whole(&mut self, calls: &[Value]) -> (SchemaDrift, bool) {
        let pair = match &mut self.pair {
            Ok(pair) => pair,
            Err(unknown) => {
                let drift = SchemaDrift {
                    declared: Judgement::Unknown(unknown.clone()),
                    open: Judgement::Unknown(unknown.clone()),
                    replay: None,
                };
                return (drift, false);
            }
        };
        let mut drift = SchemaDrift {
            declared: pair.verdict(Callers::Declared).into(),
            open: pair.verdict(Callers::Open).into(),
            replay: None,
        };
        if self.direction == SchemaDirection::Input && !calls.is_empty() {
            let replay = pair.replay(calls);
            let (accepted, rejected) = (replay.accepted, replay.rejected.len());
            let first = replay.rejected.first().copied().cloned();
            let first = first.and_then(|call| pair.witness_of(&call, &Pointer::root()));
            if let Some(witness) = &first {
                // A recorded call is the best witness.
                drift.declared = Judgement::Breaking(witness.clone());
                drift.open = Judgement::Breaking(witness.clone());
            }
            drift.replay = Some(ReplaySummary {
                calls: calls.len(),
                accepted,
                rejected,
                first,
                lost: Vec::new(),
            });
        }
        let vanished = match self.direction {
            SchemaDirection::Input => pair.became_unconstrained(),
            SchemaDirection::Output => pair.became_constrained(),
        };
        (drift, vanished)
    }

    fn changes(&mut self, new: &Value, drift: &SchemaDrift) -> Vec<SchemaChange> {
        let found = differences(self.old, new);
        let groups = group_differences(&found, self.old, new);
        // A definition accepts nothing by itself, but a schema that refers to it may need it.
        let supplied = found
            .iter()
            .filter(|it| it.before.is_none() && SchemaRole::of(&it.pointer).is_definition());
        let supplied: Vec<&Difference<'_>> = supplied.collect();
        let whole = drift.for_callers(self.options.callers).clone();
        if self.direction == SchemaDirection::Input && !found.is_empty() {
            self.surfaces = Some((
                SchemaDeclarations::of(self.old),
                SchemaDeclarations::of(self.new),
            ));
            self.find_lost_members();
        }
        let mut changes = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            changes.push(self.change(group, &supplied, &whole, index < MAX_JUDGED));
        }
        self.attribute_to_nearest(&mut changes, &whole);
        if let Some(surfaces) = self.surfaces.take() {
            self.changed_defaults(&mut changes, &surfaces);
            self.lost_members(&mut changes, &surfaces.0, &whole);
            self.not_compared(&mut changes, &surfaces);
        }
        self.changed_content(&mut changes);
        changes
    }

    fn change(
        &mut self,
        group: &ChangeGroup<'_, '_>,
        supplied: &[&Difference<'_>],
        whole: &Judgement,
        judged: bool,
    ) -> SchemaChange {
        let no_difference = Difference {
            pointer: Pointer::root(),
            before: None,
            after: None,
        };
        let first = group.parts.first().copied().unwrap_or(&no_difference);
        let role = SchemaRole::of(&first.pointer);
        let kind = match (&group.rename, first.before, first.after) {
            (Some(_), _, _) => ChangeKind::Renamed,
            (None, None, _) => ChangeKind::Added,
            (None, _, None) => ChangeKind::Removed,
            (None, Some(_), Some(_)) => ChangeKind::Changed,
        };
        let renamed_to = group.parts.get(1).and_then(|part| part.after);
        let mut change = SchemaChange {
            rule: if group.rename.is_some() {
                "renamed"
            } else {
                role.rule
            },
            pointer: first.pointer.clone(),
            kind,
            class: ChangeClass::Behavioural,
            judgement: None,
            before: first.before.cloned(),
            after: first.after.or(renamed_to).cloned(),
            rename: group.rename.clone(),
            effect: None,
            message: role.message(kind, first, group.rename.as_ref(), self.direction),
        };
        let header = group.parts.iter().any(|part| adds_header(part));
        if header {
            change.class = ChangeClass::Trust;
            change.rule = "x-mcp-header";
            change.message =
                "an argument is copied into an HTTP header now, where others read it".to_owned();
        }
        let input = self.direction == SchemaDirection::Input;
        if role.keyword == "default" && input {
            if self.is_without_argument(&first.pointer) {
                change.class = ChangeClass::Equivalent;
                change.message.push_str(": it applies to no argument");
            } else if !self.is_out_of_time() {
                change.effect = self.default_effect(&first.pointer);
            }
        }
        if !role.affects_values(self.options.formats) && role.keyword != "contentSchema" {
            return change;
        }
        if let Some((class, why)) = self.content_change(&first.pointer) {
            change.class = class;
            change.message.push_str(&why);
            return change;
        }
        if role.keyword == "enum" && is_reordering(first) {
            change.rule = "enum-order";
            "the same values in another order".clone_into(&mut change.message);
            return change;
        }
        let (judgement, class) = if kind != ChangeKind::Changed && role.is_definition() {
            (Judgement::Equivalent, ChangeClass::Equivalent)
        } else if judged && !self.is_out_of_time() {
            self.judge_alone_in_time(group, supplied, whole)
        } else {
            self.judge_by_whole(whole)
        };
        // An argument that is copied into a header is a change of trust, and may also break callers.
        change.class = if header {
            class.max(ChangeClass::Trust)
        } else {
            class
        };
        let dropped = input && role.is_property() && first.after.is_none();
        if dropped && class <= ChangeClass::Behavioural && self.is_lost(&first.pointer) {
            change.class = change.class.max(ChangeClass::Ignored);
            if !header {
                let message = &mut change.message;
                message.push_str(": still accepted, and no longer read");
            }
            change.effect = self.of_ignored(&first.pointer);
        }
        change.judgement = Some(judgement);
        change
    }

    fn default_effect(&mut self, at: &Pointer) -> Option<CallEffect> {
        let pair = self.pair.as_mut().ok()?;
        call_effect::default_effect(pair, (self.old, self.new), at, self.options)
    }

    /// Values of recorded calls that are now accepted but ignored.
    fn lost_values(&mut self, calls: &[Value]) -> Vec<LostValue> {
        let Ok(pair) = &mut self.pair else {
            return Vec::new();
        };
        let mut lost = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            for member in &self.lost {
                let mut is_lost = |place: &Pointer| pair.loses_member(call, place);
                let place = member.path.find(call, &mut is_lost);
                lost.extend(place.map(|pointer| LostValue {
                    index,
                    call: call.clone(),
                    pointer,
                }));
            }
        }
        lost
    }

    /// What one change would mean if it were the only one. Without time to find out, the judgement of
    /// the whole.
    fn judge_alone_in_time(
        &mut self,
        group: &ChangeGroup<'_, '_>,
        supplied: &[&Difference<'_>],
        whole: &Judgement,
    ) -> (Judgement, ChangeClass) {
        let (judgement, class) = self.judge_alone(group, supplied, whole);
        if self.is_out_of_time() && class != ChangeClass::Breaking {
            return self.judge_by_whole(whole);
        }
        (judgement, class)
    }

    fn is_out_of_time(&self) -> bool {
        self.options.budget.time.is_over()
    }

    /// Judges a single change by the judgement of the whole. A compatible whole says little about one
    /// change: without time to examine it, the change is unknown.
    fn judge_by_whole(&self, whole: &Judgement) -> (Judgement, ChangeClass) {
        if self.is_out_of_time() && matches!(whole, Judgement::Compatible(None)) {
            let unknown = Unknown {
                reason: UnknownReason::Time,
                obstacles: Vec::new(),
            };
            return (Judgement::Unknown(unknown), ChangeClass::Unknown);
        }
        (whole.clone(), self.class(whole))
    }

    /// What one change would mean if it were the only one, limited by what the other changes make of
    /// it.
    fn judge_alone(
        &mut self,
        group: &ChangeGroup<'_, '_>,
        supplied: &[&Difference<'_>],
        whole: &Judgement,
    ) -> (Judgement, ChangeClass) {
        let nothing = (Judgement::Compatible(None), ChangeClass::Equivalent);
        if matches!(whole, Judgement::Equivalent) {
            return (Judgement::Equivalent, ChangeClass::Equivalent);
        }
        let parts = supplied.iter().chain(&group.parts).chain(&group.related);
        let parts: Vec<&Difference<'_>> = parts.copied().collect();
        let changed = apply(self.old, &parts);
        let mut alone = match pair(self.old, &changed, self.direction, self.options) {
            Ok(pair) => pair,
            // One change without the others may give an invalid schema. All changes together give a
            // valid one, and it rejects nothing that was accepted.
            Err(_) if matches!(whole, Judgement::Compatible(_)) => {
                return self.judge_by_whole(whole);
            }
            Err(unknown) => return (Judgement::Unknown(unknown), ChangeClass::Unknown),
        };
        let mut judgement = Judgement::from(alone.verdict(self.options.callers));
        let input = self.direction == SchemaDirection::Input;
        if input && matches!(judgement, Judgement::Compatible(None)) {
            // Only undeclared keys can show the difference, so judge again for callers that send them.
            let open = Judgement::from(alone.verdict(Callers::Open));
            match open {
                Judgement::Compatible(Some(_)) => judgement = open,
                // Callers that send only declared keys do not notice, but the contract is different.
                Judgement::Breaking(_) => return (judgement, ChangeClass::Behavioural),
                // Nothing is lost, and it is not proven that nothing is gained.
                Judgement::Compatible(None) => return (judgement, ChangeClass::Widened),
                _ => {}
            }
        }
        match (judgement, whole) {
            // Another change compensates for it.
            (Judgement::Breaking(_) | Judgement::Unknown(_), Judgement::Compatible(_)) => nothing,
            (Judgement::Breaking(witness), _) => {
                let near = group.parts.first().map(|part| part.pointer.clone());
                match self.still_breaks(&witness, &near.unwrap_or_default()) {
                    Some(witness) => (Judgement::Breaking(witness), ChangeClass::Breaking),
                    None => nothing,
                }
            }
            (Judgement::Compatible(Some(gained)), _) if input => {
                let real = self.is_accepted_now(&gained);
                (
                    Judgement::Compatible(real.then_some(gained)),
                    ChangeClass::Widened,
                )
            }
            (judgement, _) => {
                let class = self.class(&judgement);
                (judgement, class)
            }
        }
    }

    /// The witness of a single change, if it is also a witness of the whole. Its name comes from the
    /// place nearest to the change.
    fn still_breaks(&mut self, witness: &Witness, near: &Pointer) -> Option<Witness> {
        let pair = self.pair.as_mut().ok()?;
        let possible = pair.old_accepts(&witness.value);
        pair.witness_of(&witness.value, near).filter(|_| possible)
    }

    fn is_accepted_now(&mut self, value: &Value) -> bool {
        match &mut self.pair {
            Ok(pair) => pair.witness_of(value, &Pointer::root()).is_none(),
            Err(_) => false,
        }
    }

    fn class(&self, judgement: &Judgement) -> ChangeClass {
        match (judgement, self.direction) {
            (Judgement::Breaking(_), _) => ChangeClass::Breaking,
            (Judgement::Unknown(_), _) => ChangeClass::Unknown,
            (Judgement::Compatible(Some(_)), SchemaDirection::Input) => ChangeClass::Widened,
            // A result that promises more takes nothing from its readers.
            (Judgement::Compatible(Some(_)), SchemaDirection::Output) => ChangeClass::Behavioural,
            (Judgement::Equivalent | Judgement::Compatible(None), _) => ChangeClass::Equivalent,
        }
    }

    /// If the whole breaks or is unknown and no single change does or is, assigns the judgement to the
    /// change nearest to the witness.
    fn attribute_to_nearest(&self, changes: &mut [SchemaChange], whole: &Judgement) {
        let class = self.class(whole);
        if !matches!(class, ChangeClass::Breaking | ChangeClass::Unknown)
            || changes.iter().any(|change| change.class >= class)
        {
            return;
        }
        let place = match whole {
            Judgement::Breaking(witness) => witness.schema_pointer.as_str(),
            _ => "",
        };
        let shared = |change: &SchemaChange| {
            let pairs = change.pointer.as_str().bytes().zip(place.bytes());
            pairs.take_while(|(a, b)| a == b).count()
        };
        let culprit = changes
            .iter_mut()
            .filter(|change| change.judgement.is_some())
            .max_by_key(|change| shared(change));
        if let Some(culprit) = culprit {
            culprit.class = class;
            culprit.judgement = Some(whole.clone());
        }
    }
}
