use super::super::finding::Weight;
use super::phrase::PhraseStep;

/// What a rule looks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pattern {
    /// Whole words in a row, in any case.
    Phrase(&'static [PhraseStep]),
    /// The same, directly before the address of another host.
    PhraseToAddress(&'static [PhraseStep]),
    /// A word in capitals at the start of a sentence.
    Capitalized(&'static [&'static str]),
    /// A tag in brackets, opening or closing, in any case.
    Tag(&'static [&'static str]),
    /// A text that is not part of a longer word, in any case.
    Literal(&'static [&'static str]),
    /// A download that is executed.
    PipeToShell,
    /// A Markdown image with an address.
    Image,
    /// A long run of base64; the weight applies to a run that encodes no text.
    Blob,
}

/// The role of a match in data theft: an instruction together with a secret is more severe than either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExfiltrationRole {
    /// Tells the model to do something.
    Instruction,
    /// Names something worth stealing.
    Secret,
    /// Neither.
    Other,
}

/// One rule.
#[derive(Debug)]
pub(super) struct InjectionRule {
    pub(super) id: &'static str,
    pub(super) pattern: Pattern,
    pub(super) weight: Weight,
    pub(super) part: ExfiltrationRole,
    /// What the text does, as the start of a sentence.
    pub(super) message: &'static str,
}
