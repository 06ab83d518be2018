//! A key that a provider echoes appears in no stored or displayed text.

use serde_json::json;
use toolwarden_model::reply::{StreamMode, WireApi};
use toolwarden_probe::{
    ApiKey, MissingSecret, ProbeTarget, Provider, ProviderHeaders, RunSettings, capture,
};
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, RecordedRequest, Script, chat_completion, streamed_completion,
    tool_call,
};

use crate::support::{KEY, repeated, run_target, snapshot_of, suite, target_on};

/// The key in every place where a provider can put it.
fn echo(seen: &RecordedRequest, before: usize) -> ProviderResponse {
    let authorization = seen.header("authorization").unwrap_or(KEY).to_owned();
    let echoed = json!({
        "role": "assistant",
        "content": format!("Your key is {KEY}"),
        "reasoning_content": KEY,
        "tool_calls": [
            tool_call(KEY, "get_weather", &format!(r#"{{"location":"{KEY}","{KEY}":1,"unit":"{KEY}"}}"#)),
            tool_call("call_1a1b2c3d4e", KEY, &format!("{{'{KEY}': '{KEY}'}}")),
        ]
    });
    let answer = match before % 5 {
        0 => ProviderResponse::refusal(401, &format!("wrong key: {authorization}")),
        1 => ProviderResponse::new(200, "text/html", format!("<p>{authorization}</p>")),
        2 => ProviderResponse::new(302, "text/plain", "")
            .header("location", &format!("/login/{KEY}")),
        _ => {
            let mut body = chat_completion(&echoed, &json!(KEY));
            body["model"] = json!(KEY);
            if seen.wants_stream() {
                streamed_completion(&echoed, &json!(KEY))
            } else {
                ProviderResponse::json(&body)
            }
        }
    };
    answer
        .header("x-echo", &authorization)
        .header("set-cookie", KEY)
}

#[tokio::test]
async fn an_echoed_key_is_kept_nowhere() {
    for wire in WireApi::ALL {
        let provider = FakeProvider::start(Script::by(echo));
        let mut target = target_on(wire, &provider);
        target
            .provider
            .headers
            .insert("x-team".to_owned(), "${TEAM_TOKEN}".to_owned());
        let env = |_: &str| Some("team-secret-42".to_owned());
        target.headers = target.provider.resolve_headers(&env).unwrap();
        let settings = RunSettings {
            retries: 0,
            ..repeated(10, &StreamMode::ALL)
        };
        let run = run_target(target, &settings).await;
        assert_eq!(run.trials.len(), 20);
        let seen = provider.requests();
        let keys = ["authorization", "x-api-key", "x-goog-api-key"];
        let sent = keys.iter().filter_map(|it| seen[0].header(it));
        assert!(sent.into_iter().all(|it| it.ends_with(KEY)));
        assert_eq!(seen[0].header("x-team"), Some("team-secret-42"));

        let folder = tempfile::tempdir().unwrap();
        let paths = capture::write(folder.path(), "weather", std::slice::from_ref(&run)).unwrap();
        let captured = std::fs::read_to_string(&paths[0]).unwrap();
        let told: String = run
            .trials
            .iter()
            .filter_map(|it| it.outcome.as_ref().err())
            .map(ToString::to_string)
            .collect();
        for (place, text) in [
            ("the capture", captured),
            ("the snapshot", snapshot_of(&run).to_text()),
            ("the messages", told),
            ("the run", format!("{run:?}")),
        ] {
            for secret in [KEY, "team-secret-42"] {
                assert!(
                    !text.contains(secret),
                    "{wire}: {secret} is in {place}: {text}"
                );
            }
            assert!(
                place == "the snapshot" || text.contains("***"),
                "{wire}: {place}"
            );
        }
    }
}

/// A key that arrives in pieces is whole only in the reply, and is masked there.
#[tokio::test]
async fn a_key_in_pieces_is_masked_where_it_becomes_whole() {
    let message = json!({
        "role": "assistant", "content": null,
        "tool_calls": [tool_call("call_0a1b2c3d4e", "get_weather", &format!(r#"{{"location":"{KEY}"}}"#))]
    });
    let provider = FakeProvider::start(Script::always(streamed_completion(
        &message,
        &json!("tool_calls"),
    )));
    let target = target_on(WireApi::OpenaiChat, &provider);
    assert!(!format!("{target:?}").contains(KEY));
    let run = run_target(target, &repeated(1, &[StreamMode::Stream])).await;
    let measured = run.trials[0].outcome.as_ref().unwrap();
    assert_eq!(measured.calls[0].sent, Some(json!(r#"{"location":"***"}"#)));
    let kept = String::from_utf8(run.exchanges[0].1.body.clone()).unwrap();
    let data = kept.lines().filter_map(|it| it.strip_prefix("data: "));
    let events = data.filter_map(|it| serde_json::from_str::<serde_json::Value>(it).ok());
    let arguments = "/choices/0/delta/tool_calls/0/function/arguments";
    let pieces = events.filter_map(|it| Some(it.pointer(arguments)?.as_str()?.to_owned()));
    assert_eq!(pieces.collect::<String>(), r#"{"location":"***"}"#);
    assert_eq!(ProviderHeaders::default().secrets, Vec::<ApiKey>::new());
    assert_eq!(suite().name, "weather");
}

#[test]
fn a_secret_that_no_header_can_hold_is_a_mistake() {
    let mut provider = Provider::custom("my", "https://api.example.com/v1", "m");
    provider
        .headers
        .insert("x-team".to_owned(), "team ${TEAM_TOKEN}".to_owned());
    for (key, team, variable) in [
        ("sk-1\nsk-2", "fine", Some("MY_API_KEY")),
        ("sk-\u{7f}1", "fine", Some("MY_API_KEY")),
        ("fine", "a\r\nb", Some("TEAM_TOKEN")),
        ("fine\n", "fine", None),
    ] {
        let env = |name: &str| {
            let value = if name == "MY_API_KEY" { key } else { team };
            Some(value.to_owned())
        };
        let found = ProbeTarget::new(provider.clone(), &env).err();
        let expected = variable.map(|it| MissingSecret::Unusable {
            provider: "my".to_owned(),
            variable: it.to_owned(),
        });
        assert_eq!(found, expected, "{key:?} {team:?}");
    }
}
