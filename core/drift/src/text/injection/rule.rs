use super::super::finding::Weight;
use super::phrase::Step;

/// What a rule looks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pattern {
    /// Whole words in a row, in any case.
    Phrase(&'static [Step]),
    /// A word in capitals at the start of a sentence.
    Shout(&'static [&'static str]),
    /// A tag in brackets, opening or closing, in any case.
    Tag(&'static [&'static str]),
    /// A text that stands by itself, in any case.
    Literal(&'static [&'static str]),
    /// A download that is carried out.
    PipeToShell,
    /// A Markdown image with an address.
    Image,
    /// A long run of base64; the weight is that of a run that stands for no text.
    Blob,
}

/// What a match adds to a theft: an order together with a prize is graver than either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Tells the model to do something.
    Order,
    /// Names what would be worth having.
    Prize,
    /// Neither.
    Other,
}

/// One rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: &'static str,
    pub(super) pattern: Pattern,
    pub(super) weight: Weight,
    pub(super) part: Part,
    /// What the text does, as the start of a sentence.
    pub(super) says: &'static str,
}
