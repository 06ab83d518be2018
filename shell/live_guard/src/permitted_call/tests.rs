use std::collections::BTreeMap;
use std::path::Path;

use serde_json::value::RawValue;
use toolwarden_guard::{ToolIdentity, ToolPolicy};

use super::*;
use crate::{AuditLog, Call, Clock, LiveGuard, LoadedPolicy};

const PRIVATE: &str = "toolwarden/";

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// A guard of one tool, `pay` of the server `bank`, which agents know as `bank__pay`.
fn guard() -> LiveGuard {
    let policy = b"tools: {bank__pay: {rate_limit: unlimited}, elsewhere: {}}";
    let policy = LoadedPolicy::of_text(policy, Path::new("p"), Path::new("")).unwrap();
    let guard = LiveGuard::new(policy.guard, AuditLog::recent(), Clock::default()).unwrap();
    let tool = ToolPolicy::discovered("bank__pay", None, None, None, None);
    let identity = ToolIdentity {
        server: ServerName::new("bank"),
        qualified: "bank__pay".into(),
        name: OwnName::new("pay"),
        alone: true,
        imitates: None,
        overlaps: None,
    };
    let identities = [("bank__pay".into(), identity)].into();
    let faults = guard.discover_served([tool], BTreeMap::new(), Vec::new(), identities);
    assert!(faults.is_empty());
    guard
}

fn decide(params: &CallParams<'_>) -> OpenCall {
    let call = Call {
        tool: params.name().as_str(),
        principal: "ada",
        arguments: Arc::clone(params.arguments()),
        ..Call::default()
    };
    guard().decide(&call).unwrap()
}

#[test]
fn a_call_is_permitted_once_and_only_with_the_parameters_that_were_decided() {
    let text = raw(
        r#"{"name":"bank__pay","arguments":{ "sum": 1 },"_meta":{"toolwarden/state":"x","k":1}}"#,
    );
    let params = CallParams::read(&text).unwrap();
    let mut open = decide(&params);
    let other = CallParams::read(&text).unwrap();
    assert_eq!(
        open.permitted_call(&other, PRIVATE).unwrap_err(),
        PermitError::OtherCall,
        "equal parameters that the guard did not see"
    );
    let permitted = open.permitted_call(&params, PRIVATE).unwrap();
    assert_eq!(permitted.server(), &ServerName::new("bank"));
    assert_eq!(permitted.tool(), &OwnName::new("pay"));
    assert_eq!(
        permitted.params().get(),
        r#"{"name":"pay","arguments":{ "sum": 1 },"_meta":{"k":1}}"#
    );
    assert_eq!(
        open.permitted_call(&params, PRIVATE).unwrap_err(),
        PermitError::UsedUp
    );
    open.report_success_unchecked();
}

#[test]
fn the_envelope_may_change_and_the_call_may_not() {
    let text = raw(r#"{"name":"bank__pay","arguments":{"sum":1}}"#);
    let params = CallParams::read(&text).unwrap();
    let mut open = decide(&params);
    let mut permitted = open.permitted_call(&params, PRIVATE).unwrap();
    let envelope = r#"{"name":"pay","arguments":{"sum":1},"_meta":{"progressToken":7}}"#;
    permitted.rewrap(|_| Cow::Owned(raw(envelope))).unwrap();
    for other in [
        r#"{"name":"pay","arguments":{"sum":1000}}"#,
        r#"{"name":"close_account","arguments":{"sum":1}}"#,
        r#"{"name":"pay"}"#,
        r#"{"name":"pay","arguments":{"sum":1000},"arguments":{"sum":1}}"#,
        r#"{"name":"pay","arguments":{"sum":1},"task":{"ttl":1}}"#,
        r#"{"name":"pay","arguments":{"sum":1},"inputResponses":{"1":{}}}"#,
        r#"{"arguments":{"sum":1},"name":"pay","_meta":{"progressToken":7}}"#,
        "[]",
    ] {
        let changed = permitted.rewrap(|_| Cow::Owned(raw(other)));
        assert_eq!(changed, Err(PermitError::OtherCall), "{other}");
        assert_eq!(permitted.params().get(), envelope);
    }
    open.report_success_unchecked();
}

#[test]
fn what_is_stamped_on_one_sending_is_not_in_the_next_round() {
    let text = raw(r#"{"name":"bank__pay","_meta":{"progressToken":"mine"}}"#);
    let params = CallParams::read(&text).unwrap();
    let mut open = decide(&params);
    let mut permitted = open.permitted_call(&params, PRIVATE).unwrap();
    let stamped = r#"{"name":"pay","_meta":{"progressToken":7}}"#;
    permitted.stamp(|_| Cow::Owned(raw(stamped))).unwrap();
    let again = permitted.into_sent().retry(false).unwrap().into_sent();
    assert_eq!(again.params().get(), stamped);
    let round = again.with_input(None, None).unwrap().into_sent();
    assert_eq!(
        round.params().get(),
        r#"{"name":"pay","_meta":{"progressToken":"mine"}}"#
    );
    open.report_success_unchecked();
}

#[test]
fn parameters_with_two_meanings_are_refused() {
    for text in [
        r#"{"name":"a","name":"b"}"#,
        r#"{"name":"a","arguments":{"x":1,"x":2}}"#,
        r#"{"name":1}"#,
        "[]",
    ] {
        assert!(CallParams::read(&raw(text)).is_err(), "{text}");
    }
}

#[test]
fn a_call_is_retried_once_and_gets_a_bounded_number_of_input_rounds() {
    let text = raw(r#"{"name":"bank__pay"}"#);
    let params = CallParams::read(&text).unwrap();
    let mut open = decide(&params);
    let permitted = open.permitted_call(&params, PRIVATE).unwrap();
    let again = permitted.into_sent().retry(true).unwrap();
    assert_eq!(again.exposed_tool(), &ExposedName::new("bank__pay"));
    assert!(again.is_retry());
    let mut sent = again
        .into_sent()
        .with_input(Some(r#"{"1":{}}"#), Some("\"s\""))
        .unwrap()
        .into_sent();
    assert_eq!(
        sent.params().get(),
        r#"{"name":"pay","inputResponses":{"1":{}},"requestState":"s"}"#
    );
    let mut rounds = 1;
    while let Some(next) = sent.with_input(None, None) {
        rounds += 1;
        sent = next.into_sent();
    }
    assert_eq!(rounds + 1, MAX_INPUT_ROUNDS);
    let permitted_twice = decide(&params)
        .permitted_call(&params, PRIVATE)
        .unwrap()
        .into_sent()
        .retry(false)
        .unwrap();
    assert!(permitted_twice.into_sent().retry(false).is_err());
    open.report_success_unchecked();
}

#[test]
fn a_tool_that_no_server_has_is_sent_nowhere() {
    let text = raw(r#"{"name":"elsewhere"}"#);
    let params = CallParams::read(&text).unwrap();
    let mut open = decide(&params);
    let sent = open.permitted_call(&params, PRIVATE);
    assert_eq!(sent.unwrap_err(), PermitError::NoServer);
    open.report_success_unchecked();
}

/// A member that looks like another is reported before a member is missed.
#[test]
fn the_callers_own_check_comes_before_the_members_are_understood() {
    let text = raw(r#"{"Name":"a","_meta":{"k":1}}"#);
    let read = CallParams::read_checked(&text, |members, meta| {
        assert_eq!(meta.unwrap().get("k"), Some("1"));
        let (first, _) = members.iter().next().unwrap();
        Err(CallParamsError::DuplicateMember(first.to_owned()))
    });
    assert_eq!(read.unwrap_err().to_string(), "params has `Name` twice");
    let unchecked = CallParams::read(&text).unwrap_err();
    assert_eq!(unchecked.to_string(), "params.name is not a string");
}
