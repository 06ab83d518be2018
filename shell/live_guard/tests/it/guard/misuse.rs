//! Misuse alerts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::broadcast::Receiver;
use toolwarden_live_guard::{Call, MisuseAlert, MisuseRule, MisuseRules};

use super::{GuardFixture, call, fixture, groups};

const POLICY: &str = "
tools:
  read: {group: [knowledge]}
  pay: {group: [money]}
principals:
  bot: {groups: [knowledge, money], default_groups: [knowledge]}
  thief: {groups: [knowledge]}
";

fn rules(alerts: &mut Receiver<Arc<MisuseAlert>>) -> Vec<(String, MisuseRule)> {
    let mut found = Vec::new();
    while let Ok(alert) = alerts.try_recv() {
        found.push((alert.principal.clone(), alert.rule));
    }
    found
}

fn deny(bench: &GuardFixture, principal: &str, times: usize) {
    for _ in 0..times {
        assert!(!bench.decide("no-such-tool", principal, json!({})).allowed);
    }
}

#[test]
fn hostile_requests_raise_one_alert_per_rule() {
    let bench = fixture(POLICY);
    let mut alerts = bench.guard.subscribe_misuse();
    deny(&bench, "thief", 90);
    for _ in 0..30 {
        bench.guard.record_foreign_session("thief", "bot");
    }
    assert_eq!(
        rules(&mut alerts),
        [
            ("thief".to_owned(), MisuseRule::Denials),
            ("thief".to_owned(), MisuseRule::ForeignSessions),
            ("thief".to_owned(), MisuseRule::Escalations),
        ]
    );
    // An hour later the rule raises an alert again.
    bench.at(3_601.0);
    deny(&bench, "thief", 29);
    assert_eq!(rules(&mut alerts), []);
    deny(&bench, "thief", 1);
    assert_eq!(
        rules(&mut alerts),
        [("thief".to_owned(), MisuseRule::Denials)]
    );
}

#[test]
fn what_is_spread_over_time_and_principals_is_no_alert() {
    let bench = fixture(POLICY);
    let mut alerts = bench.guard.subscribe_misuse();
    for minute in 0..120 {
        bench.at(f64::from(minute) * 60.0);
        deny(&bench, "bot", 2);
        deny(&bench, "thief", 2);
    }
    assert_eq!(rules(&mut alerts), []);
}

#[test]
fn a_principal_that_suddenly_uses_other_groups_is_an_alert() {
    let bench = fixture(POLICY);
    let mut alerts = bench.guard.subscribe_misuse();
    let ask = |tool: &str, group: &str| {
        let call = Call {
            groups: groups(&[group]),
            ..call(tool, "bot", json!({}))
        };
        assert!(bench.guard.intercept(&call).allowed);
    };
    for _ in 0..20 {
        ask("read", "knowledge");
    }
    assert_eq!(rules(&mut alerts), []);
    ask("pay", "money");
    ask("pay", "money");
    assert_eq!(
        rules(&mut alerts),
        [("bot".to_owned(), MisuseRule::NewGroups)]
    );
}

#[test]
fn rules_can_be_changed_and_turned_off() {
    let bench = fixture(POLICY);
    let mut alerts = bench.guard.subscribe_misuse();
    bench.guard.set_misuse_rules(MisuseRules {
        denials: 0,
        escalations: 2,
        foreign_sessions: 0,
        alert_interval: Duration::from_secs(60),
        ..MisuseRules::default()
    });
    deny(&bench, "thief", 100);
    bench.guard.record_foreign_session("thief", "bot");
    assert_eq!(rules(&mut alerts), []);
    bench.guard.record_foreign_session("thief", "bot");
    assert_eq!(
        rules(&mut alerts),
        [("thief".to_owned(), MisuseRule::Escalations)]
    );
}

#[test]
fn many_principals_do_not_fill_the_memory_or_hide_one() {
    let bench = fixture(POLICY);
    let mut alerts = bench.guard.subscribe_misuse();
    for n in 0..25_000 {
        deny(&bench, &format!("p{n}"), 1);
    }
    deny(&bench, "thief", 30);
    assert_eq!(
        rules(&mut alerts),
        [("thief".to_owned(), MisuseRule::Denials)]
    );
}
