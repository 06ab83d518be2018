use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::keywords::{Position, position};
use toolwarden_schema::{Callers, Domain, Formats, Pair, Unknown, Witness};

use crate::change::{Class, Judgement, Kind};
use crate::compare::Options;
use crate::difference::{Difference, applied, differences};
use crate::rename::{Candidate, Rename, matches};

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
        direction,
        options,
        pair: pair(old, new, direction, options),
    };
    let (drift, vanished) = comparison.whole(calls);
    if vanished {
        return (drift, vec![vanished_contract(old, new)]);
    }
    let changes = comparison.changes(new, &drift);
    (drift, changes)
}

fn pair<'s>(
    old: &'s Value,
    new: &'s Value,
    direction: Direction,
    options: &Options,
) -> Result<Pair<'s>, Unknown> {
    let (from, to, domain) = match direction {
        Direction::Input => (old, new, Domain::Objects),
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
        message: "the schema accepts everything now: nothing is promised any more".to_owned(),
    }
}

struct Comparison<'s> {
    old: &'s Value,
    direction: Direction,
    options: &'s Options,
    pair: Result<Pair<'s>, Unknown>,
}

/// Differences that are one change, and what they do to the schema.
struct Group<'d, 'v> {
    parts: Vec<&'d Difference<'v>>,
    rename: Option<Rename>,
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
            let first = first.and_then(|call| pair.witness_of(&call));
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
            .filter(|it| it.before.is_none() && is_definition(&role(&it.pointer)));
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
        let role = role(&first.pointer);
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
            message: message(&role, kind, first, group.rename.as_ref()),
        };
        if mentions_header(first) {
            change.class = Class::Trust;
            change.rule = "x-mcp-header";
            change.message =
                "an argument is copied into an HTTP header now, where others read it".to_owned();
            return change;
        }
        if !role.decides(self.options.formats) {
            return change;
        }
        if role.keyword == "enum" && reordered(first) {
            change.rule = "enum-order";
            "the same values in another order".clone_into(&mut change.message);
            return change;
        }
        let judgement = if kind != Kind::Changed && is_definition(&role) {
            Judgement::Equivalent
        } else if judged {
            self.alone(group, supplied, whole)
        } else {
            whole.clone()
        };
        change.class = self.class(&judgement);
        let dropped = kind == Kind::Removed && role.holds_schema && role.keyword == "properties";
        if dropped && matches!(judgement, Judgement::Compatible(None)) {
            // The value passes and nobody says any more that it is read.
            change.class = Class::Behavioural;
            change
                .message
                .push_str(": still accepted, no longer described");
        }
        change.judgement = Some(judgement);
        change
    }

    /// What one change would mean if it were the only one, as far as the others let it stand.
    fn alone(
        &mut self,
        group: &Group<'_, '_>,
        supplied: &[&Difference<'_>],
        whole: &Judgement,
    ) -> Judgement {
        if matches!(whole, Judgement::Equivalent) {
            return Judgement::Equivalent;
        }
        let parts: Vec<&Difference<'_>> = supplied.iter().chain(&group.parts).copied().collect();
        let changed = applied(self.old, &parts);
        let judgement = match pair(self.old, &changed, self.direction, self.options) {
            Ok(mut pair) => Judgement::from(pair.verdict(self.options.callers)),
            Err(unknown) => Judgement::Unknown(unknown),
        };
        match (judgement, whole) {
            // Another change makes up for it.
            (Judgement::Breaking(_) | Judgement::Unknown(_), Judgement::Compatible(gained)) => {
                Judgement::Compatible(gained.clone())
            }
            (Judgement::Breaking(witness), _) => {
                let still = match &mut self.pair {
                    Ok(pair) => pair.witness_of(&witness.value),
                    Err(_) => None,
                };
                still.map_or(Judgement::Compatible(None), Judgement::Breaking)
            }
            (judgement, _) => judgement,
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

/// What the place of a difference is in a schema.
struct Role {
    keyword: String,
    rule: &'static str,
    /// Whether the difference is a whole schema under the keyword, such as a property.
    holds_schema: bool,
    /// The name of the innermost property on the way.
    subject: Option<String>,
}

/// Keywords that decide about a value by themselves.
const ASSERTIONS: &[&str] = &[
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "required",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
];

/// Keywords under which schemas stand, and the name a change there goes by.
const APPLICATORS: &[&str] = &[
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
];

/// Keywords that inform a reader.
const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "example",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];

impl Role {
    fn decides(&self, formats: Formats) -> bool {
        self.holds_schema
            || ASSERTIONS.contains(&self.keyword.as_str())
            || APPLICATORS.contains(&self.keyword.as_str())
            || (formats == Formats::Assert && self.keyword == "format")
            || self.keyword.is_empty()
    }
}

/// Whether the place is where definitions stand, or one of them as a whole.
fn is_definition(role: &Role) -> bool {
    matches!(role.keyword.as_str(), "$defs" | "definitions")
}

/// Walks a pointer by the positions of keywords to what it names.
fn role(pointer: &Pointer) -> Role {
    let segments: Vec<String> = pointer.segments().collect();
    let mut rest = segments.iter();
    let mut role = Role {
        keyword: String::new(),
        rule: "schema",
        holds_schema: true,
        subject: None,
    };
    while let Some(keyword) = rest.next() {
        role.keyword.clone_from(keyword);
        let known = [ASSERTIONS, APPLICATORS, ANNOTATIONS];
        let found = known
            .iter()
            .flat_map(|list| list.iter())
            .find(|it| *it == keyword);
        role.rule = found.copied().unwrap_or("keyword");
        role.holds_schema = false;
        let inside = match position(keyword) {
            None => return role,
            Some(Position::Map) => rest.next(),
            Some(Position::List) => rest.next(),
            Some(Position::OneOrList) => {
                let next = rest.clone().next();
                let index = next.filter(|next| next.bytes().all(|byte| byte.is_ascii_digit()));
                if index.is_some() {
                    rest.next();
                }
                role.holds_schema = true;
                continue;
            }
            Some(Position::One) => {
                role.holds_schema = true;
                continue;
            }
        };
        let Some(inside) = inside else {
            return role;
        };
        if matches!(keyword.as_str(), "properties" | "patternProperties") {
            role.subject = Some(inside.clone());
        }
        role.holds_schema = true;
    }
    role
}

fn message(
    role: &Role,
    kind: Kind,
    difference: &Difference<'_>,
    rename: Option<&Rename>,
) -> String {
    if let Some(rename) = rename {
        return format!("`{}` was renamed to `{}`", rename.from, rename.to);
    }
    let of = match &role.subject {
        Some(subject) => format!(" of `{subject}`"),
        None => String::new(),
    };
    if role.holds_schema && role.keyword == "properties" {
        let subject = role.subject.as_deref().unwrap_or_default();
        return format!("`{subject}` was {}", kind.as_str());
    }
    match (role.keyword.as_str(), difference.before, difference.after) {
        ("required", before, after) => {
            let names = |value: Option<&Value>| -> Vec<String> {
                let names = value.and_then(Value::as_array).into_iter().flatten();
                names
                    .filter_map(Value::as_str)
                    .map(ToOwned::to_owned)
                    .collect()
            };
            let (before, after) = (names(before), names(after));
            let list = |from: &[String], minus: &[String]| {
                let names = from.iter().filter(|name| !minus.contains(name));
                names
                    .map(|name| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let (more, less) = (list(&after, &before), list(&before, &after));
            match (more.is_empty(), less.is_empty()) {
                (false, true) => format!("required now{of}: {more}"),
                (true, false) => format!("no longer required{of}: {less}"),
                (false, false) => format!("required now{of}: {more}; no longer: {less}"),
                (true, true) => format!("required{of} in another order"),
            }
        }
        ("enum", Some(Value::Array(before)), Some(Value::Array(after))) => {
            let list = |from: &[Value], minus: &[Value]| {
                let values = from.iter().filter(|value| !minus.contains(value));
                values
                    .take(5)
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let (more, less) = (list(after, before), list(before, after));
            match (more.is_empty(), less.is_empty()) {
                (true, _) => format!("values gone{of}: {less}"),
                (false, true) => format!("values added{of}: {more}"),
                (false, false) => format!("values added{of}: {more}; gone: {less}"),
            }
        }
        ("", _, _) => format!("the schema was {}", kind.as_str()),
        (keyword, _, _) => format!("`{keyword}`{of} was {}", kind.as_str()),
    }
}

/// Whether a difference brings in the keyword that copies an argument into a header.
fn mentions_header(difference: &Difference<'_>) -> bool {
    fn inside(value: &Value) -> bool {
        match value {
            Value::Object(members) => members
                .iter()
                .any(|(key, member)| key == "x-mcp-header" || inside(member)),
            Value::Array(items) => items.iter().any(inside),
            _ => false,
        }
    }
    let named = difference.pointer.segments().any(|it| it == "x-mcp-header");
    let after = difference.after.is_some_and(|after| named || inside(after));
    let before = difference
        .before
        .is_some_and(|before| named || inside(before));
    after && (!before || named)
}

fn reordered(difference: &Difference<'_>) -> bool {
    let (Some(Value::Array(before)), Some(Value::Array(after))) =
        (difference.before, difference.after)
    else {
        return false;
    };
    before.len() == after.len()
        && before.iter().all(|value| after.contains(value))
        && after.iter().all(|value| before.contains(value))
}

/// Differences put together where they are one change: a property that went and one that came,
/// with the list of required names if that only follows.
fn grouped<'d, 'v>(found: &'d [Difference<'v>], old: &Value, new: &Value) -> Vec<Group<'d, 'v>> {
    let mut groups: Vec<Group<'d, 'v>> = Vec::new();
    let mut used = vec![false; found.len()];
    let candidates = |gone: bool| -> Vec<(usize, Pointer, String)> {
        let all = found.iter().enumerate();
        let wanted = all.filter(|(_, it)| {
            if gone {
                it.after.is_none()
            } else {
                it.before.is_none()
            }
        });
        wanted
            .filter_map(|(index, it)| {
                let mut parent = it.pointer.clone();
                let name = parent.segments().last()?;
                parent.pop();
                let property = role(&it.pointer);
                let is_property = property.holds_schema && property.keyword == "properties";
                is_property.then_some((index, parent, name))
            })
            .collect()
    };
    let (gone, come) = (candidates(true), candidates(false));
    let mut parents: Vec<&Pointer> = gone.iter().map(|(_, parent, _)| parent).collect();
    parents.sort();
    parents.dedup();
    for parent in parents {
        let here = |named: &[(usize, Pointer, String)]| -> Vec<(usize, String)> {
            let here = named.iter().filter(|(_, at, _)| at == parent);
            here.map(|(index, _, name)| (*index, name.clone()))
                .collect()
        };
        let (gone, come) = (here(&gone), here(&come));
        let gone_named: Vec<Candidate<'_>> = gone
            .iter()
            .map(|(index, name)| candidate(found, *index, name))
            .collect();
        let come_named: Vec<Candidate<'_>> = come
            .iter()
            .map(|(index, name)| candidate(found, *index, name))
            .collect();
        for matched in matches(&gone_named, &come_named) {
            let index = |list: &[(usize, String)], wanted: &str| {
                list.iter()
                    .find(|(_, name)| name == wanted)
                    .map(|(index, _)| *index)
            };
            let (Some(from), Some(to)) = (index(&gone, matched.from), index(&come, matched.to))
            else {
                continue;
            };
            let mut parts = Vec::new();
            for at in [from, to] {
                parts.extend(found.get(at));
                if let Some(slot) = used.get_mut(at) {
                    *slot = true;
                }
            }
            groups.push(Group {
                parts,
                rename: Some(Rename::of_argument(&matched)),
            });
        }
        absorb_required(found, &mut used, &mut groups, parent, old, new);
    }
    for (difference, used) in found.iter().zip(used) {
        if !used {
            groups.push(Group {
                parts: vec![difference],
                rename: None,
            });
        }
    }
    groups.sort_by_key(|group| {
        let first = group.parts.first().map(|part| part.pointer.clone());
        (group.rename.is_none(), first)
    });
    groups
}

fn candidate<'n>(found: &'n [Difference<'_>], index: usize, name: &'n str) -> Candidate<'n> {
    let difference = found.get(index);
    let schema = difference.and_then(|it| it.before.or(it.after));
    let description = schema.and_then(|schema| schema.get("description"));
    Candidate {
        name,
        schema,
        description: description.and_then(Value::as_str).unwrap_or_default(),
    }
}

/// Counts the list of required names to the renames beside it, if they explain it.
fn absorb_required<'d, 'v>(
    found: &'d [Difference<'v>],
    used: &mut [bool],
    groups: &mut [Group<'d, 'v>],
    properties: &Pointer,
    old: &Value,
    new: &Value,
) {
    let mut holder = properties.clone();
    holder.pop();
    let place = holder.child("required");
    let Some(at) = found.iter().position(|it| it.pointer == place) else {
        return;
    };
    let names = |schema: &Value| -> Vec<String> {
        let list = place.find(schema).and_then(Value::as_array);
        let names = list.into_iter().flatten().filter_map(Value::as_str);
        names.map(ToOwned::to_owned).collect()
    };
    let mut expected = names(old);
    for rename in groups.iter().filter_map(|group| group.rename.as_ref()) {
        for name in expected.iter_mut().filter(|name| **name == rename.from) {
            name.clone_from(&rename.to);
        }
    }
    let mut actual = names(new);
    expected.sort();
    actual.sort();
    if expected != actual {
        return;
    }
    let renamed = groups.iter_mut().filter(|group| {
        let first = group.parts.first();
        group.rename.is_some()
            && first.is_some_and(|part| part.pointer.as_str().starts_with(properties.as_str()))
    });
    for group in renamed {
        group.parts.extend(found.get(at));
        if let Some(slot) = used.get_mut(at) {
            *slot = true;
        }
    }
}
