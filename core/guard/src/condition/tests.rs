use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A Monday in Berlin, 09:30 in winter time.
const MONDAY: &str = "2026-11-16T08:30:00Z";

fn condition_inputs(now: &str, load: Option<f64>, attributes: Value) -> ConditionInputs {
    let Value::Object(attributes) = attributes else {
        panic!("attributes are an object");
    };
    ConditionInputs {
        now: now.parse().unwrap(),
        zone: parse_time_zone("Europe/Berlin").unwrap(),
        load,
        attributes: attributes.into_iter().collect(),
    }
}

/// The result, `true` or `false`, or else the error.
fn answer(condition: &str, condition_inputs: &ConditionInputs) -> String {
    match Condition::parse(condition).unwrap().holds(condition_inputs) {
        Ok(answer) => answer.to_string(),
        Err(error) => error.to_string(),
    }
}

fn refusal(condition: &str) -> String {
    Condition::parse(condition).unwrap_err().to_string()
}

#[test]
fn business_hours_follow_the_clock_across_a_change_of_time() {
    let hours = r#"time.clock >= "09:00" && time.clock < "17:30"
        && time.weekday in ["mon", "tue", "wed", "thu", "fri"]"#;
    let cases = [
        // Winter time until the last Sunday of March 2026, the 29th: 09:00 is 08:00 UTC.
        ("2026-03-27T07:59:59Z", "false"),
        ("2026-03-27T08:00:00Z", "true"),
        ("2026-03-27T16:29:59Z", "true"),
        ("2026-03-27T16:30:00Z", "false"),
        ("2026-03-29T10:00:00Z", "false"),
        // Summer time from the 29th on: 09:00 is 07:00 UTC.
        ("2026-03-30T06:59:59Z", "false"),
        ("2026-03-30T07:00:00Z", "true"),
        ("2026-03-30T15:30:00Z", "false"),
        // And back on the 25th of October.
        ("2026-10-23T07:00:00Z", "true"),
        ("2026-10-26T07:00:00Z", "false"),
        ("2026-10-26T08:00:00Z", "true"),
    ];
    for (now, expected) in cases {
        assert_eq!(
            answer(hours, &condition_inputs(now, None, json!({}))),
            expected,
            "{now}"
        );
    }
}

#[test]
fn every_field_of_time_is_in_the_zone() {
    let now = condition_inputs("2026-12-31T23:05:00Z", None, json!({}));
    for condition in [
        "time.hour == 0 && time.minute == 5",
        "time.clock == \"00:05\"",
        "time.weekday == \"fri\"",
        "time.year == 2027 && time.month == 1 && time.day == 1",
        "time.date == \"2027-01-01\" && time.date > \"2026-12-31\"",
        "time.hour * 60 + time.minute < 90",
    ] {
        assert_eq!(answer(condition, &now), "true", "{condition}");
    }
}

#[test]
fn load_is_a_number_or_not_known() {
    let at = |load| answer("load < 0.8", &condition_inputs(MONDAY, load, json!({})));
    assert_eq!(at(Some(0.5)), "true");
    assert_eq!(at(Some(0.8)), "false");
    assert_eq!(at(None), "load is not known");
    assert_eq!(at(Some(f64::NAN)), "load is not known");
    let relaxed = answer(
        "time.hour < 8 && load < 1",
        &condition_inputs(MONDAY, None, json!({})),
    );
    assert_eq!(relaxed, "false");
}

#[test]
fn attributes_are_read_and_missing_ones_named() {
    let attributes = json!({
        "team": "ops", "level": 3, "ratio": 1.0, "on_call": true, "roles": ["admin", "dev"],
        "team-id": "x", "nothing": null, "huge": 18_446_744_073_709_551_615_u64,
    });
    let given = condition_inputs(MONDAY, None, attributes);
    let cases = [
        ("request.team == \"ops\"", "true"),
        (
            "request.team.startsWith(\"o\") && request.team.size() == 3",
            "true",
        ),
        ("request.level >= 2 && request.level < 3.5", "true"),
        ("request.ratio == 1", "true"),
        ("request.huge > 1", "true"),
        ("request.on_call", "true"),
        ("!request.on_call", "false"),
        (
            "\"admin\" in request.roles && !(\"root\" in request.roles)",
            "true",
        ),
        (
            "request.roles[0] == \"admin\" && size(request.roles) == 2",
            "true",
        ),
        ("request[\"team-id\"] == \"x\"", "true"),
        ("has(request.team) && !has(request.tea)", "true"),
        ("\"team\" in request", "true"),
        ("request.nothing == null", "true"),
        ("request.on_call ? time.hour == 9 : false", "true"),
        ("has(request.owner) && request.owner == \"me\"", "false"),
        ("request.owner == \"me\"", "request.owner is not given"),
        (
            "request[\"the owner\"] == \"me\"",
            "request.the owner is not given",
        ),
        ("!(request.owner == \"me\")", "request.owner is not given"),
        ("request.team", "the condition gives a text, not a boolean"),
        ("request.team < 3", "`<` does not work with string and int"),
        (
            "request.team && true",
            "`&&` does not work with string and bool",
        ),
        ("!request.team", "`!` does not work with string"),
        (
            "request.team ? true : false",
            "`?:` does not work with string",
        ),
        (
            "request.team + 1 == 2",
            "`+` does not work with a text and a whole number",
        ),
        (
            "request.level.contains(\"x\")",
            "`contains` does not work with int and string",
        ),
        (
            "\"x\" in request.level",
            "`in` does not work with string and int",
        ),
        (
            "request.roles[2] == \"x\"",
            "an index lies outside its list",
        ),
        (
            "request.roles[-1] == \"x\"",
            "an index lies outside its list",
        ),
        (
            "request.level / 0 == 1",
            "a calculation divides by zero or overflows",
        ),
        (
            "request.level % 0 == 1",
            "a calculation divides by zero or overflows",
        ),
        (
            "request.level * 9223372036854775807 == 1",
            "a calculation divides by zero or overflows",
        ),
    ];
    for (condition, expected) in cases {
        assert_eq!(answer(condition, &given), expected, "{condition}");
    }
}

#[test]
fn an_attribute_that_cannot_be_read_makes_the_request_unknown() {
    let unreadable = "request.bad is neither a text, a number, a boolean nor a list of these";
    let deep: Value =
        serde_json::from_str(&format!("{}{}", "[".repeat(100), "]".repeat(100))).unwrap();
    let large: Value = serde_json::from_str("123456789012345678901234567890").unwrap();
    for bad in [json!({"a": 1}), json!([[1]]), deep, large] {
        let given = condition_inputs(MONDAY, None, json!({"bad": bad, "team": "ops"}));
        assert_eq!(answer("request.team == \"ops\"", &given), unreadable);
        assert_eq!(answer("!has(request.bad)", &given), unreadable);
        assert_eq!(answer("time.hour == 9", &given), "true");
    }
}

#[test]
fn what_could_never_be_evaluated_is_refused_at_once() {
    let cases = [
        (
            "tme.hour < 9",
            "unknown variable `tme`, did you mean `time`?",
        ),
        ("lod < 0.5", "unknown variable `lod`, did you mean `load`?"),
        ("user == \"x\"", "unknown variable `user`"),
        ("false && user == \"x\"", "unknown variable `user`"),
        ("int == int", "unknown variable `int`"),
        (
            "time.weekdy == \"mon\"",
            "unknown field `time.weekdy`, did you mean `weekday`?",
        ),
        (
            "request.team.startswith(\"o\")",
            "unknown function `startswith`, did you mean `startsWith`?",
        ),
        ("now() > 3", "unknown function `now`"),
        (
            "request.team.matches(\"(a+)+\")",
            "unknown function `matches`",
        ),
        ("startsWith(\"a\", \"b\")", "wrong use of `startsWith`"),
        ("has(time.hour)", "wrong use of `has`"),
        (
            "request.roles.exists(r, r == \"x\")",
            "`all`, `exists`, `map` and `filter` are not supported in conditions",
        ),
        (
            "request.user.name == \"x\"",
            "fields of anything but `time` and `request` are not supported in conditions",
        ),
        (
            "time == 3",
            "`time` without a field is not supported in conditions",
        ),
        (
            "{\"a\": 1}[\"a\"] == 1",
            "maps are not supported in conditions",
        ),
        (
            "time.hour",
            "the condition gives a whole number, not a boolean",
        ),
        ("\"yes\"", "the condition gives a text, not a boolean"),
        (
            "time.hour < \"9\"",
            "`<` does not work between a whole number and a text",
        ),
        (
            "time.hour == \"9\"",
            "`==` does not work between a whole number and a text",
        ),
        (
            "time.hour in [\"9\"]",
            "`in` does not work between a whole number and a text",
        ),
        (
            "load * 100 < 80",
            "`*` does not work between a decimal number and a whole number",
        ),
        ("load && true", "`&&` does not work with a decimal number"),
        (
            "request[request.team] == 1",
            "`[]` does not work between the whole request and an attribute",
        ),
        (
            "time.clock >= \"9:00\"",
            "`9:00` is not a time of day such as `09:00`",
        ),
        (
            "\"25:00\" > time.clock",
            "`25:00` is not a time of day such as `09:00`",
        ),
        (
            "time.weekday in [\"mon\", \"Tuesday\"]",
            "`Tuesday` is not one of mon, tue, wed, thu, fri, sat and sun",
        ),
        (
            "time.weekday <= \"fri\"",
            "`<=` does not work with a weekday",
        ),
        (
            "time.date == \"2026-2-30\"",
            "`2026-2-30` is not a date such as `2026-11-16`",
        ),
        (
            "",
            "mismatched input '<EOF>' expecting expression (line 1, column 1)",
        ),
        (
            "time.hour <\n \"é\" &",
            "unexpected single '&', expected '&&' (line 2, column 6)",
        ),
    ];
    for (condition, expected) in cases {
        assert_eq!(refusal(condition), expected, "{condition}");
    }
}

#[test]
fn long_and_deep_conditions_are_refused_on_a_small_stack() {
    let small = std::thread::Builder::new().stack_size(256 * 1024);
    let thread = small.spawn(|| {
        let too_deep = "the condition nests deeper than 16 levels";
        assert_eq!(
            refusal(&"(".repeat(1001)),
            "the condition has 1001 characters, 1000 are allowed"
        );
        assert_eq!(refusal(&"(".repeat(900)), too_deep);
        assert_eq!(refusal(&"[".repeat(900)), too_deep);
        assert_eq!(refusal(&"size(".repeat(180)), too_deep);
        assert_eq!(refusal(&"true?".repeat(180)), too_deep);
        assert_eq!(
            refusal(&format!("{}true", "true?true:".repeat(90))),
            too_deep
        );
        assert_eq!(refusal(&format!("{}1 == 1", "1+".repeat(490))), too_deep);
        assert_eq!(refusal(&format!("{}true", "!-".repeat(490))), too_deep);
        assert_eq!(refusal(&format!("request{}", ".a".repeat(490))), too_deep);
        let many = [
            format!("{}true{}", "(".repeat(450), ")".repeat(450)),
            format!("{}true", "!".repeat(900)),
            format!("{}1 == 1", "- ".repeat(450)),
            vec!["true"; 125].join("&&"),
            vec!["time.hour==9"; 70].join("||"),
            format!("{}true", "true?true:".repeat(14)),
        ];
        for condition in many {
            let expected = answer(&condition, &condition_inputs(MONDAY, None, json!({})));
            assert_eq!(expected, "true", "{condition}");
        }
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn zones_come_from_the_program_itself() {
    assert_eq!(
        parse_time_zone("Europe/Berlin").unwrap().iana_name(),
        Some("Europe/Berlin")
    );
    assert!(parse_time_zone("UTC").is_ok());
    for name in [
        "Europe/Bonn",
        "",
        "../../etc/passwd",
        "Etc/Unknown",
        "local",
    ] {
        let error = parse_time_zone(name).unwrap_err();
        assert_eq!(error.to_string(), format!("unknown time zone `{name}`"));
    }
    let error = parse_time_zone("Europe/Belrin").unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown time zone `Europe/Belrin`, did you mean `Europe/Berlin`?"
    );
}

/// Pieces of conditions in any order, most of them nonsense.
fn any_expression() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "time.hour",
        "time.clock",
        "time.date",
        "time.weekday",
        "load",
        "request",
        "request.text",
        "request.list",
        "request.number",
        "request.big",
        "request[\"text\"]",
        "\"09:00\"",
        "\"é\"",
        "'x'",
        "1",
        "-1",
        "0",
        "9223372036854775807",
        "-9223372036854775808",
        "1e308",
        "0.0",
        "true",
        "false",
        "null",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        ">=",
        "in",
        "?",
        ":",
        "(",
        ")",
        "[",
        "]",
        "[1, 2]",
        ",",
        ".size()",
        ".contains(",
        "size(",
        "has(",
        "{",
        "}",
        ".",
        "é",
        "`a`",
        "r'\\'",
        "b'\\xff'",
        "1u",
        "0x",
        "\"\\u12\"",
        "//",
        "\n",
        "&",
        "\\",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.join(" "))
}

/// Expressions that mostly pass the check, to reach the evaluator.
fn sound_expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "time.hour",
        "request.text",
        "request.list",
        "request.number",
        "request.big",
        "request.none",
        "request.decimal",
        "request.list[0]",
        "9223372036854775807",
        "-9223372036854775808",
        "0",
        "-1",
        "true",
        "null",
        "[request.text, 1]",
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 3, |inner| {
        let operator = prop::sample::select(vec![
            "&&", "||", "+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "in",
        ]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            inner.clone().prop_map(|a| format!("!({a})")),
            inner.clone().prop_map(|a| format!("-({a})")),
            inner.clone().prop_map(|a| format!("size({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}).contains({b})")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
        ]
    })
}

fn evaluate(text: &str) {
    let Ok(condition) = Condition::parse(text) else {
        return;
    };
    let attributes = json!({
        "text": "a é text", "list": [1, "x", true, null, 2.5], "number": i64::MIN,
        "big": u64::MAX, "decimal": 1e308,
    });
    let given = condition_inputs(MONDAY, Some(0.5), attributes);
    let first = condition.holds(&given);
    assert_eq!(condition.holds_in(&ConditionContext::new(&given)), first);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_makes_a_condition_panic(text in any::<String>()) {
        evaluate(&text);
    }

    #[test]
    fn no_pieces_make_a_condition_panic(text in any_expression()) {
        evaluate(&text);
    }

    #[test]
    fn no_sound_condition_panics_when_evaluated(text in sound_expression()) {
        evaluate(&text);
    }
}
