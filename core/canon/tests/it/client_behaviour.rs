//! Replays of clients on damaged replies: any bytes give an outcome.

use toolwarden_canon::client_behaviour::{ClientLibrary, ClientOutcome, HttpReply, judge, replay};
use toolwarden_canon::reply::{self, ReplyLimits};
use toolwarden_model::reply::{StreamMode, WireApi};
use toolwarden_testkit::provider::misbehaviours;

fn check(content_type: &str, body: &[u8]) {
    let response = HttpReply { content_type, body };
    for wire in WireApi::ALL {
        for mode in StreamMode::ALL {
            for client in ClientLibrary::ALL {
                let speaks = ClientLibrary::of_wire(wire).contains(&client);
                assert_eq!(replay(client, wire, mode, response).is_some(), speaks);
            }
            if let Ok(reply) = reply::read(wire, mode, body, &ReplyLimits::default()) {
                let _findings = judge(wire, mode, response, &reply);
            }
        }
    }
}

#[test]
fn damaged_replies_give_an_outcome_in_every_client() {
    for row in misbehaviours() {
        for response in [row.nonstream, row.stream].into_iter().flatten() {
            let body = response.body();
            for at in (0..body.len()).step_by(61) {
                check(response.content_type(), &body[..at]);
                let mut damaged = body.to_vec();
                damaged[at] = b'[';
                check(response.content_type(), &damaged);
            }
        }
    }
}

#[test]
fn correct_replies_reach_every_client_unchanged() {
    for row in misbehaviours()
        .iter()
        .filter(|it| it.id.ends_with("-correct"))
    {
        let wire = WireApi::ALL.into_iter().find(|it| it.as_str() == row.wire);
        let modes = [
            (StreamMode::Nonstream, &row.nonstream),
            (StreamMode::Stream, &row.stream),
        ];
        for (mode, response) in modes {
            let response = response.as_ref().unwrap();
            let bytes = HttpReply {
                content_type: response.content_type(),
                body: response.body(),
            };
            let reply = reply::read(
                wire.unwrap(),
                mode,
                response.body(),
                &ReplyLimits::default(),
            )
            .unwrap();
            assert_eq!(
                judge(wire.unwrap(), mode, bytes, &reply),
                Vec::new(),
                "{}",
                row.id
            );
        }
    }
}

#[test]
fn a_long_stream_takes_time_in_proportion_to_its_length() {
    // A megabyte of arguments in small pieces; time that grows with its square would exceed any limit.
    let mut body = String::new();
    let first = r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\":\""}}]}}]}"#;
    let piece = r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"xxxxxxxxxxxxxxxx"}}]}}]}"#;
    let last = r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]},"finish_reason":"tool_calls"}]}"#;
    body.push_str(&format!("data: {first}\n\n"));
    body.push_str(&format!("data: {piece}\n\n").repeat(40_000));
    body.push_str(&format!("data: {last}\n\ndata: [DONE]\n\n"));
    let response = HttpReply {
        content_type: "text/event-stream",
        body: body.as_bytes(),
    };
    for client in ClientLibrary::of_wire(WireApi::OpenaiChat) {
        let outcome = replay(*client, WireApi::OpenaiChat, StreamMode::Stream, response);
        let Some(ClientOutcome::Handed(handed)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(handed.calls.len(), 1);
        assert!(handed.calls[0].arguments.to_string().len() > 640_000);
    }
}
