use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_model::reply::{ArgumentsClass, CallIdClass};

use super::{MAX_WORDS, OTHERS, bump, first_of_kind, keep_smallest, shorten};
use crate::argument_shape::generalize_path;
use crate::snapshot::{CaseContract, FaultCount, ShapeVariant, ToolContract};
use crate::tooldrift::{ToolCallShape, shape_of};
use crate::trial::{MeasuredReply, ObservedCall};
use crate::trial_mark::TrialMark;

/// The maximum number of variants of the seven fields that are kept.
const MAX_VARIANTS: usize = 64;

/// Collects how one tool of the suite is called.
pub(super) struct ToolBuilder<'s> {
    name: &'s str,
    schema: &'s Value,
    contract: ToolContract,
    faults: BTreeMap<(String, String), (u64, String)>,
    variants: BTreeMap<ToolCallShape, u64>,
}

impl<'s> ToolBuilder<'s> {
    pub(super) fn new(name: &'s str, schema: &'s Value) -> Self {
        Self {
            name,
            schema,
            contract: ToolContract::default(),
            faults: BTreeMap::new(),
            variants: BTreeMap::new(),
        }
    }

    /// Adds a reply, and returns its marks for the tool.
    pub(super) fn observe(&mut self, reply: &MeasuredReply, case: &CaseContract) -> Vec<TrialMark> {
        let calls: Vec<&ObservedCall> = reply
            .calls
            .iter()
            .filter(|it| it.name == self.name)
            .collect();
        let asked = case.constrains_tool(self.name);
        if asked {
            self.contract.emitted.count(!calls.is_empty());
        }
        if asked || !calls.is_empty() {
            self.variant(shape_of(reply, self.name));
        }
        if calls.is_empty() {
            return Vec::new();
        }
        let arity = u64::try_from(calls.len()).unwrap_or(u64::MAX);
        *self.contract.parallel_arity.entry(arity).or_default() += 1;
        let mut marks = vec![TrialMark::Called(self.name.to_owned())];
        let (mut faults, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for call in calls {
            let seen = self.call(call);
            let mark =
                |is: bool, mark: fn(String) -> TrialMark| is.then(|| mark(self.name.to_owned()));
            marks.push(TrialMark::Encoded(call.class, self.name.to_owned()));
            marks.extend(mark(!seen.valid, TrialMark::Invalid));
            marks.extend(mark(seen.extra, TrialMark::Extra));
            faults.extend(seen.faults);
            keys.extend(seen.keys);
        }
        let tool = || self.name.to_owned();
        marks.extend(
            first_of_kind(faults).map(|(pointer, keyword)| TrialMark::Fault {
                tool: tool(),
                keyword: shorten(&keyword),
                pointer: shorten(&pointer),
            }),
        );
        marks.extend(first_of_kind(keys).map(|pointer| TrialMark::ExtraKey {
            tool: tool(),
            pointer: shorten(&pointer),
        }));
        marks
    }

    pub(super) fn finish(mut self) -> ToolContract {
        self.contract.arguments.finish();
        let faults = self.faults.into_iter();
        self.contract.faults = faults
            .map(|((pointer, keyword), (calls, message))| FaultCount {
                pointer,
                keyword,
                calls,
                message,
            })
            .collect();
        let variants = self.variants.into_iter();
        self.contract.variants = variants
            .map(|(shape, trials)| ShapeVariant { trials, shape })
            .collect();
        self.contract
    }

    fn call(&mut self, call: &ObservedCall) -> CallObservation {
        self.contract.calls += 1;
        bump(&mut self.contract.encodings, call.class.as_str());
        bump(
            &mut self.contract.id_classes,
            CallIdClass::of(call.id.as_ref()).as_str(),
        );
        let shape = &mut self.contract.arguments;
        let arguments = call.value.as_ref();
        let keys = arguments.map(|it| shape.observe(it, self.schema));
        let keys = keys.unwrap_or_default();
        let has = |keywords: &[&str]| {
            let mut faults = call.faults.iter();
            faults.any(|it| keywords.contains(&it.keyword.as_str()))
        };
        let extra = !keys.is_empty() || has(&["additionalProperties", "unevaluatedProperties"]);
        let valid = call.value.is_some() && call.faults.is_empty();
        self.contract.missing_required.count(has(&["required"]));
        self.contract.extra_keys.count(extra);
        self.contract.wrong_type.count(has(&["type"]));
        self.contract.schema_valid.count(valid);
        CallObservation {
            valid,
            extra,
            faults: self.faults(call),
            keys,
        }
    }

    /// Each fault counts once per call, however many items of an array have it.
    fn faults(&mut self, call: &ObservedCall) -> BTreeSet<(String, String)> {
        let mut told: BTreeMap<(String, String), String> = BTreeMap::new();
        for fault in &call.faults {
            let pointer = generalize_path(&fault.pointer, call.value.as_ref());
            let message = told.entry((pointer, fault.keyword.clone())).or_default();
            keep_smallest(message, &fault.message);
        }
        if call.value.is_none() {
            let place = (String::new(), "arguments".to_owned());
            told.insert(place, unreadable(call.class));
        }
        let places = told.keys().cloned().collect();
        for (place, message) in told {
            let room = self.faults.len() < MAX_WORDS || self.faults.contains_key(&place);
            let place = if room {
                place
            } else {
                (String::new(), OTHERS.to_owned())
            };
            let (calls, kept) = self.faults.entry(place).or_default();
            *calls += 1;
            keep_smallest(kept, &message);
        }
        places
    }

    fn variant(&mut self, shape: ToolCallShape) {
        if self.variants.len() >= MAX_VARIANTS && !self.variants.contains_key(&shape) {
            self.contract.variants_dropped += 1;
            return;
        }
        *self.variants.entry(shape).or_default() += 1;
    }
}

struct CallObservation {
    valid: bool,
    extra: bool,
    /// The schema violations, by pointer and keyword.
    faults: BTreeSet<(String, String)>,
    /// The arguments that the schema does not name.
    keys: BTreeSet<String>,
}

fn unreadable(class: ArgumentsClass) -> String {
    format!("the arguments are not an object: {}", class.as_str())
}
