use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::obstacle::{Obstacle, Side, places};
use crate::policy::{Callers, Domain, Formats};
use crate::prepare::{Draft, PrepareError, close, lift};
use crate::set::{Arena, CompileError, Id, compile};
use crate::verdict::{Reason, Unknown};
use crate::witness::{Rejection, Schema, is_affordable};

/// One schema in the forms a comparison needs, each made when it is first needed.
#[derive(Debug)]
pub(crate) struct Document<'s> {
    pub(crate) raw: &'s Value,
    pub(crate) lifted: Value,
    pub(crate) open_id: Id,
    pub(crate) closed: Option<Closed>,
    side: Side,
    validator: Option<Result<Schema, String>>,
}

/// A schema narrowed to declared keys.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) schema: Value,
    pub(crate) id: Id,
    /// Whether closing may let in what was rejected before.
    pub(crate) widens: bool,
    validator: Option<Result<Schema, String>>,
}

impl<'s> Document<'s> {
    pub(crate) fn new(
        raw: &'s Value,
        side: Side,
        formats: Formats,
        arena: &mut Arena,
    ) -> Result<Self, Unknown> {
        let lifted = lift(raw, formats).map_err(|error| unreadable(error, side))?;
        let open_id = compile(arena, &lifted).map_err(|error| not_compiled(&error, side))?;
        Ok(Self {
            raw,
            lifted,
            open_id,
            closed: None,
            side,
            validator: None,
        })
    }

    /// Narrows the schema to declared keys, once.
    pub(crate) fn close(&mut self, domain: Domain, arena: &mut Arena) -> Result<(), Unknown> {
        if self.closed.is_some() {
            return Ok(());
        }
        let schema = close(&self.lifted, domain);
        let changed = schema != self.lifted;
        let id = if changed {
            compile(arena, &schema).map_err(|error| not_compiled(&error, self.side))?
        } else {
            self.open_id
        };
        let widens = changed && !places(&self.lifted, self.side, &["oneOf"]).is_empty();
        self.closed = Some(Closed {
            schema,
            id,
            widens,
            validator: None,
        });
        Ok(())
    }

    /// The schema in its own draft, as the validator reads it.
    pub(crate) fn validator(&mut self, formats: Formats) -> Result<&Schema, String> {
        let (raw, lifted) = (self.raw, &self.lifted);
        // A document may be wrong in what only informs, such as a list for a description.
        let build = || {
            if !is_affordable(lifted) {
                return Err("too many schemas look at one value".to_owned());
            }
            Schema::new(raw, Draft::of(raw), formats)
                .or_else(|_| Schema::new(lifted, Draft::Draft2020, formats))
        };
        let built = self.validator.get_or_insert_with(build);
        built.as_ref().map_err(Clone::clone)
    }

    /// Builds what checking a value for these callers needs.
    pub(crate) fn build_validators(
        &mut self,
        callers: Callers,
        formats: Formats,
    ) -> Result<(), String> {
        self.validator(formats)?;
        if let (Callers::Declared, Some(closed)) = (callers, &mut self.closed) {
            let schema = &closed.schema;
            let build = || Schema::new(schema, Draft::Draft2020, formats);
            let built = closed.validator.get_or_insert_with(build);
            built.as_ref().map(|_| ()).map_err(Clone::clone)?;
        }
        Ok(())
    }

    /// Whether the validator accepts a value in the draft the schema was written in, and for
    /// declared callers under the narrowed schema too. What was not built accepts nothing.
    pub(crate) fn accepts(&self, value: &Value, callers: Callers) -> bool {
        let accepted = |validator: Option<&Result<Schema, String>>| matches!(validator, Some(Ok(schema)) if schema.accepts(value));
        accepted(self.validator.as_ref())
            && (callers == Callers::Open || accepted(self.closed_validator()))
    }

    /// Why the validator rejects a value.
    pub(crate) fn rejection(&self, value: &Value, callers: Callers) -> Option<Rejection> {
        let told = |validator: Option<&Result<Schema, String>>| match validator {
            Some(Ok(schema)) => schema.rejection(value),
            _ => None,
        };
        told(self.validator.as_ref()).or_else(|| {
            let declared = callers == Callers::Declared;
            told(self.closed_validator().filter(|_| declared))
        })
    }

    fn closed_validator(&self) -> Option<&Result<Schema, String>> {
        self.closed.as_ref()?.validator.as_ref()
    }
}

fn not_compiled(error: &CompileError, side: Side) -> Unknown {
    let keyword = match error {
        CompileError::OutOfRange { keyword } => keyword.clone(),
        CompileError::TooDeep => String::new(),
    };
    Unknown {
        obstacles: vec![Obstacle {
            side,
            pointer: Pointer::root(),
            keyword,
        }],
        reason: Reason::Invalid(error.to_string()),
    }
}

fn unreadable(error: PrepareError, side: Side) -> Unknown {
    let message = error.to_string();
    let (pointer, keyword) = match error {
        PrepareError::Invalid {
            pointer, keyword, ..
        } => (pointer, keyword),
        PrepareError::NotASchema { pointer, .. } => (pointer, String::new()),
        PrepareError::Unresolved { pointer, .. } => (pointer, "$ref".to_owned()),
        PrepareError::Mixed { pointer, keyword } => (pointer, keyword),
        PrepareError::TooLarge => (Pointer::root(), String::new()),
    };
    Unknown {
        reason: Reason::Invalid(message),
        obstacles: vec![Obstacle {
            side,
            pointer,
            keyword,
        }],
    }
}
