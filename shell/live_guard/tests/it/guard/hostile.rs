use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolwarden_guard::{Document, Guard, Policy, ReasonCode};
use toolwarden_live_guard::LoadedPolicy;

use super::{GuardFixture, fixture, fixture_for};

/// A guard with one tool that has this schema, usable or not.
fn of_schema(schema: &Value) -> GuardFixture {
    let policy = json!({"tools": {"t": {"input_schema": schema, "rate_limit": "unlimited"}}});
    let read = Policy::read(&Document::read(&policy.to_string()).unwrap()).unwrap();
    fixture_for(Guard::new(read.policy).0)
}

/// With a backtracking engine the time would double with every character.
#[test]
fn nested_quantifiers_do_not_blow_up() {
    let bench = of_schema(&json!({"properties": {"s": {"pattern": "^(a+)+$"}}}));
    let long = "a".repeat(100_000);
    assert!(bench.decide("t", "p", json!({"s": long})).allowed);
    let decision = bench.decide("t", "p", json!({"s": long + "!"}));
    assert_eq!(decision.code, ReasonCode::InvalidInput);
}

#[test]
fn patterns_that_cannot_be_matched_in_linear_time_are_refused_at_load() {
    for pattern in ["(?=x)", r"(a)\1", "((a{1,1000}){1,1000}){1,1000}"] {
        let policy =
            json!({"tools": {"t": {"input_schema": {"properties": {"s": {"pattern": pattern}}}}}});
        let place = Path::new("p");
        let loaded = LoadedPolicy::of_text(policy.to_string().as_bytes(), place, place);
        assert!(loaded.is_err(), "{pattern}");
        let bench = of_schema(&json!({"properties": {"s": {"pattern": pattern}}}));
        assert_eq!(
            bench.decide("t", "p", json!({})).code,
            ReasonCode::BrokenSchema,
            "{pattern}"
        );
    }
}

#[test]
fn a_reference_to_another_host_is_never_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let address = format!("http://127.0.0.1:{port}/schema.json");
    for schema in [
        json!({"$ref": address}),
        json!({"properties": {"a": {"$dynamicRef": address}}}),
        json!({"$schema": address}),
        json!({"$id": address, "$ref": "other.json"}),
    ] {
        let bench = of_schema(&schema);
        bench.decide("t", "p", json!({"a": 1}));
    }
    // Everything sent earlier has arrived before this.
    drop(std::net::TcpStream::connect(("127.0.0.1", port)).unwrap());
    while asked.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1, "only this test asked");
}

#[test]
fn deep_and_strange_arguments_are_refused_and_not_crashed_on() {
    let bench = fixture(
        "tools: {t: {}, u: {input_schema: {$ref: '#/$defs/n', $defs: {n: {properties: {a: {$ref: '#/$defs/n'}}}}}}}",
    );
    let mut deep = json!(1);
    for _ in 0..1_000 {
        deep = json!({"a": deep});
    }
    for tool in ["t", "u"] {
        let decision = bench.decide(tool, "p", deep.clone());
        assert_eq!(decision.code, ReasonCode::InvalidInput, "{tool}");
        assert!(
            decision.reason.contains("nesting deeper"),
            "{}",
            decision.reason
        );
    }
    for arguments in [json!(null), json!([1]), json!("x"), json!(7)] {
        assert_eq!(
            bench.decide("t", "p", arguments).code,
            ReasonCode::InvalidInput
        );
    }
    let body = bench.log.all()[0].content().body;
    assert!(body.contains("[nested too deeply]"), "{body}");
}

#[test]
fn schemas_are_read_in_the_draft_they_name() {
    let draft4 = "http://json-schema.org/draft-04/schema#";
    let draft7 = "http://json-schema.org/draft-07/schema#";
    let cases = [
        (
            json!({"$schema": draft4, "properties": {"n": {"minimum": 1, "exclusiveMinimum": true}}}),
            json!({"n": 1}),
            false,
        ),
        (
            json!({"$schema": draft4, "properties": {"n": {"minimum": 1}}}),
            json!({"n": 1}),
            true,
        ),
        (
            json!({"$schema": draft7, "properties": {"a": {"items": [{"type": "string"}]}}}),
            json!({"a": [1]}),
            false,
        ),
        (
            json!({"properties": {"a": {"prefixItems": [{"type": "string"}]}}}),
            json!({"a": [1]}),
            false,
        ),
        (
            json!({"$schema": draft7, "properties": {"a": {"prefixItems": [{"type": "string"}]}}}),
            json!({"a": [1]}),
            true,
        ),
        (
            json!({"$schema": "https://example.org/own", "required": ["a"]}),
            json!({}),
            false,
        ),
    ];
    for (schema, arguments, allowed) in cases {
        let decision = of_schema(&schema).decide("t", "p", arguments);
        assert_eq!(decision.allowed, allowed, "{schema}: {}", decision.reason);
    }
}

#[test]
fn work_that_grows_faster_than_the_arguments_is_refused() {
    let node = |kind: &str| json!({"properties": {"kind": {"const": kind}, "children": {"items": {"$ref": "#/$defs/node"}}}});
    let schema = json!({
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"anyOf": [node("row"), node("column")]}},
    });
    let tree = |levels: usize, last: &str| {
        let mut tree = json!({"kind": last});
        for _ in 0..levels {
            tree = json!({"kind": "row", "children": [tree]});
        }
        json!({"tree": tree})
    };
    let bench = of_schema(&schema);
    assert!(bench.decide("t", "p", tree(8, "column")).allowed);
    assert_eq!(
        bench.decide("t", "p", tree(8, "oops")).code,
        ReasonCode::InvalidInput
    );
    let deep = bench.decide("t", "p", tree(50, "oops"));
    assert!(
        deep.reason.contains("branches at every level"),
        "{}",
        deep.reason
    );
    let numbers: Vec<Value> = (0..5_000)
        .map(|n| serde_json::from_str(&format!("{n}.{}", "1".repeat(40))).unwrap())
        .collect();
    let bench = of_schema(&json!({"properties": {"x": {"uniqueItems": true}}}));
    assert_eq!(
        bench.decide("t", "p", json!({"x": numbers})).code,
        ReasonCode::InvalidInput
    );
}
