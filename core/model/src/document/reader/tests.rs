use super::*;

const KEYS: &[KeySpec] = &[
    KeySpec::new("first_name").alias(&["given_name"]),
    KeySpec::new("tags")
        .alias(&["labels"])
        .text_list()
        .may_be_empty(),
];

/// Reads a text and returns the value and the mistakes, one per line.
fn read_with_messages<T>(
    text: &str,
    read: impl FnOnce(&mut DocumentReader, &Document) -> T,
) -> (T, Vec<String>) {
    let document = Document::read(text).unwrap();
    let mut reader = DocumentReader::default();
    let value = read(&mut reader, &document);
    let told = reader.finish(&document).into_iter().map(|it| {
        let position = it.position;
        format!("{}:{} {it}", position.line, position.column)
    });
    (value, told.collect())
}

/// The value of a section's key, and the mistakes.
fn section(text: &str, key: &str) -> (Option<String>, Vec<String>) {
    read_with_messages(text, |reader, document| {
        let section = reader.section(&document.root(), KEYS);
        section.get(key).map(|at| at.value.to_string())
    })
}

/// One value, or the mistakes found in it.
fn one<T>(
    text: &str,
    read: impl FnOnce(&mut DocumentReader, &LocatedValue<'_>) -> Option<T>,
) -> Result<T, Vec<String>> {
    let (value, told) = read_with_messages(&format!("a: {text}"), |reader, document| {
        let (_, at) = reader.named(&document.root(), "a name").remove(0);
        read(reader, &at)
    });
    match value {
        Some(value) if told.is_empty() => Ok(value),
        None if !told.is_empty() => Err(told),
        _ => panic!("{text} gives a value and mistakes, or neither: {told:?}"),
    }
}

fn wrong<T>(expected: &str, found: &str) -> Result<T, Vec<String>> {
    Err(vec![format!("1:1 /a: expected {expected}, found {found}")])
}

#[test]
fn keys_are_known_in_every_spelling() {
    for written in [
        "first_name",
        "first-name",
        "firstName",
        "given_name",
        "givenName",
    ] {
        let read = section(&format!("{written}: x"), "first_name");
        assert_eq!(read, (Some("\"x\"".to_owned()), Vec::new()), "{written}");
    }
    let (read, told) = section("firstNmae: x\nage: 3", "first_name");
    assert_eq!(read, None);
    assert_eq!(
        told,
        [
            "1:1 /firstNmae: unknown key `firstNmae`, did you mean `first_name`?",
            "2:1 /age: unknown key `age`; known are first_name, tags",
        ]
    );
}

#[test]
fn only_keys_that_say_something_by_it_may_be_empty() {
    assert_eq!(
        section("tags:", "tags"),
        (Some("null".to_owned()), Vec::new())
    );
    let (_, told) = section("given-name:", "first_name");
    assert_eq!(
        told,
        ["1:1 /given-name: `given-name` has no value; write one, or leave the key out"]
    );
}

#[test]
fn two_spellings_have_to_say_the_same() {
    for (text, first) in [
        ("first_name: x\nfirstName: x", "\"x\""),
        ("tags: [a]\nlabels: a", "[\"a\"]"),
        ("tags: [a, b]\nlabels: [b, a]", "[\"a\",\"b\"]"),
        ("tags: []\nlabels:", "[]"),
    ] {
        let key = if text.starts_with("tags") {
            "tags"
        } else {
            "first_name"
        };
        let read = section(text, key);
        assert_eq!(read, (Some(first.to_owned()), Vec::new()), "{text}");
    }
    for (text, one, other) in [
        ("first_name: x\nfirstName: y", "first_name", "firstName"),
        ("given_name: x\nfirstName: [x]", "given_name", "firstName"),
        ("tags: [a, a]\nlabels: [a]", "tags", "labels"),
        ("labels: [1]\ntags: 1", "labels", "tags"),
        ("tags: [a, 1]\nlabels: [1, a]", "tags", "labels"),
    ] {
        let (_, told) = section(text, "tags");
        let expected =
            format!("2:1 /{other}: `{one}` and `{other}` are the same key with different values");
        assert_eq!(told, [expected], "{text}");
    }
}

#[test]
fn missing_keys_are_reported_at_their_parent() {
    let ((), told) = read_with_messages("x:\n  tags: a\n", |reader, document| {
        for (_, at) in reader.named(&document.root(), "a name") {
            let section = reader.section(&at, KEYS);
            assert!(reader.required(&section, "tags").is_some());
            assert!(reader.required(&section, "first_name").is_none());
        }
    });
    assert_eq!(told, ["1:1 /x: `first_name` is missing"]);
}

#[test]
fn diagnostics_follow_the_order_of_the_text() {
    let (read, told) = read_with_messages("' ': 1\nb: [x, 2, '']\nc: {}\n", |reader, document| {
        let named = reader.named(&document.root(), "a name");
        for (_, at) in named.iter().rev() {
            reader.list(at);
        }
        named
            .iter()
            .flat_map(|(_, at)| reader.texts(at, "a word"))
            .map(|(text, pointer)| format!("{pointer} {text}"))
            .collect::<Vec<_>>()
    });
    assert_eq!(read, ["/b/0 x"]);
    assert_eq!(
        told,
        [
            "1:1 / : a name must not be blank",
            "2:8 /b/1: expected a text, found a number",
            "2:11 /b/2: a word must not be blank",
            "3:1 /c: expected a list, found an object",
            "3:1 /c: expected a list of texts, found an object",
        ]
    );
}

#[test]
fn values_are_what_they_have_to_be() {
    assert_eq!(
        one("yes", DocumentReader::boolean),
        wrong("true or false", "a string")
    );
    assert_eq!(one("true", DocumentReader::boolean), Ok(true));

    let line = |text: &str| {
        one(text, |reader, at| {
            reader.non_blank_text(at, "a title").map(str::to_owned)
        })
    };
    assert_eq!(line("' x '"), Ok("x".to_owned()));
    let blank = "1:1 /a: a title must not be blank".to_owned();
    assert_eq!(line("' '"), Err(vec![blank]));

    let word = |text: &str| one(text, |reader, at| reader.word(at, &[("on", 1), ("off", 0)]));
    assert_eq!(word("on"), Ok(1));
    let unknown = "1:1 /a: unknown word `of`, did you mean `off`?; known are on, off".to_owned();
    assert_eq!(word("of"), Err(vec![unknown]));

    let counts = "a whole number from 1 to 4294967295";
    let count = |text: &str| one(text, DocumentReader::count).map(NonZeroU32::get);
    assert_eq!(count("4294967295"), Ok(u32::MAX));
    assert_eq!(count("0"), wrong(counts, "0"));
    assert_eq!(count("1.5"), wrong(counts, "1.5"));
    assert_eq!(count("'3'"), wrong(counts, "a string"));

    let wholes = "a whole number from 0 to 18446744073709551615";
    assert_eq!(one("0", DocumentReader::unsigned), Ok(0));
    assert_eq!(one("-1", DocumentReader::unsigned), wrong(wholes, "-1"));

    assert_eq!(one("0.5", DocumentReader::number), Ok(0.5));
    let huge = one("1e999", DocumentReader::number);
    assert_eq!(huge, wrong("a number", "1e999"));

    assert_eq!(
        one("5m", DocumentReader::duration),
        Ok(Duration::from_secs(300))
    );
    assert_eq!(
        one("90", DocumentReader::duration),
        Ok(Duration::from_secs(90))
    );
    let none = "1:1 /a: `0s` is not a duration; write 90, 30s, 5m, 1.5h, 7d or 2w".to_owned();
    assert_eq!(one("0s", DocumentReader::duration), Err(vec![none]));
}

/// A document type with its own mistakes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Own {
    #[error(transparent)]
    Mistake(#[from] DiagnosticKind),
    #[error("too many")]
    TooMany,
}

#[test]
fn a_document_adds_mistakes_of_its_own() {
    let document = Document::read("[a, b]").unwrap();
    let mut reader: DocumentReader<Own> = DocumentReader::default();
    reader.report(&Pointer::root().index(1), Own::TooMany);
    assert!(reader.object(&document.root()).is_none());
    let told: Vec<String> = reader
        .finish(&document)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told,
        ["/: expected a mapping, found an array", "/1: too many"]
    );
}
