use super::{json, line, lines};
use crate::text::{Detector, TextFinding, Weight, new_findings};
use toolwarden_model::json::{Pointer, Value};

fn check_name(name: &str, expected: &[&str]) {
    let mut definition = json(r#"{"name": ""}"#);
    definition["name"] = Value::from(name);
    let found: Vec<String> = lines(&definition)
        .iter()
        .map(|line| line.replacen(" /name ", " ", 1))
        .collect();
    assert_eq!(found, expected, "{name}");
}

#[test]
fn confusable_names() {
    check_name(
        "p\u{430}ypal_send",
        &["confusable-name high mixes Cyrillic and Latin letters in `p\u{430}ypal` = paypal_send"],
    );
    check_name(
        "get\u{391}ccount",
        &["confusable-name high mixes Greek and Latin letters in `\u{391}ccount` = getAccount"],
    );
    check_name(
        "get_\u{441}\u{43e}\u{440}",
        &[
            "confusable-name medium is written with letters that pass for ASCII ones: `\u{441}\u{43e}\u{440}` is not `cop` = get_cop",
        ],
    );
    check_name(
        "\u{ff44}elete",
        &[
            "confusable-name medium is written with letters that pass for ASCII ones: `\u{ff44}elete` is not `delete` = delete",
        ],
    );
}

#[test]
fn foreign_names_are_silent() {
    for name in [
        "get_документ",
        "получитьДокумент",
        "検索API",
        "搜索user",
        "검색_search",
        "größe_ändern",
        "cœur",
        "nombre_año",
        "αβγ",
        "اسم_user",
    ] {
        check_name(name, &[]);
    }
}

/// Only names are judged: prose and sample values may mix scripts.
#[test]
fn only_names_are_judged() {
    let definition = json(
        r#"{"function": {"name": "x", "description": "pаypal", "parameters": {"properties": {
            "pаth": {"default": {"properties": {"pаth": 1}}},
            "properties": {"type": "object", "properties": {"idеntity": {}}}}}}}"#,
    );
    assert_eq!(
        lines(&definition),
        [
            "confusable-name high /function/parameters/properties/pаth mixes Cyrillic and Latin letters in `pаth` = path",
            "confusable-name high /function/parameters/properties/properties/properties/idеntity mixes Cyrillic and Latin letters in `idеntity` = identity",
        ]
    );
}

#[test]
fn annotations_against_the_name() {
    let check = |definition: &str, expected: &[&str]| {
        assert_eq!(lines(&json(definition)), expected, "{definition}");
    };
    check(
        r#"{"name": "delete_file", "annotations": {"readOnlyHint": true, "destructiveHint": false}}"#,
        &[
            "annotation-contradiction medium /annotations/readOnlyHint calls itself read-only, and its name says `delete`",
            "annotation-contradiction medium /annotations/destructiveHint calls itself not destructive, and its name says `delete`",
        ],
    );
    check(
        r#"{"name": "notion-page-send", "annotations": {"readOnlyHint": true, "destructiveHint": true}}"#,
        &[
            "annotation-contradiction medium /annotations/readOnlyHint calls itself read-only and destructive",
            "annotation-contradiction medium /annotations/readOnlyHint calls itself read-only, and its name says `send`",
        ],
    );
    check(
        r#"{"name": "createComponent", "annotations": {"readOnlyHint": true}}"#,
        &[
            "annotation-contradiction low /annotations/readOnlyHint calls itself read-only, and its name says `create`",
        ],
    );
    check(
        r#"{"name": "terminal", "annotations": {"readOnlyHint": true},
            "inputSchema": {"properties": {"command": {"type": "string"}}}}"#,
        &[
            "annotation-contradiction medium /annotations/readOnlyHint calls itself read-only and takes the argument `command`",
        ],
    );
    for honest in [
        r#"{"name": "get_delete_status", "annotations": {"readOnlyHint": true}}"#,
        r#"{"name": "list_posts", "annotations": {"readOnlyHint": true}}"#,
        r#"{"name": "workflow_run", "annotations": {"readOnlyHint": true}}"#,
        r#"{"name": "search", "annotations": {"readOnlyHint": true},
            "inputSchema": {"properties": {"query": {}, "content": {}}}}"#,
        r#"{"name": "explain", "annotations": {"readOnlyHint": true},
            "inputSchema": {"properties": {"command": {}}}}"#,
        r#"{"name": "delete_file", "annotations": {"readOnlyHint": false, "destructiveHint": true}}"#,
        r#"{"name": "delete_file", "annotations": "none"}"#,
        r#"{"name": "create_file", "annotations": {"destructiveHint": false}}"#,
        r#"{"name": "delete_file"}"#,
    ] {
        check(honest, &[]);
    }
}

#[test]
fn fresh_findings() {
    let finding = |pointer: &str, message: &str, decoded: Option<&str>| TextFinding {
        detector: Detector::HiddenUnicode,
        weight: Weight::High,
        pointer: Pointer::from(pointer),
        message: message.to_owned(),
        decoded: decoded.map(str::to_owned),
    };
    let old = [finding("/a", "m", None), finding("/b", "n", Some("x"))];
    let new = [
        finding("/c", "m", None),
        finding("/a", "m", None),
        finding("/b", "n", Some("y")),
        finding("/d", "n", Some("x")),
    ];
    let lines: Vec<String> = new_findings(&old, &new).into_iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "hidden-unicode high /c m",
            "hidden-unicode high /b n = y",
            "hidden-unicode high /d n = x"
        ]
    );
    assert_eq!(new_findings(&old, &old), Vec::<&TextFinding>::new());
    assert_eq!(new_findings(&[], &old), old.iter().collect::<Vec<_>>());
}

#[test]
fn detector_ids() {
    assert_eq!(
        Detector::ALL.map(Detector::as_str),
        [
            "hidden-unicode",
            "bidi-control",
            "terminal-escape",
            "confusable-name",
            "colliding-name",
            "cross-server-reference",
            "injection",
            "annotation-contradiction",
            "introduced",
        ]
    );
    assert!(Detector::ALL.is_sorted());
}
