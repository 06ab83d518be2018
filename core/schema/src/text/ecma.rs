use regex_syntax::ast::{self, AssertionKind, Ast, Span, Visitor, parse::Parser};

/// A pattern of JSON Schema (ECMA-262) in the syntax of Rust; nothing where it looks around or
/// back.
///
/// Classes are translated as the validator translates them. The dot and word boundaries mean less
/// in ECMA-262 than in Rust, which the validator leaves to Rust.
pub(super) fn to_rust(pattern: &str) -> Option<String> {
    let mut translated = jsonschema_regex::to_rust_regex(pattern).ok()?.into_owned();
    let parsed = Parser::new().parse(&translated).ok()?;
    let mut places = ast::visit(&parsed, Places::default()).ok()?;
    places.sort_by_key(|(span, _)| std::cmp::Reverse(span.start.offset));
    for (span, replacement) in places {
        translated.replace_range(span.start.offset..span.end.offset, replacement);
    }
    Some(translated)
}

#[derive(Default)]
struct Places(Vec<(Span, &'static str)>);

impl Visitor for Places {
    type Output = Vec<(Span, &'static str)>;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Self::Output, Self::Err> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        match ast {
            Ast::Dot(span) => self.0.push((**span, r"[^\n\r\x{2028}\x{2029}]")),
            Ast::Assertion(assertion) => match assertion.kind {
                AssertionKind::WordBoundary => self.0.push((assertion.span, r"(?-u:\b)")),
                AssertionKind::NotWordBoundary => self.0.push((assertion.span, r"(?-u:\B)")),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::to_rust;

    #[test]
    fn translates_what_ecma_reads_otherwise() {
        assert_eq!(to_rust(r"^\d+$").as_deref(), Some("^[0-9]+$"));
        assert_eq!(
            to_rust(r"a.\.b").as_deref(),
            Some(r"a[^\n\r\x{2028}\x{2029}]\.b")
        );
        assert_eq!(to_rust(r"\bx\B").as_deref(), Some(r"(?-u:\b)x(?-u:\B)"));
        assert_eq!(to_rust(r"(?=a)b"), None);
        assert_eq!(to_rust(r"(a)\1"), None);
        assert_eq!(to_rust("["), None);
    }
}
