//! Checks rewritten schemas before they are written: what no reported loss explains must accept the
//! same values as before.
//!
//! This stands here and not in canon, which knows formats and no theory of schemas: the two crates
//! meet in the binary.

use serde_json::Value;
use thiserror::Error;
use toolwarden_canon::{Claim, Edit, Originals, SchemaSlot, Unaccounted};
use toolwarden_model::Format;
use toolwarden_schema::{Budget, Domain, Sameness, sameness};
use toolwarden_warden::ComparisonTime;

/// A rewrite that changes more than it says. It is a mistake in toolwarden.
#[derive(Debug, Error)]
pub(crate) enum BrokenRewrite {
    #[error("{0}")]
    Unaccounted(#[from] Unaccounted),
    #[error("it would reject {value}, which was valid before, and no reported loss says so")]
    Narrowed { value: Value },
    #[error("it would accept {value}, which was not valid before, and no reported loss says so")]
    Widened { value: Value },
}

/// Checks rewrites one after the other, all within one budget.
#[derive(Debug)]
pub(super) struct RewriteCheck {
    budget: Budget,
    undecided: usize,
}

impl RewriteCheck {
    pub(super) fn new() -> Self {
        Self {
            budget: ComparisonTime::ATTENDED.budget(),
            undecided: 0,
        }
    }

    /// Checks the account of one rewrite.
    pub(super) fn check(
        &mut self,
        originals: Originals,
        edits: &[Edit],
        written: &Value,
        format: Format,
    ) -> Result<(), BrokenRewrite> {
        let budget = Budget {
            time: self.budget.time.started(),
            ..self.budget
        };
        let mut undecided = false;
        originals.check(edits, written, format, |claim| {
            undecided |= !holds(&claim, budget)?;
            Ok::<(), BrokenRewrite>(())
        })?;
        self.undecided += usize::from(undecided);
        Ok(())
    }

    /// Rewritten tools of which the comparison could not tell everything.
    pub(super) const fn undecided(&self) -> usize {
        self.undecided
    }
}

/// Whether a claim is proven; one that is refuted is an error.
fn holds(claim: &Claim, budget: Budget) -> Result<bool, BrokenRewrite> {
    if let Some((before, after)) = &claim.inner
        && sameness(before, after, Domain::Values, budget) == Sameness::Same
    {
        return Ok(true);
    }
    let domain = match claim.slot {
        SchemaSlot::Inputs => Domain::Objects,
        SchemaSlot::Outputs => Domain::Values,
    };
    match sameness(&claim.before, &claim.after, domain, budget) {
        Sameness::Same => Ok(true),
        Sameness::Undecided => Ok(false),
        Sameness::Narrower(value) => Err(BrokenRewrite::Narrowed { value }),
        Sameness::Wider(value) => Err(BrokenRewrite::Widened { value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwarden_canon::{Source, Target, canonicalize, emit};

    /// Checks an emission after something spoiled what was written.
    fn checked(
        definition: Value,
        target: Target,
        spoil: fn(&mut Value),
    ) -> Result<(), BrokenRewrite> {
        let mut read = canonicalize(definition, Source::Detect).unwrap();
        let tool = read.tools.remove(0).tool;
        let originals = Originals::of(&tool);
        let mut emission = emit(tool, target).unwrap();
        spoil(&mut emission.value);
        RewriteCheck::new().check(originals, &emission.edits, &emission.value, target.format())
    }

    fn definition() -> Value {
        json!({"name": "t", "inputSchema": {"type": "object",
            "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]}})
    }

    #[test]
    fn an_honest_emission_passes() {
        assert!(checked(definition(), Target::Anthropic, |_| {}).is_ok());
        assert!(checked(definition(), Target::OpenaiStrict, |_| {}).is_ok());
    }

    #[test]
    fn a_difference_that_no_loss_names_is_an_error() {
        let widened = checked(definition(), Target::Anthropic, |written| {
            written["input_schema"]["properties"]["a"]["minimum"] = json!(0);
        });
        assert_eq!(
            widened.unwrap_err().to_string(),
            "it would accept {\"a\":0}, which was not valid before, and no reported loss says so"
        );
        let narrowed = checked(definition(), Target::Anthropic, |written| {
            written["input_schema"]["properties"]["a"]["maximum"] = json!(3);
        });
        assert_eq!(
            narrowed.unwrap_err().to_string(),
            "it would reject {\"a\":4}, which was valid before, and no reported loss says so"
        );
    }

    #[test]
    fn a_reported_loss_excuses_nothing_else() {
        let spoiled = checked(definition(), Target::OpenaiStrict, |written| {
            written["function"]["parameters"]["properties"]["a"]["minimum"] = json!(0);
        });
        assert!(matches!(spoiled, Err(BrokenRewrite::Widened { .. })));
    }
}
