//! The request attributes that a condition reads.

use std::collections::BTreeSet;

use cel::common::ast::{Expr, LiteralValue};
use cel::parser::Expression;

use super::Condition;

impl Condition {
    /// The names of the request attributes that the condition reads.
    #[must_use]
    pub fn attributes(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        collect(&self.expression, &mut names);
        names
    }
}

/// Recurses safely: parsing bounds the nesting of a condition.
fn collect(expression: &Expression, names: &mut BTreeSet<String>) {
    let is_request = |it: &Expression| matches!(&it.expr, Expr::Ident(name) if name == "request");
    match &expression.expr {
        Expr::Select(select) => {
            if is_request(&select.operand) {
                names.insert(select.field.clone());
            }
            collect(&select.operand, names);
        }
        Expr::Call(call) => {
            let parts = || call.args.iter().chain(call.target.as_deref());
            let of_request = parts().any(is_request);
            for part in parts() {
                if let Expr::Literal(LiteralValue::String(name)) = &part.expr
                    && of_request
                {
                    names.insert(name.inner().to_owned());
                }
                collect(part, names);
            }
        }
        Expr::List(list) => {
            for element in &list.elements {
                collect(element, names);
            }
        }
        Expr::Literal(_)
        | Expr::Ident(_)
        | Expr::Comprehension(_)
        | Expr::Map(_)
        | Expr::Struct(_)
        | Expr::Unspecified => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_wherever_they_are_asked_about() {
        let text = r#"(request.region == "eu" || has(request.team)) && request["cost-center"] in ["a", "b"] && load < 0.5"#;
        let condition = Condition::parse(text).unwrap();
        let names = condition.attributes();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(names, ["cost-center", "region", "team"]);
        let time = Condition::parse("time.hour < 9").unwrap();
        assert!(time.attributes().is_empty());
    }
}
