//! Schemas of a few kilobytes that would take minutes: each comparison ends soon after its time limit,
//! with an answer that claims nothing.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_schema::{
    ComparisonPolicy, SchemaVerdict, SearchBudget, TimeLimit, UnknownReason, compare,
};

/// Far above the limit, for machines with much else to do.
const GENEROUS: Duration = Duration::from_secs(20);

fn now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

fn limited(limit: Duration) -> SearchBudget {
    SearchBudget {
        time: TimeLimit::new(now, limit),
        ..SearchBudget::default()
    }
}

/// Every pair, with its name.
fn hostile() -> Vec<(&'static str, Value, Value)> {
    vec![
        pair("patterns in allOf", |new| {
            let patterns = (1..60).map(|n| {
                let end = if new { "c" } else { "b" };
                json!({"pattern": format!("a.{{{n}}}{end}")})
            });
            argument(&json!({"type": "string", "allOf": patterns.collect::<Vec<_>>()}))
        }),
        pair("oneOf of patterns that overlap", |new| {
            let branches = (1..60).map(|n| {
                let most = n + 8 + usize::from(new);
                json!({"type": "string", "pattern": format!("^(a|b){{{n},{most}}}c*$")})
            });
            argument(&json!({"oneOf": branches.collect::<Vec<_>>()}))
        }),
        pair("alternatives with bounded repeats", |new| {
            let alternatives: Vec<String> = (1..30)
                .map(|n| {
                    let most = n + 8 + usize::from(new);
                    format!("(ab{{1,{n}}}|cd{{2,{most}}}){{3,{}}}", n % 5 + 4)
                })
                .collect();
            argument(
                &json!({"type": "string", "pattern": format!("^({})$", alternatives.join("|"))}),
            )
        }),
        pair("conditions on one object", |new| {
            let conditions = (0..25).map(|n| {
                let value = 1 + usize::from(new);
                json!({"if": {"properties": {format!("a{n}"): {"const": value}}},
                    "then": {"required": [format!("b{n}")]},
                    "else": {"required": [format!("c{n}")]}})
            });
            json!({"type": "object", "allOf": conditions.collect::<Vec<_>>()})
        }),
        pair("multiples and counts", |new| {
            let demands = (2..30).map(|n| {
                let most = 5 - usize::from(new);
                json!({"contains": {"multipleOf": n}, "minContains": 2, "maxContains": most})
            });
            argument(&json!({"type": "array", "allOf": demands.collect::<Vec<_>>()}))
        }),
        pair("unevaluated items beside a product", |new| {
            let places = (0..9).map(|n| {
                let branch = |side: usize| {
                    let item = json!({"minimum": n * side + usize::from(new)});
                    json!({"prefixItems": vec![item; n + 1]})
                };
                json!({"anyOf": [branch(0), branch(1)]})
            });
            let letter = if new { "c" } else { "b" };
            argument(&json!({"type": "array", "unevaluatedItems": false,
                "contains": {"type": "string", "pattern": format!("^(?!a){letter}")},
                "allOf": places.collect::<Vec<_>>()}))
        }),
        pair("many long patterns", |new| {
            let properties = (0..150).map(|n| {
                let most = n % 250 + 2 + usize::from(new);
                let pattern = format!("^[a-z]{{1,{most}}}(x|y){{2,{}}}$", n % 90 + 3);
                (
                    format!("p{n}"),
                    json!({"type": "string", "pattern": pattern}),
                )
            });
            let properties: serde_json::Map<String, Value> = properties.collect();
            json!({"type": "object", "properties": properties})
        }),
    ]
}

fn pair(name: &'static str, schema: impl Fn(bool) -> Value) -> (&'static str, Value, Value) {
    (name, schema(false), schema(true))
}

fn argument(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}, "required": ["a"]})
}

#[test]
fn hostile_pairs_end_soon_after_the_limit() {
    for (name, old, new) in hostile() {
        for (old, new) in [(&old, &new), (&new, &old)] {
            let start = now();
            let verdict = compare(
                old,
                new,
                ComparisonPolicy::ARGUMENTS,
                limited(Duration::from_millis(200)),
            );
            let took = now().saturating_sub(start);
            assert!(took < GENEROUS, "{name}: {took:?}");
            // A machine may be quick enough for a witness, which the validator has confirmed. What
            // must not come out is a proof that was not found.
            assert!(
                matches!(
                    verdict,
                    SchemaVerdict::Unknown(_) | SchemaVerdict::Breaking(_)
                ),
                "{name}: {verdict:?}"
            );
        }
    }
}

#[test]
fn without_time_nothing_is_claimed() {
    for (name, old, new) in hostile() {
        let verdict = compare(
            &old,
            &new,
            ComparisonPolicy::ARGUMENTS,
            limited(Duration::ZERO),
        );
        let SchemaVerdict::Unknown(why) = verdict else {
            panic!("{name}: {verdict:?}");
        };
        assert_eq!(why.reason, UnknownReason::Time, "{name}");
    }
    let (narrow, wide) = (json!({"type": "integer"}), json!({"type": "number"}));
    let verdict = compare(
        &narrow,
        &wide,
        ComparisonPolicy::STRICT,
        limited(Duration::ZERO),
    );
    assert!(matches!(verdict, SchemaVerdict::Unknown(_)), "{verdict:?}");
    // What reduces to the same facts needs no search.
    let verdict = compare(
        &narrow,
        &narrow,
        ComparisonPolicy::STRICT,
        limited(Duration::ZERO),
    );
    assert!(
        matches!(verdict, SchemaVerdict::Equivalent(_)),
        "{verdict:?}"
    );
}

#[test]
fn ordinary_schemas_are_decided_within_the_limit() {
    let (narrow, wide) = (json!({"type": "integer"}), json!({"type": "number"}));
    let limit = || limited(Duration::from_secs(60));
    let verdict = compare(&narrow, &wide, ComparisonPolicy::STRICT, limit());
    assert!(
        matches!(verdict, SchemaVerdict::Compatible { .. }),
        "{verdict:?}"
    );
    let verdict = compare(&wide, &narrow, ComparisonPolicy::STRICT, limit());
    assert!(matches!(verdict, SchemaVerdict::Breaking(_)), "{verdict:?}");
}
