use proptest::prelude::*;
use serde_json::Value;
use toolwarden_drift::text::{Detector, scan};
use toolwarden_watch::inline::strip_hidden;

/// Characters of every kind that a string may contain.
const ALPHABET: &[char] = &[
    'a',
    'Z',
    ' ',
    '"',
    '\\',
    '\n',
    'u',
    '0',
    'é',
    '中',
    'ש',
    'ع',
    'क',
    '\u{94d}',
    'ក',
    '\u{1f468}',
    '\u{1f469}',
    '\u{1f3f4}',
    '\u{fe0f}',
    '\u{fe00}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{200e}',
    '\u{202e}',
    '\u{2066}',
    '\u{feff}',
    '\u{ad}',
    '\u{e0067}',
    '\u{e0062}',
    '\u{e0065}',
    '\u{e006e}',
    '\u{e007f}',
    '\u{e0100}',
    '\u{17b4}',
    '\u{17b5}',
    '\u{180b}',
    '\u{1820}',
    '\u{e000}',
    '\u{ffff}',
    '\u{1160}',
    '\u{34f}',
    '\u{301}',
];

fn texts() -> impl Strategy<Value = String> {
    let letters = prop::sample::select(ALPHABET.to_vec());
    prop::collection::vec(letters, 0..12).prop_map(|letters| letters.into_iter().collect())
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        texts().prop_map(Value::from),
        any::<i64>().prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((texts(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// JSON with some characters written as escapes.
fn escaped(text: &str, every: usize) -> String {
    let mut out = String::new();
    for (index, c) in text.chars().enumerate() {
        if c.is_ascii() || index % every != 0 {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

fn has_hidden(value: &Value) -> bool {
    let hidden = [Detector::HiddenUnicode, Detector::BidiControl];
    scan(value).iter().any(|it| hidden.contains(&it.detector))
}

proptest! {
    #[test]
    fn json_stays_json_without_hidden_characters(value in values(), every in 1_usize..4) {
        let raw = escaped(&value.to_string(), every);
        let read: Value = serde_json::from_str(&raw).unwrap();
        prop_assert_eq!(&read, &value);
        let stripped: Value = serde_json::from_str(&strip_hidden(&raw)).unwrap();
        prop_assert!(!has_hidden(&stripped), "{}", stripped);
        if !has_hidden(&value) {
            prop_assert_eq!(strip_hidden(&raw), raw.as_str());
        }
    }

    #[test]
    fn strings_that_carry_nothing_hidden_stay(items in prop::collection::vec(texts(), 0..8)) {
        let raw = Value::from(items.clone()).to_string();
        let stripped: Vec<String> = serde_json::from_str(&strip_hidden(&raw)).unwrap();
        prop_assert_eq!(stripped.len(), items.len());
        for (before, after) in items.iter().zip(&stripped) {
            if !has_hidden(&Value::from(before.as_str())) {
                prop_assert_eq!(before, after);
            }
        }
    }

    #[test]
    fn anything_else_is_survived(raw in any::<String>(), more in texts()) {
        let _shown = strip_hidden(&raw);
        let _shown = strip_hidden(&more);
    }
}
