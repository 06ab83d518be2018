use regex_syntax::ast::{self, AssertionKind, Ast, Span, Visitor, parse::Parser};

/// A pattern of JSON Schema (ECMA-262) in the syntax of Rust; `None` if it uses lookaround or
/// backreferences.
///
/// Classes are translated as the validator translates them. The dot and word boundaries mean less
/// in ECMA-262 than in Rust, which the validator leaves to Rust.
pub(super) fn to_rust(pattern: &str) -> Option<String> {
    let mut translated = jsonschema_regex::to_rust_regex(pattern).ok()?.into_owned();
    let parsed = Parser::new().parse(&translated).ok()?;
    let mut places = ast::visit(&parsed, SyntaxReplacements::default()).ok()??;
    places.sort_by_key(|(span, _)| std::cmp::Reverse(span.start.offset));
    for (span, replacement) in places {
        translated.replace_range(span.start.offset..span.end.offset, replacement);
    }
    Some(translated)
}

/// A pattern without its lookaround: it matches every text the whole one matches, and maybe more.
pub(super) fn without_lookaround(pattern: &str) -> String {
    let characters: Vec<char> = pattern.chars().collect();
    let mut kept = String::with_capacity(pattern.len());
    let mut at = 0;
    while let Some(character) = characters.get(at) {
        let ahead: String = characters.iter().skip(at).take(4).collect();
        let looks = ["(?=", "(?!", "(?<=", "(?<!"];
        if looks.iter().any(|look| ahead.starts_with(look)) {
            at = group_end(&characters, at);
            continue;
        }
        kept.push(*character);
        if *character == '\\' {
            at += 1;
            kept.extend(characters.get(at));
        }
        at += 1;
    }
    kept
}

/// The place after the group that starts at the given one.
fn group_end(characters: &[char], start: usize) -> usize {
    let (mut depth, mut in_class, mut at) = (0_usize, false, start);
    while let Some(character) = characters.get(at) {
        match character {
            '\\' => at += 1,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

#[derive(Default)]
struct SyntaxReplacements {
    found: Vec<(Span, &'static str)>,
    /// Inline flags change the meaning of a pattern, and ECMA-262 has none.
    has_flags: bool,
}

impl Visitor for SyntaxReplacements {
    type Output = Option<Vec<(Span, &'static str)>>;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Self::Output, Self::Err> {
        Ok((!self.has_flags).then_some(self.found))
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        match ast {
            Ast::Dot(span) => self.found.push((**span, r"[^\n\r\x{2028}\x{2029}]")),
            Ast::Assertion(assertion) => match assertion.kind {
                AssertionKind::WordBoundary => self.found.push((assertion.span, r"(?-u:\b)")),
                AssertionKind::NotWordBoundary => self.found.push((assertion.span, r"(?-u:\B)")),
                _ => {}
            },
            Ast::Flags(_) => self.has_flags = true,
            Ast::Group(group) => {
                self.has_flags |= group.flags().is_some_and(|flags| !flags.items.is_empty());
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{to_rust, without_lookaround};

    #[test]
    fn what_looks_around_is_left_out() {
        assert_eq!(without_lookaround(r"^(?!\.)(?!.*[)(]x)a(?<=a)b$"), "^ab$");
        assert_eq!(without_lookaround(r"\(?=a"), r"\(?=a");
        assert_eq!(without_lookaround("(?=never closed"), "");
    }

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
        assert_eq!(to_rust("(?s)^.$"), None);
        assert_eq!(to_rust("^(?s:.)$"), None);
        assert_eq!(to_rust("(?:a)").as_deref(), Some("(?:a)"));
    }
}
