use serde_json::{Value, json};
use toolwarden_drift::toolwatch::{ResponsePattern, read_alerts, read_baselines, schema_hash};
use toolwarden_testkit::read_vectors;

fn pattern_hash(results: &[Value]) -> String {
    let mut pattern = ResponsePattern::default();
    results.iter().for_each(|result| pattern.observe(result));
    pattern.hash()
}

#[test]
fn the_hashes_are_those_of_the_original() {
    let Some(vectors) = read_vectors("watch.json") else {
        return;
    };
    let rows = |key: &str| vectors[key].as_array().unwrap().clone();
    let schemas = rows("schema_hash_name_input_canonical_sha256");
    assert_eq!(schemas.len(), 18);
    for row in schemas {
        assert_eq!(json!(schema_hash(&row[1])), row[3], "{}", row[0]);
    }
    let patterns = rows("response_pattern_name_samples_canonical_sha256");
    assert_eq!(patterns.len(), 11);
    for row in patterns {
        let results = row[1].as_array().unwrap();
        assert_eq!(json!(pattern_hash(results)), row[3], "{}", row[0]);
    }
}

#[test]
fn results_that_are_no_objects_add_nothing() {
    let odd = [json!([1]), json!("x"), json!(null)];
    assert_eq!(pattern_hash(&odd), pattern_hash(&[]));
}

#[test]
fn files_that_are_none_of_the_originals_are_refused_with_the_place() {
    let hash = "0".repeat(64);
    let entry = json!({"tool_name": "a", "version": "1", "schema_hash": hash,
        "response_pattern_hash": hash, "captured_at": "2026-01-01T00:00:00Z"});
    let with = |key: &str, value: Value| {
        let mut entry = entry.clone();
        entry[key] = value;
        json!([entry])
    };
    let told = |document: &Value| read_baselines(document).unwrap_err().to_string();
    assert_eq!(
        told(&json!({})),
        "at the root: expected an array, found an object"
    );
    assert_eq!(
        told(&json!([1])),
        "at /0: expected an object, found a number"
    );
    assert_eq!(told(&json!([{}])), "at /0: `tool_name` is missing");
    assert_eq!(
        told(&with("version", json!(1))),
        "at /0/version: expected a string, found a number"
    );
    assert_eq!(
        told(&with("schema_hash", json!("abc"))),
        "at /0/schema_hash: not a SHA-256 in hexadecimal: `abc`"
    );
    let alert = json!([{"tool_name": "a", "change_type": "mutation", "severity": "low",
        "old_fingerprint": entry, "new_fingerprint": entry, "detected_at": "x"}]);
    assert_eq!(
        read_alerts(&alert).unwrap_err().to_string(),
        "at /0/change_type: unknown change_type `mutation`"
    );
}
