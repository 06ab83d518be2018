use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_drift::{ChangeClass, ToolwatchChangeType};
use toolwarden_live_guard::{Clock, ManualClock};
use toolwarden_settings::WatchSettings;
use toolwarden_store::{AlertFilter, BaselineOrigin};
use toolwarden_watch::inline::{InlineOptions, ToolAction};

use super::{Gate, quick, run, tool};

fn result(value: &Value) -> Arc<str> {
    json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value})
        .to_string()
        .into()
}

fn learning() -> WatchSettings {
    WatchSettings {
        learn_results: 10,
        ..WatchSettings::default()
    }
}

#[test]
fn results_are_learned_and_drift_of_them_raises_an_alert() {
    run(async {
        let gate = Gate::with(quick(), learning());
        let tools = [tool("send", "Sends.")];
        gate.check(&tools).await;
        for index in 0..40 {
            gate.watch
                .observe_result("mail", "send", result(&json!({"id": index, "sent": true})));
        }
        gate.watch.flush().await.unwrap();
        let baselines = gate.watch.baselines("mail".to_owned()).await.unwrap();
        let origins: Vec<_> = baselines
            .iter()
            .map(|it| (it.origin, it.shape.is_some()))
            .collect();
        assert_eq!(origins, [(BaselineOrigin::Learned, true)]);
        assert_eq!(gate.watch.counters().results_read(), 40);

        let mut notices = gate.watch.subscribe_alerts();
        for index in 0..40 {
            gate.watch.observe_result(
                "mail",
                "send",
                result(&json!({"id": format!("m{index}"), "sent": "yes"})),
            );
        }
        gate.watch.flush().await.unwrap();
        let notice = notices.try_recv().unwrap();
        assert_eq!(
            (notice.tool.as_str(), notice.change_type),
            ("send", ToolwatchChangeType::Response)
        );
        // Results do not withhold a tool; their approval is pending separately.
        assert_eq!(
            gate.check(&tools).await.tool_actions["send"],
            ToolAction::Serve
        );
        let pending_approvals = gate.watch.pending_approvals(None).await.unwrap();
        let told: Vec<_> = pending_approvals
            .iter()
            .map(|it| (it.sighting.tool.as_str(), it.results.is_empty()))
            .collect();
        assert_eq!(told, [("send", false)]);
        assert_eq!(gate.watch.counters().failures(), 0);
    });
}

#[test]
fn results_of_a_drifted_tool_leave_its_alert_open() {
    run(async {
        let mut settings = learning();
        for class in ChangeClass::ALL {
            settings
                .on_drift
                .insert(class, toolwarden_settings::OnDrift::Serve);
        }
        let gate = Gate::with(quick(), settings);
        gate.check(&[tool("send", "Sends.")]).await;
        let changed = [tool("send", "Sends to all.")];
        assert_eq!(
            gate.check(&changed).await.tool_actions["send"],
            ToolAction::Serve
        );
        for index in 0..20 {
            gate.watch
                .observe_result("mail", "send", result(&json!({"id": index})));
        }
        gate.watch.flush().await.unwrap();
        let pending_approvals = gate.watch.pending_approvals(None).await.unwrap();
        assert_eq!(
            pending_approvals
                .iter()
                .map(|it| it.changes.len())
                .collect::<Vec<_>>(),
            [1]
        );
        let servers = gate.watch.servers().await.unwrap();
        assert_eq!(servers[0].open_alerts, 1);
    });
}

#[test]
fn output_schema_violations_raise_an_alert() {
    run(async {
        let gate = Gate::with(quick(), learning());
        let mut promising = tool("send", "Sends.");
        promising["outputSchema"] = json!({"type": "object", "properties": {"id": {"type": "integer"}},
            "required": ["id"]});
        gate.check(&[promising]).await;
        for _ in 0..20 {
            gate.watch
                .observe_result("mail", "send", result(&json!({"else": true})));
        }
        gate.watch.flush().await.unwrap();
        let alerts = gate.watch.alerts(AlertFilter::default()).await.unwrap();
        let told: Vec<_> = alerts
            .iter()
            .map(|it| (it.tool.as_str(), it.change_type.as_str()))
            .collect();
        assert_eq!(told, [("send", "response_change")]);
    });
}

#[test]
fn unchecked_results_are_not_stored() {
    run(async {
        let settings = WatchSettings {
            shapes: false,
            ..WatchSettings::default()
        };
        let gate = Gate::with(quick(), settings);
        gate.check(&[tool("send", "Sends.")]).await;
        for index in 0..20 {
            gate.watch
                .observe_result("mail", "send", result(&json!({"id": index})));
            gate.watch
                .observe_result("mail", "unknown", result(&json!({"id": index})));
            gate.watch
                .observe_result("unknown", "send", result(&json!({"id": index})));
        }
        gate.watch.observe_result("mail", "send", "no JSON".into());
        gate.watch.flush().await.unwrap();
        let baselines = gate.watch.baselines("mail".to_owned()).await.unwrap();
        assert_eq!(
            baselines
                .iter()
                .map(|it| it.shape.is_some())
                .collect::<Vec<_>>(),
            [false]
        );
        let figures = gate.watch.counters();
        assert_eq!(
            (
                figures.results_read(),
                figures.results_unreadable(),
                figures.failures()
            ),
            (60, 1, 0)
        );
    });
}

#[test]
fn dropped_results_are_counted() {
    run(async {
        let gate = Gate::with(
            InlineOptions {
                max_queued_bytes: 1000,
                ..quick()
            },
            WatchSettings::default(),
        );
        gate.check(&[tool("send", "Sends.")]).await;
        gate.watch
            .observe_result("mail", "send", "x".repeat(2000).into());
        assert_eq!(gate.watch.counters().results_dropped(), 1);
        gate.watch
            .observe_result("mail", "send", result(&json!({"id": 1})));
        gate.watch.flush().await.unwrap();
        assert_eq!(
            (
                gate.watch.counters().results_dropped(),
                gate.watch.counters().results_read()
            ),
            (1, 1)
        );

        let narrow = Gate::with(
            InlineOptions {
                max_queued: 2,
                ..quick()
            },
            WatchSettings::default(),
        );
        let long = result(&json!({"text": "word ".repeat(100_000)}));
        for _ in 0..50 {
            narrow
                .watch
                .observe_result("mail", "send", Arc::clone(&long));
        }
        narrow.watch.flush().await.unwrap();
        let figures = narrow.watch.counters();
        assert!(figures.results_dropped() > 0);
        assert_eq!(figures.results_dropped() + figures.results_read(), 50);
    });
}

#[test]
fn result_findings_are_published_each_time_and_alert_once_an_hour() {
    run(async {
        let clock = ManualClock::at("2026-11-16T10:00:00Z".parse().unwrap());
        let options = InlineOptions {
            clock: Clock::Manual(Arc::clone(&clock)),
            ..quick()
        };
        let gate = Gate::with(options, WatchSettings::default());
        gate.check(&[tool("send", "Sends.")]).await;
        let mut findings = gate.watch.subscribe_findings();
        let mut notices = gate.watch.subscribe_alerts();
        let hidden: Arc<str> =
            json!({"content": [{"type": "text", "text": "done\u{e0041}\u{e0042}"}]})
                .to_string()
                .into();
        for _ in 0..3 {
            gate.watch
                .observe_result("mail", "send", Arc::clone(&hidden));
        }
        gate.watch.flush().await.unwrap();
        for _ in 0..3 {
            let found = findings.try_recv().unwrap();
            assert_eq!(
                (
                    found.server.as_str(),
                    found.tool.as_str(),
                    found.rule,
                    found.excerpt.as_str()
                ),
                (
                    "mail",
                    "send",
                    "hidden-unicode",
                    "hides text in 2 tag characters (U+E0000 to U+E007F) (reads: AB)"
                )
            );
        }
        let notice = notices.try_recv().unwrap();
        assert_eq!(
            (notice.class, notice.change_type),
            (ChangeClass::Trust, ToolwatchChangeType::Response)
        );
        assert!(notices.try_recv().is_err());

        clock.set_elapsed(Duration::from_secs(3601));
        gate.watch
            .observe_result("mail", "send", Arc::clone(&hidden));
        gate.watch.observe_result("mail", "send", hidden);
        gate.watch.flush().await.unwrap();
        assert_eq!(notices.try_recv().unwrap().id, notice.id);
        assert!(notices.try_recv().is_err());
        let alert = gate.watch.alert(notice.id.clone()).await.unwrap().unwrap();
        assert_eq!((alert.tool.as_str(), alert.times), ("send", 2));
    });
}

#[test]
fn pictures_and_questions_are_no_text() {
    run(async {
        let gate = Gate::new();
        gate.check(&[tool("send", "Sends.")]).await;
        let mut findings = gate.watch.subscribe_findings();
        let picture = json!({"content": [{"type": "image", "data": "aWdub3JlIGFsbA\u{e0041}"}]});
        let question = json!({"resultType": "input_required", "content": [{"text": "\u{e0041}x"}]});
        for value in [picture, question] {
            gate.watch
                .observe_result("mail", "send", value.to_string().into());
        }
        gate.watch.flush().await.unwrap();
        assert!(findings.try_recv().is_err());
        assert_eq!(gate.watch.counters().results_read(), 2);
    });
}

#[test]
fn results_that_are_odd_are_searched_too() {
    run(async {
        let gate = Gate::new();
        gate.check(&[tool("send", "Sends.")]).await;
        let mut findings = gate.watch.subscribe_findings();
        let poison = r#""content":[{"type":"text","text":"done\udb40\udc41\udb40\udc42"}]"#;
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        for odd in [
            r#""resultType":"done""#.to_owned(),
            r#""_meta":{"x":"\ud800"}"#.to_owned(),
            format!(r#""_meta":{{"x":{deep}}}"#),
        ] {
            let result = format!("{{{poison},{odd}}}");
            gate.watch
                .observe_result("mail", "send", result.as_str().into());
            gate.watch.flush().await.unwrap();
            let found = findings.try_recv().unwrap();
            assert_eq!(found.rule, "hidden-unicode", "{odd}");
        }
    });
}
