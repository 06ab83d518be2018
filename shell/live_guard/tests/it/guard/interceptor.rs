use std::cell::Cell;
use std::convert::Infallible;

use serde_json::{Value, json};
use toolwarden_guard::ReasonCode;
use toolwarden_live_guard::{InterceptError, Interceptor};

use super::{call, fixture};

const POLICY: &str = "
tools:
  chat:
    input_schema: {type: object, properties: {prompt: {type: string}}, required: [prompt]}
    output_schema: {type: object, required: [text]}
    output: enforce
  plain: {rate_limit: 2}
";

#[test]
fn positional_arguments_are_bound_to_known_names() {
    let bench = fixture(POLICY);
    let interceptor = Interceptor::new(bench.guard.clone());
    let made = Cell::new(0);
    let chat = |prompt: String, _temperature: f64| {
        made.set(made.get() + 1);
        Ok::<Value, Infallible>(json!({"text": prompt}))
    };
    let unnamed = interceptor.wrap("chat", "agent-1", chat);
    let denied = unnamed.call(("hi".to_owned(), 0.5)).unwrap_err();
    let text = denied.to_string();
    assert!(
        text.starts_with("connection to 'chat' denied: input validation failed: "),
        "{text}"
    );
    assert!(
        matches!(denied, InterceptError::Denied { denial, .. } if denial.code == ReasonCode::InvalidInput)
    );
    assert_eq!(made.get(), 0, "a denied call is not made");

    let named = interceptor
        .wrap("chat", "agent-1", chat)
        .parameters(["prompt", "temperature"]);
    assert_eq!(
        named.call(("hi".to_owned(), 0.5)).unwrap(),
        json!({"text": "hi"})
    );
    assert_eq!(made.get(), 1);
    let arguments: Vec<Value> = bench
        .log
        .all()
        .iter()
        .filter(|it| it.is_decision())
        .map(|it| serde_json::from_str::<Value>(&it.content().body).unwrap()["arguments"].clone())
        .collect();
    assert_eq!(
        arguments,
        [
            json!({"arg_0": "hi", "arg_1": 0.5}),
            json!({"prompt": "hi", "temperature": 0.5})
        ]
    );
}

#[test]
fn outcomes_are_recorded() {
    let bench = fixture(POLICY);
    let interceptor = Interceptor::new(bench.guard.clone());
    let failing = interceptor.wrap("plain", "p", || Err::<(), _>("broken pipe"));
    assert!(matches!(
        failing.call(()),
        Err(InterceptError::Failed("broken pipe"))
    ));
    let wrong = interceptor.wrap("chat", "p", |_: &str| {
        Ok::<_, Infallible>(json!({"words": 1}))
    });
    let wrong = wrong.parameters(["prompt"]);
    assert!(matches!(
        wrong.call(("hi",)),
        Err(InterceptError::Output(_))
    ));
    assert_eq!(
        bench.kinds(),
        [
            "decision allowed",
            "outcome failed",
            "decision allowed",
            "outcome failed"
        ]
    );
    let body = bench.log.all()[1].content().body;
    assert!(body.contains("\"error\":\"broken pipe\""), "{body}");
    let call = call("plain", "p", json!({}));
    assert!(interceptor.intercept(&call).allowed);
    assert!(!interceptor.intercept(&call).allowed);
}

#[test]
fn outcomes_say_how_long_the_call_took() {
    let bench = fixture(POLICY);
    let slow = Interceptor::new(bench.guard.clone()).wrap("plain", "p", || {
        bench.at(1.5);
        Ok::<_, Infallible>(())
    });
    slow.call(()).unwrap();
    let body: Value = serde_json::from_str(&bench.log.all()[1].content().body).unwrap();
    assert_eq!(body["latency_ms"], json!(1500));
}

#[test]
fn a_wrapped_call_says_what_conditions_ask_about() {
    let bench = fixture(
        "tools: {t: {group: team}}
groups: {team: {when: 'request.team == \"finance\"'}}
principals: {p: {groups: [team]}}",
    );
    let tool = Interceptor::new(bench.guard).wrap("t", "p", || Ok::<_, Infallible>(7));
    let tool = tool.groups(["team"]);
    let off = tool.call(()).unwrap_err();
    assert!(
        matches!(off, InterceptError::Denied { denial, .. } if denial.code == ReasonCode::GroupOff)
    );
    assert_eq!(
        tool.attribute("team", json!("finance")).call(()).unwrap(),
        7
    );
}

#[test]
fn a_call_that_panics_is_recorded_as_abandoned() {
    let bench = fixture(POLICY);
    let interceptor = Interceptor::new(bench.guard.clone());
    let wrapped = interceptor.wrap("plain", "p", || -> Result<(), Infallible> {
        panic!("boom")
    });
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wrapped.call(())));
    assert!(caught.is_err());
    assert_eq!(bench.kinds(), ["decision allowed", "outcome abandoned"]);
}

#[test]
fn futures_are_intercepted_too() {
    let bench = fixture(POLICY);
    let interceptor = Interceptor::new(bench.guard.clone());
    let double = interceptor.wrap("plain", "p", |n: u32| async move {
        tokio::task::yield_now().await;
        Ok::<_, Infallible>(n * 2)
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let whole = interceptor.wrap("chat", "p", |arguments: Value| async move {
        Ok::<_, Infallible>(json!({"text": arguments["prompt"]}))
    });
    runtime.block_on(async {
        let said = whole.call_async_with(json!({"prompt": "hi"})).await;
        assert_eq!(said.unwrap(), json!({"text": "hi"}));
        assert_eq!(double.call_async((21,)).await.unwrap(), 42);
        // A future that is never polled does nothing; one that is dropped midway is abandoned.
        drop(double.call_async((1,)));
        tokio::select! {
            biased;
            _ = double.call_async((1,)) => {}
            () = std::future::ready(()) => {}
        }
    });
    assert_eq!(
        bench.kinds(),
        [
            "decision allowed",
            "outcome succeeded",
            "decision allowed",
            "outcome succeeded",
            "decision allowed",
            "outcome abandoned"
        ]
    );
}

#[test]
fn a_call_without_usable_arguments_is_recorded_as_refused() {
    let bench = fixture(POLICY);
    let interceptor = Interceptor::new(bench.guard.clone());
    let plain = interceptor.wrap("plain", "p", |_: i64, _: i64| Ok::<_, Infallible>(0));
    let denied = plain.parameters(["only one"]).call((1, 2)).unwrap_err();
    assert!(
        matches!(denied, InterceptError::Denied { denial, .. } if denial.code == ReasonCode::InvalidInput)
    );
    assert_eq!(bench.kinds(), ["decision invalid_input"]);
}

#[test]
fn a_value_can_be_the_arguments() {
    let bench = fixture(POLICY);
    let interceptor = Interceptor::new(bench.guard.clone());
    let chat = |arguments: Value| Ok::<_, Infallible>(json!({"text": arguments["prompt"]}));
    let chat = interceptor.wrap("chat", "p", chat);
    assert_eq!(
        chat.call_with(json!({"prompt": "hi"})).unwrap(),
        json!({"text": "hi"})
    );
    assert!(chat.call_with(json!({"prompt": 1})).is_err());
    assert_eq!(bench.kinds().last().unwrap(), "decision invalid_input");
}

#[test]
fn a_result_that_is_no_json_satisfies_nothing() {
    struct Unserializable;
    impl serde::Serialize for Unserializable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }
    let bench = fixture(
        "tools: {t: {output_schema: {type: [object, 'null']}, output: enforce, state: done}}",
    );
    let interceptor = Interceptor::new(bench.guard.clone());
    let wrapped = interceptor.wrap("t", "p", || Ok::<_, Infallible>(Unserializable));
    assert!(matches!(wrapped.call(()), Err(InterceptError::Output(_))));
    assert!(
        bench.guard.session("p", "").is_none(),
        "a failure moves nothing"
    );
}
