//! Checks rewritten schemas before they are written: what no reported loss explains must accept the
//! same values as before.
//!
//! This stands here and not in canon, which knows formats and no theory of schemas: the two crates
//! meet in the binary.

use serde_json::Value;
use toolwarden_canon::{Edit, EquivalenceClaim, OriginalSchemas, SchemaSlot};
use toolwarden_model::Format;
use toolwarden_schema::{SchemaEquivalence, SearchBudget, ValueDomain, check_equivalence};
use toolwarden_settings::ComparisonTimeouts;

use crate::error::BrokenRewrite;

/// Checks rewrites one after the other, all within one budget.
#[derive(Debug)]
pub(super) struct RewriteCheck {
    budget: SearchBudget,
    undecided: usize,
}

impl RewriteCheck {
    pub(super) fn new() -> Self {
        Self {
            budget: ComparisonTimeouts::INTERACTIVE.budget(),
            undecided: 0,
        }
    }

    /// Checks the account of one rewrite.
    pub(super) fn check(
        &mut self,
        originals: OriginalSchemas,
        edits: &[Edit],
        written: &Value,
        format: Format,
    ) -> Result<(), BrokenRewrite> {
        let budget = SearchBudget {
            time: self.budget.time.start(),
            ..self.budget
        };
        let mut undecided = false;
        originals.check(edits, written, format, |claim| {
            undecided |= !is_proven(&claim, budget)?;
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
fn is_proven(claim: &EquivalenceClaim, budget: SearchBudget) -> Result<bool, BrokenRewrite> {
    if let Some((before, after)) = &claim.inner
        && check_equivalence(before, after, ValueDomain::Values, budget) == SchemaEquivalence::Same
    {
        return Ok(true);
    }
    let domain = match claim.slot {
        SchemaSlot::Inputs => ValueDomain::Objects,
        SchemaSlot::Outputs => ValueDomain::Values,
    };
    match check_equivalence(&claim.before, &claim.after, domain, budget) {
        SchemaEquivalence::Same => Ok(true),
        SchemaEquivalence::Undecided => Ok(false),
        SchemaEquivalence::Narrower(value) => Err(BrokenRewrite::Narrowed { value }),
        SchemaEquivalence::Wider(value) => Err(BrokenRewrite::Widened { value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwarden_canon::{EmitTarget, FormatChoice, canonicalize, emit};

    /// Checks an emission after something spoiled what was written.
    fn check_spoiled(
        definition: Value,
        target: EmitTarget,
        spoil: fn(&mut Value),
    ) -> Result<(), BrokenRewrite> {
        let mut read = canonicalize(definition, FormatChoice::Detect).unwrap();
        let tool = read.tools.remove(0).tool;
        let originals = OriginalSchemas::of(&tool);
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
        assert!(check_spoiled(definition(), EmitTarget::Anthropic, |_| {}).is_ok());
        assert!(check_spoiled(definition(), EmitTarget::OpenaiStrict, |_| {}).is_ok());
    }

    #[test]
    fn a_difference_that_no_loss_names_is_an_error() {
        let widened = check_spoiled(definition(), EmitTarget::Anthropic, |written| {
            written["input_schema"]["properties"]["a"]["minimum"] = json!(0);
        });
        assert_eq!(
            widened.unwrap_err().to_string(),
            "it would accept {\"a\":0}, which was not valid before, and no reported loss says so"
        );
        let narrowed = check_spoiled(definition(), EmitTarget::Anthropic, |written| {
            written["input_schema"]["properties"]["a"]["maximum"] = json!(3);
        });
        assert_eq!(
            narrowed.unwrap_err().to_string(),
            "it would reject {\"a\":4}, which was valid before, and no reported loss says so"
        );
    }

    #[test]
    fn a_reported_loss_excuses_nothing_else() {
        let spoiled = check_spoiled(definition(), EmitTarget::OpenaiStrict, |written| {
            written["function"]["parameters"]["properties"]["a"]["minimum"] = json!(0);
        });
        assert!(matches!(spoiled, Err(BrokenRewrite::Widened { .. })));
    }
}
