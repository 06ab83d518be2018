use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::comparison_policy::{Callers, FormatMode, ValueDomain};
use crate::obstacle::{Obstacle, SchemaSide, find_obstacles};
use crate::prepare::{Draft, PrepareError, close, lift};
use crate::set::{Arena, CompileError, NodeId, compile};
use crate::verdict::{Unknown, UnknownReason};
use crate::witness::{CompiledSchema, Rejection, is_affordable};

/// One schema in the forms a comparison needs, each made when it is first needed.
#[derive(Debug)]
pub(crate) struct PreparedSchema<'s> {
    pub(crate) raw: &'s Value,
    pub(crate) lifted: Value,
    pub(crate) open_id: NodeId,
    pub(crate) closed: Option<ClosedSchema>,
    side: SchemaSide,
    validator: Option<Result<CompiledSchema, String>>,
}

/// A schema narrowed to declared keys.
#[derive(Debug)]
pub(crate) struct ClosedSchema {
    pub(crate) schema: Value,
    pub(crate) id: NodeId,
    /// Whether the closed schema may accept values that the open one rejects.
    pub(crate) may_widen: bool,
    validator: Option<Result<CompiledSchema, String>>,
}

impl<'s> PreparedSchema<'s> {
    pub(crate) fn new(
        raw: &'s Value,
        side: SchemaSide,
        formats: FormatMode,
        arena: &mut Arena,
    ) -> Result<Self, Unknown> {
        let lifted = lift(raw, formats).map_err(|error| prepare_failure(error, side))?;
        let open_id = compile(arena, &lifted).map_err(|error| compile_failure(&error, side))?;
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
    pub(crate) fn close(&mut self, domain: ValueDomain, arena: &mut Arena) -> Result<(), Unknown> {
        if self.closed.is_some() {
            return Ok(());
        }
        let schema = close(&self.lifted, domain);
        let changed = schema != self.lifted;
        let id = if changed {
            compile(arena, &schema).map_err(|error| compile_failure(&error, self.side))?
        } else {
            self.open_id
        };
        let widens = changed && !find_obstacles(&self.lifted, self.side, &["oneOf"]).is_empty();
        self.closed = Some(ClosedSchema {
            schema,
            id,
            may_widen: widens,
            validator: None,
        });
        Ok(())
    }

    /// The schema in its own draft, as the validator reads it.
    pub(crate) fn validator(&mut self, formats: FormatMode) -> Result<&CompiledSchema, String> {
        let (raw, lifted) = (self.raw, &self.lifted);
        // Annotations may be invalid, such as a list for a description.
        let build = || {
            if !is_affordable(lifted) {
                return Err("too many schemas look at one value".to_owned());
            }
            CompiledSchema::new(raw, Draft::of(raw), formats)
                .or_else(|_| CompiledSchema::new(lifted, Draft::Draft2020, formats))
        };
        let built = self.validator.get_or_insert_with(build);
        built.as_ref().map_err(Clone::clone)
    }

    /// Builds what checking a value for these callers needs.
    pub(crate) fn build_validators(
        &mut self,
        callers: Callers,
        formats: FormatMode,
    ) -> Result<(), String> {
        self.validator(formats)?;
        if let (Callers::Declared, Some(closed)) = (callers, &mut self.closed) {
            let schema = &closed.schema;
            let build = || CompiledSchema::new(schema, Draft::Draft2020, formats);
            let built = closed.validator.get_or_insert_with(build);
            built.as_ref().map(|_| ()).map_err(Clone::clone)?;
        }
        Ok(())
    }

    /// Whether the validator accepts a value in the draft the schema was written in, and for
    /// declared callers under the narrowed schema too. A validator that was not built accepts nothing.
    pub(crate) fn accepts(&self, value: &Value, callers: Callers) -> bool {
        let accepted = |validator: Option<&Result<CompiledSchema, String>>| matches!(validator, Some(Ok(schema)) if schema.accepts(value));
        accepted(self.validator.as_ref())
            && (callers == Callers::Open || accepted(self.closed_validator()))
    }

    /// Why the validator rejects a value.
    pub(crate) fn rejection(&self, value: &Value, callers: Callers) -> Option<Rejection> {
        let told = |validator: Option<&Result<CompiledSchema, String>>| match validator {
            Some(Ok(schema)) => schema.rejection(value),
            _ => None,
        };
        told(self.validator.as_ref()).or_else(|| {
            let declared = callers == Callers::Declared;
            told(self.closed_validator().filter(|_| declared))
        })
    }

    fn closed_validator(&self) -> Option<&Result<CompiledSchema, String>> {
        self.closed.as_ref()?.validator.as_ref()
    }
}

fn compile_failure(error: &CompileError, side: SchemaSide) -> Unknown {
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
        reason: UnknownReason::Invalid(error.to_string()),
    }
}

fn prepare_failure(error: PrepareError, side: SchemaSide) -> Unknown {
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
        reason: UnknownReason::Invalid(message),
        obstacles: vec![Obstacle {
            side,
            pointer,
            keyword,
        }],
    }
}
