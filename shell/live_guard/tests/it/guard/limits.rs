use serde_json::json;
use toolwarden_guard::ReasonCode;

use super::fixture;

const ARGUMENTS: &str = "input_schema: {type: object, required: [q]}";

#[test]
fn a_denial_says_when_to_try_again() {
    let bench = fixture("tools: {t: {rate_limit: 2}}\nrate: {window: 10s}");
    bench.decide("t", "p", json!({}));
    bench.at(4.0);
    assert!(bench.decide("t", "p", json!({})).allowed);
    let refused = bench.decide("t", "p", json!({}));
    assert_eq!(
        refused.reason,
        "rate limit exceeded for connector 't' (limit: 2 req/10s)"
    );
    let wait = refused.retry_after.unwrap();
    bench.at(4.0 + wait.as_secs_f64() - 0.000_001);
    assert!(!bench.decide("t", "p", json!({})).allowed);
    bench.at(4.0 + wait.as_secs_f64() + 0.000_001);
    assert!(bench.decide("t", "p", json!({})).allowed);
}

#[test]
fn scopes_count_each_principal_or_all_together() {
    let bench = fixture(
        "
tools:
  each: {rate_limit: 1}
  shared: {rate_limit: {limit: 1, scope: tool}}
  both: {rate_limit: {agent: 1, tool: 2}}
  free: {rate_limit: unlimited}
",
    );
    let allowed = |tool, principal| bench.decide(tool, principal, json!({})).allowed;
    assert!(allowed("each", "a") && allowed("each", "b") && !allowed("each", "a"));
    assert!(allowed("shared", "a") && !allowed("shared", "b"));
    assert!(allowed("both", "a") && !allowed("both", "a") && allowed("both", "b"));
    assert!(!allowed("both", "c"), "two calls in all");
    assert!((0..1000).all(|_| allowed("free", "a")));
}

#[test]
fn names_never_run_into_each_other() {
    let bench = fixture("tools: {'a:b': {rate_limit: 1}, a: {rate_limit: 1}}");
    assert!(bench.decide("a:b", "c", json!({})).allowed);
    assert!(bench.decide("a", "b:c", json!({})).allowed);
}

#[test]
fn whether_invalid_calls_count_is_the_policys_choice() {
    for (counts, code) in [
        ("true", ReasonCode::RateLimited),
        ("false", ReasonCode::Allowed),
    ] {
        let bench = fixture(&format!(
            "tools: {{t: {{rate_limit: 1, {ARGUMENTS}}}}}\nrate: {{count_invalid: {counts}}}"
        ));
        assert_eq!(
            bench.decide("t", "p", json!({})).code,
            ReasonCode::InvalidInput
        );
        assert_eq!(bench.decide("t", "p", json!({"q": 1})).code, code);
    }
}

#[test]
fn asking_does_not_count_and_another_window_destroys_nothing() {
    let bench = fixture("tools: {t: {rate_limit: 1}}");
    let call = super::call("t", "p", json!({}));
    for _ in 0..3 {
        assert!(
            bench
                .guard
                .explain(&call)
                .iter()
                .all(|step| !matches!(step.outcome, Some(Err(_))))
        );
    }
    assert!(bench.decide("t", "p", json!({})).allowed);
    bench.at(30.0);
    let seconds = std::time::Duration::from_secs;
    assert_eq!(bench.guard.current_count("t", Some("p"), seconds(10)), 0);
    assert_eq!(bench.guard.current_count("t", Some("p"), seconds(60)), 1);
    assert!(!bench.decide("t", "p", json!({})).allowed);
    bench.guard.reset_count("t", Some("p"));
    bench.guard.reset_count("t", Some("nobody"));
    assert!(bench.decide("t", "p", json!({})).allowed);
}
