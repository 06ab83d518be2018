//! What the change of a schema means: as a whole, and change by change.

mod effect;
mod group;
mod role;

use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_schema::{Callers, Domain, Pair, Reason, Unknown, Witness};

use crate::change::{Class, Effect, Judgement, Kind};
use crate::compare::Options;
use crate::difference::{Difference, applied, differences};
use crate::rename::Rename;
use effect::{Path, declares};
use group::{Group, grouped};
use role::{Role, brings_header, is_reordering};

/// The most changes of one schema that are judged one by one.
const MAX_JUDGED: usize = 48;

/// What the change of a schema means as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaDrift {
    /// For callers that send declared keys only.
    pub declared: Judgement,
    /// For callers that send whatever is accepted.
    pub open: Judgement,
    /// What recorded calls show.
    pub replayed: Option<Replayed>,
}

impl SchemaDrift {
    /// The judgement that counts for these callers.
    #[must_use]
    pub const fn for_callers(&self, callers: Callers) -> &Judgement {
        match callers {
            Callers::Declared => &self.declared,
            Callers::Open => &self.open,
        }
    }
}

/// What replaying recorded calls showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// Recorded calls of the tool.
    pub calls: usize,
    /// Those the old schema accepts.
    pub accepted: usize,
    /// Those of them the new schema rejects.
    pub rejected: usize,
    /// The first of those.
    pub first: Option<Witness>,
    /// What calls say that the tool no longer reads, in the order of the calls.
    pub lost: Vec<LostValue>,
}

/// A value of a recorded call that is accepted and ignored now.
#[derive(Clone, Debug, PartialEq)]
pub struct LostValue {
    /// The place of the call among the recorded calls of the tool, from 0.
    pub index: usize,
    /// The call.
    pub call: Value,
    /// Where the value stands in it.
    pub pointer: Pointer,
}

/// Who is on the other side of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Callers send it: what was accepted must be accepted.
    Input,
    /// Callers receive it: what may come must have been possible.
    Output,
}

/// One change of a schema, with places inside the schema.
#[derive(Clone, Debug)]
pub(crate) struct SchemaChange {
    pub(crate) rule: &'static str,
    pub(crate) pointer: Pointer,
    pub(crate) kind: Kind,
    pub(crate) class: Class,
    pub(crate) judgement: Option<Judgement>,
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
    pub(crate) rename: Option<Rename>,
    pub(crate) effect: Option<Effect>,
    pub(crate) message: String,
}

/// Compares two schemas, as a whole and change by change.
pub(crate) fn compare(
    old: &Value,
    new: &Value,
    direction: Direction,
    options: &Options,
    calls: &[Value],
) -> (SchemaDrift, Vec<SchemaChange>) {
    let mut comparison = Comparison {
        old,
        new,
        direction,
        options,
        pair: pair(old, new, direction, options),
    };
    let (mut drift, vanished) = comparison.whole(calls);
    if vanished {
        return (drift, vec![vanished_contract(old, new)]);
    }
    let changes = comparison.changes(new, &drift);
    if let Some(replayed) = &mut drift.replayed {
        replayed.lost = comparison.lost(&changes, calls);
    }
    (drift, changes)
}

fn pair<'s>(
    old: &'s Value,
    new: &'s Value,
    direction: Direction,
    options: &Options,
) -> Result<Pair<'s>, Unknown> {
    let is_object = |schema: &Value| schema.get("type").is_some_and(|word| word == "object");
    let (from, to, domain) = match direction {
        Direction::Input => (old, new, Domain::Objects),
        // A result that is said to be an object on one side is one on the other.
        Direction::Output if is_object(old) || is_object(new) => (new, old, Domain::Objects),
        Direction::Output => (new, old, Domain::Values),
    };
    Pair::new(from, to, domain, options.formats, options.budget)
}

fn vanished_contract(old: &Value, new: &Value) -> SchemaChange {
    SchemaChange {
        rule: "contract-vanished",
        pointer: Pointer::root(),
        kind: Kind::Changed,
        class: Class::Trust,
        judgement: None,
        before: Some(old.clone()),
        after: Some(new.clone()),
        rename: None,
        effect: None,
        message: "the schema accepts everything now: nothing is promised any more".to_owned(),
    }
}

struct Comparison<'s> {
    old: &'s Value,
    new: &'s Value,
    direction: Direction,
    options: &'s Options,
    pair: Result<Pair<'s>, Unknown>,
}

impl Comparison<'_> {
    fn whole(&mut self, calls: &[Value]) -> (SchemaDrift, bool) {
        let pair = match &mut self.pair {
            Ok(pair) => pair,
            Err(unknown) => {
                let drift = SchemaDrift {
                    declared: Judgement::Unknown(unknown.clone()),
                    open: Judgement::Unknown(unknown.clone()),
                    replayed: None,
                };
                return (drift, false);
            }
        };
        let mut drift = SchemaDrift {
            declared: pair.verdict(Callers::Declared).into(),
            open: pair.verdict(Callers::Open).into(),
            replayed: None,
        };
        if self.direction == Direction::Input && !calls.is_empty() {
            let replay = pair.replay(calls);
            let (accepted, rejected) = (replay.accepted, replay.rejected.len());
            let first = replay.rejected.first().copied().cloned();
            let first = first.and_then(|call| pair.witness_of(&call, &Pointer::root()));
            if let Some(witness) = &first {
                // A call that was really made is the best witness.
                drift.declared = Judgement::Breaking(witness.clone());
                drift.open = Judgement::Breaking(witness.clone());
            }
            drift.replayed = Some(Replayed {
                calls: calls.len(),
                accepted,
                rejected,
                first,
                lost: Vec::new(),
            });
        }
        let vanished = match self.direction {
            Direction::Input => pair.contract_vanished(),
            Direction::Output => pair.contract_appeared(),
        };
        (drift, vanished)
    }

    fn changes(&mut self, new: &Value, drift: &SchemaDrift) -> Vec<SchemaChange> {
        let found = differences(self.old, new);
        let groups = grouped(&found, self.old, new);
        // A definition accepts nothing by itself; whoever refers to it may need it.
        let supplied = found
            .iter()
            .filter(|it| it.before.is_none() && Role::of(&it.pointer).is_definition());
        let supplied: Vec<&Difference<'_>> = supplied.collect();
        let whole = drift.for_callers(self.options.callers).clone();
        let mut changes = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            changes.push(self.change(group, &supplied, &whole, index < MAX_JUDGED));
        }
        self.name_a_culprit(&mut changes, &whole);
        changes
    }

    fn change(
        &mut self,
        group: &Group<'_, '_>,
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
        let role = Role::of(&first.pointer);
        let kind = match (&group.rename, first.before, first.after) {
            (Some(_), _, _) => Kind::Renamed,
            (None, None, _) => Kind::Added,
            (None, _, None) => Kind::Removed,
            (None, Some(_), Some(_)) => Kind::Changed,
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
            class: Class::Behavioural,
            judgement: None,
            before: first.before.cloned(),
            after: first.after.or(renamed_to).cloned(),
            rename: group.rename.clone(),
            effect: None,
            message: role.message(kind, first, group.rename.as_ref(), self.direction),
        };
        let header = group.parts.iter().any(|part| brings_header(part));
        if header {
            change.class = Class::Trust;
            change.rule = "x-mcp-header";
            change.message =
                "an argument is copied into an HTTP header now, where others read it".to_owned();
        }
        let input = self.direction == Direction::Input;
        if role.keyword == "default" && input && !self.is_out_of_time() {
            change.effect = self.of_default(&first.pointer);
        }
        if !role.decides(self.options.formats) {
            return change;
        }
        if role.keyword == "enum" && is_reordering(first) {
            change.rule = "enum-order";
            "the same values in another order".clone_into(&mut change.message);
            return change;
        }
        let (judgement, class) = if kind != Kind::Changed && role.is_definition() {
            (Judgement::Equivalent, Class::Equivalent)
        } else if judged && !self.is_out_of_time() {
            self.alone_in_time(group, supplied, whole)
        } else {
            self.by_the_whole(whole)
        };
        // What is written into a header is a matter of trust, and may break callers besides.
        change.class = if header {
            class.max(Class::Trust)
        } else {
            class
        };
        let dropped = input && role.is_property() && first.after.is_none();
        if dropped && class <= Class::Behavioural && !self.is_still_declared(&first.pointer) {
            change.class = change.class.max(Class::Ignored);
            if !header {
                let message = &mut change.message;
                message.push_str(": still accepted, and no longer read");
            }
            if !self.is_out_of_time() {
                change.effect = self.of_ignored(&first.pointer);
            }
        }
        change.judgement = Some(judgement);
        change
    }

    fn of_default(&mut self, at: &Pointer) -> Option<Effect> {
        let pair = self.pair.as_mut().ok()?;
        effect::default(pair, (self.old, self.new), at, self.options)
    }

    fn of_ignored(&mut self, at: &Pointer) -> Option<Effect> {
        let pair = self.pair.as_mut().ok()?;
        effect::ignored(pair, (self.old, self.new), at, self.options)
    }

    /// Whether the new schema still says something about the property at a place of the old one.
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

    /// What recorded calls say that is accepted and ignored now.
    fn lost(&mut self, changes: &[SchemaChange], calls: &[Value]) -> Vec<LostValue> {
        let ignored = changes.iter().filter(|it| it.class == Class::Ignored);
        let paths: Vec<Path> = ignored.filter_map(|it| Path::of(&it.pointer)).collect();
        let (false, Ok(pair)) = (paths.is_empty(), &mut self.pair) else {
            return Vec::new();
        };
        let mut lost = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let mut places = paths.iter().filter_map(|path| path.find(call));
            let Some(first) = places.next() else {
                continue;
            };
            if !pair.accepted_before(call) {
                continue;
            }
            lost.extend(
                std::iter::once(first)
                    .chain(places)
                    .map(|pointer| LostValue {
                        index,
                        call: call.clone(),
                        pointer,
                    }),
            );
        }
        lost
    }

    /// What one change would mean if it were the only one; without the time to find out, what the whole
    /// change means.
    fn alone_in_time(
        &mut self,
        group: &Group<'_, '_>,
        supplied: &[&Difference<'_>],
        whole: &Judgement,
    ) -> (Judgement, Class) {
        let (judgement, class) = self.alone(group, supplied, whole);
        if self.is_out_of_time() && class != Class::Breaking {
            return self.by_the_whole(whole);
        }
        (judgement, class)
    }

    fn is_out_of_time(&self) -> bool {
        self.options.budget.time.is_over()
    }

    /// A single change is taken for what all changes together are. That nothing is lost says little of one
    /// change: without the time to look at it, it is unknown.
    fn by_the_whole(&self, whole: &Judgement) -> (Judgement, Class) {
        if self.is_out_of_time() && matches!(whole, Judgement::Compatible(None)) {
            let unknown = Unknown {
                reason: Reason::Time,
                obstacles: Vec::new(),
            };
            return (Judgement::Unknown(unknown), Class::Unknown);
        }
        (whole.clone(), self.class(whole))
    }

    /// What one change would mean if it were the only one, as far as the others let it stand.
    fn alone(
        &mut self,
        group: &Group<'_, '_>,
        supplied: &[&Difference<'_>],
        whole: &Judgement,
    ) -> (Judgement, Class) {
        let nothing = (Judgement::Compatible(None), Class::Equivalent);
        if matches!(whole, Judgement::Equivalent) {
            return (Judgement::Equivalent, Class::Equivalent);
        }
        let parts = supplied.iter().chain(&group.parts).chain(&group.beside);
        let parts: Vec<&Difference<'_>> = parts.copied().collect();
        let changed = applied(self.old, &parts);
        let mut alone = match pair(self.old, &changed, self.direction, self.options) {
            Ok(pair) => pair,
            // One change without the others may be a schema that cannot be read. All of them together
            // can be read, and nothing is lost by them.
            Err(_) if matches!(whole, Judgement::Compatible(_)) => return self.by_the_whole(whole),
            Err(unknown) => return (Judgement::Unknown(unknown), Class::Unknown),
        };
        let mut judgement = Judgement::from(alone.verdict(self.options.callers));
        let input = self.direction == Direction::Input;
        if input && matches!(judgement, Judgement::Compatible(None)) {
            // What only undeclared keys can tell is told by them.
            let open = Judgement::from(alone.verdict(Callers::Open));
            match open {
                Judgement::Compatible(Some(_)) => judgement = open,
                // Nobody who sends declared keys notices, but it is not the same contract.
                Judgement::Breaking(_) => return (judgement, Class::Behavioural),
                // Nothing is lost, and it is not proven that nothing is gained.
                Judgement::Compatible(None) => return (judgement, Class::Widened),
                _ => {}
            }
        }
        match (judgement, whole) {
            // Another change makes up for it.
            (Judgement::Breaking(_) | Judgement::Unknown(_), Judgement::Compatible(_)) => nothing,
            (Judgement::Breaking(witness), _) => {
                let near = group.parts.first().map(|part| part.pointer.clone());
                match self.still_breaks(&witness, &near.unwrap_or_default()) {
                    Some(witness) => (Judgement::Breaking(witness), Class::Breaking),
                    None => nothing,
                }
            }
            (Judgement::Compatible(Some(gained)), _) if input => {
                let real = self.is_accepted_now(&gained);
                (
                    Judgement::Compatible(real.then_some(gained)),
                    Class::Widened,
                )
            }
            (judgement, _) => {
                let class = self.class(&judgement);
                (judgement, class)
            }
        }
    }

    /// The witness of a single change, if it is one of the whole too; named after the place nearest
    /// to the change.
    fn still_breaks(&mut self, witness: &Witness, near: &Pointer) -> Option<Witness> {
        let pair = self.pair.as_mut().ok()?;
        let possible = pair.accepted_before(&witness.value);
        pair.witness_of(&witness.value, near).filter(|_| possible)
    }

    fn is_accepted_now(&mut self, value: &Value) -> bool {
        match &mut self.pair {
            Ok(pair) => pair.witness_of(value, &Pointer::root()).is_none(),
            Err(_) => false,
        }
    }

    fn class(&self, judgement: &Judgement) -> Class {
        match (judgement, self.direction) {
            (Judgement::Breaking(_), _) => Class::Breaking,
            (Judgement::Unknown(_), _) => Class::Unknown,
            (Judgement::Compatible(Some(_)), Direction::Input) => Class::Widened,
            // A result that promises more takes nothing from those who read it.
            (Judgement::Compatible(Some(_)), Direction::Output) => Class::Behavioural,
            (Judgement::Equivalent | Judgement::Compatible(None), _) => Class::Equivalent,
        }
    }

    /// Where the whole breaks, or is unknown, and no single change does, the change nearest to the
    /// place of the witness answers for it.
    fn name_a_culprit(&self, changes: &mut [SchemaChange], whole: &Judgement) {
        let class = self.class(whole);
        if !matches!(class, Class::Breaking | Class::Unknown)
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
