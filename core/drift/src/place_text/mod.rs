//! What a schema says about each place of a value, wherever it is written: references are followed, and
//! text belongs to the choice that it describes.

mod walk;

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value;
use toolwarden_model::json::Pointer;

pub(crate) use walk::{MAX_VISITS, described_values};

use walk::PlaceTexts;

/// One statement about a place that another statement replaced.
#[derive(Debug)]
pub(crate) struct ReplacedText<'s> {
    keyword: &'s str,
    /// The member that the place belongs to, if it has a name.
    member: Option<String>,
    /// The choice that the text describes, if only the choice tells the difference.
    choice: Option<Rc<str>>,
    pub(crate) before: Option<(Pointer, &'s Value)>,
    pub(crate) after: Option<(Pointer, &'s Value)>,
}

impl ReplacedText<'_> {
    /// One sentence that describes the change.
    pub(crate) fn message(&self) -> String {
        let keyword = self.keyword;
        let member = self.member.as_deref();
        let of = member.map_or_else(|| "the schema".to_owned(), |name| format!("`{name}`"));
        let did = match (&self.before, &self.after) {
            (None, _) => "was added",
            (_, None) => "was removed",
            _ => "was changed",
        };
        match &self.choice {
            Some(_) => {
                format!("`{keyword}` of a choice of {of} {did}: it describes another value now")
            }
            None => format!("`{keyword}` of {of} {did}: the text comes from another place now"),
        }
    }
}

/// What changed in the text about each place that both schemas describe; `None` if a schema is too large
/// to know.
pub(crate) fn replaced_texts<'s>(old: &'s Value, new: &'s Value) -> Option<Vec<ReplacedText<'s>>> {
    let (old, new) = (PlaceTexts::of(old)?, PlaceTexts::of(new)?);
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for (place, was) in &old.places {
        let Some(is) = new.places.get(place) else {
            continue;
        };
        for replaced in was.compare(is) {
            let pointer = |side: &Option<(Pointer, &Value)>| side.as_ref().map(|it| it.0.clone());
            let seen = (pointer(&replaced.before), pointer(&replaced.after));
            if known.insert(seen) {
                found.push(replaced);
            }
        }
    }
    Some(found)
}

/// One statement about a place.
#[derive(Debug)]
struct Statement<'s> {
    keyword: &'s str,
    value: &'s Value,
    /// The value in canonical form, or a text without its spacing.
    content: String,
    at: Pointer,
    /// What selects the branch that the statement belongs to.
    choice: Option<Rc<str>>,
}

/// The statements about one place.
#[derive(Debug, Default)]
struct Place<'s> {
    member: Option<String>,
    said: Vec<Statement<'s>>,
}

impl<'s> Place<'s> {
    fn compare(&self, new: &Self) -> Vec<ReplacedText<'s>> {
        let mut found = Vec::new();
        let keywords = self.said.iter().chain(&new.said).map(|it| it.keyword);
        let keywords: BTreeSet<&str> = keywords.collect();
        for keyword in keywords {
            let missing = |from: &Self, other: &Self| -> Vec<usize> {
                let has = |text: &Statement<'_>| {
                    let mut said = other.said.iter();
                    said.any(|it| it.keyword == keyword && it.content == text.content)
                };
                let said = from.said.iter().enumerate();
                let said = said.filter(|(_, it)| it.keyword == keyword && !has(it));
                said.map(|(index, _)| index).collect()
            };
            let (gone, come) = (missing(self, new), missing(new, self));
            for index in 0..gone.len().max(come.len()) {
                let before = gone.get(index).and_then(|at| self.said.get(*at));
                let after = come.get(index).and_then(|at| new.said.get(*at));
                found.extend(self.replaced(None, before, after));
            }
            if gone.is_empty() && come.is_empty() {
                found.extend(self.swapped(new, keyword));
            }
        }
        found
    }

    /// Text that describes another choice than before, although the place has the same text.
    fn swapped(&self, new: &Self, keyword: &str) -> Option<ReplacedText<'s>> {
        let of = |place: &'_ Self, choice: &Rc<str>| -> BTreeSet<String> {
            let said = place.said.iter().filter(|it| it.keyword == keyword);
            let said = said.filter(|it| it.choice.as_ref() == Some(choice));
            said.map(|it| it.content.clone()).collect()
        };
        let said = self.said.iter().filter(|it| it.keyword == keyword);
        let choices: BTreeSet<&Rc<str>> = said.filter_map(|it| it.choice.as_ref()).collect();
        for choice in choices {
            let (was, is) = (of(self, choice), of(new, choice));
            if was == is || was.is_empty() || is.is_empty() {
                continue;
            }
            let first = |place: &Self, texts: &BTreeSet<String>, others: &BTreeSet<String>| {
                place.said.iter().position(|it| {
                    it.keyword == keyword
                        && it.choice.as_ref() == Some(choice)
                        && texts.contains(&it.content)
                        && !others.contains(&it.content)
                })
            };
            let before = first(self, &was, &is).and_then(|at| self.said.get(at));
            let after = first(new, &is, &was).and_then(|at| new.said.get(at));
            return self.replaced(Some(choice.clone()), before, after);
        }
        None
    }

    fn replaced(
        &self,
        choice: Option<Rc<str>>,
        before: Option<&Statement<'s>>,
        after: Option<&Statement<'s>>,
    ) -> Option<ReplacedText<'s>> {
        let side = |text: &Statement<'s>| (text.at.clone(), text.value);
        Some(ReplacedText {
            keyword: before.or(after)?.keyword,
            member: self.member.clone(),
            choice,
            before: before.map(side),
            after: after.map(side),
        })
    }
}
