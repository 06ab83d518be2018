use serde_json::{Value, json};
use toolwarden_model::reply::ArgumentsClass;
use toolwarden_testkit::read_vectors;
use toolwarden_trials::{
    MeasuredReply, PinnedContract, PinnedToolContract, Snapshot, compare_with_pinned,
};

use super::tooldrift::measured;
use super::{calling, reply, snapshot_of, weather};

fn change_lines_of(snapshot: &Snapshot, expected: &Value) -> Vec<String> {
    let changes = compare_with_pinned(snapshot, &pinned(expected));
    let told = changes.iter().map(|it| {
        let tool = it.tool.as_deref().unwrap_or("-");
        format!(
            "{} {tool} {}: {} → {}: {}",
            it.severity().as_str(),
            it.evidence.rule,
            it.before_text(),
            it.after_text(),
            it.message
        )
    });
    told.collect()
}

#[test]
fn what_a_model_did_can_be_pinned_whole() {
    let Some(vectors) = read_vectors("probe-flagship.json") else {
        return;
    };
    let suite = weather();
    let of = |provider: &str| {
        let reply = measured(&suite, &vectors[format!("{provider}_fixture")]);
        snapshot_of(&suite, provider, vec![reply])
    };
    let expected = &vectors["deepseek_snapshot"]["tools"];
    assert_eq!(
        change_lines_of(&of("deepseek"), expected),
        Vec::<String>::new()
    );
    let rows = vectors["diff_fields"].as_object().unwrap();
    let mut wanted: Vec<String> = rows
        .iter()
        .flat_map(|(tool, rows)| {
            rows.as_array().unwrap().iter().map(move |row| {
                let text = |at: usize| row[at].as_str().unwrap();
                format!(
                    "{} {tool} {}: {} → {}: matches its pin in 0 of 1 trials",
                    text(3),
                    text(0),
                    text(1),
                    text(2)
                )
            })
        })
        .collect();
    let mut found = change_lines_of(&of("qwen"), expected);
    wanted.sort();
    found.sort();
    assert_eq!(found, wanted, "all ten rows");
}

#[test]
fn only_what_is_named_is_compared() {
    let suite = weather();
    let with = || calling(&suite, json!({"location": "x", "unit": "celsius"}));
    let without = || calling(&suite, json!({"location": 1}));
    let found = snapshot_of(
        &suite,
        "p",
        vec![with(), with(), without(), reply(Vec::new())],
    );
    for (expected, changes) in [
        (json!({}), vec![]),
        (json!({"get_weather": {}}), vec![]),
        (
            json!({"get_weather": {"arguments_encoding": "json_string", "parallel_arity": 1}}),
            vec![],
        ),
        (
            json!({"get_weather": {"arguments_encoding": "object"}}),
            vec![
                "breaking get_weather arguments_encoding: object → json_string: matches its pin in 0 of 3 trials",
            ],
        ),
        (
            json!({"get_weather": {"emitted": true}}),
            vec!["breaking get_weather emitted: True → False: matches its pin in 3 of 4 trials"],
        ),
        (
            json!({"get_weather": {"arg_keys": ["unit", "location"], "arg_nesting": {"location": "string"}}}),
            vec![
                "breaking get_weather arg_keys: location, unit → location: matches its pin in 2 of 3 trials",
                "breaking get_weather arg_nesting:location: string → integer: matches its pin in 2 of 3 trials",
            ],
        ),
        (
            json!({"get_weather": {"emit_rate": 0.9, "schema_valid_rate": 0.5, "id_class": "toolu"}}),
            vec![
                "breaking get_weather emit_rate: at least 0.9 → 3 of 4: does not match its pin",
                "warning get_weather id_class: toolu → openai_call: matches its pin in 0 of 3 calls",
            ],
        ),
        (
            json!({"get_forecast": {"emitted": true, "arguments_encoding": "object"}}),
            vec![
                "breaking get_forecast arguments_encoding: object → not called: does not match its pin",
                "breaking get_forecast emitted: True → False: matches its pin in 0 of 4 trials",
            ],
        ),
        (
            json!({"get_forecast": {"emit_rate": 0.1, "schema_valid_rate": 0.1, "id_class": "toolu"}}),
            vec![
                "breaking get_forecast emit_rate: at least 0.1 → 0 of 4: does not match its pin",
                "breaking get_forecast schema_valid_rate: at least 0.1 → not called: does not match its pin",
                "warning get_forecast id_class: toolu → not called: does not match its pin",
            ],
        ),
        (
            json!({"rm_rf": {"emitted": false}}),
            vec!["breaking rm_rf emitted: pinned → absent: the suite has no such tool"],
        ),
    ] {
        assert_eq!(change_lines_of(&found, &expected), changes, "{expected}");
    }
}

/// A field must hold in every trial, not in most of them.
#[test]
fn half_of_the_trials_are_not_all() {
    let suite = weather();
    let good = || calling(&suite, json!({"location": "x"}));
    let half = |other: MeasuredReply| {
        let mut replies = vec![good(); 5];
        replies.extend(vec![other; 5]);
        snapshot_of(&suite, "p", replies)
    };
    let encoded = |class: ArgumentsClass| {
        let mut reply = good();
        reply.calls[0].class = class;
        reply
    };
    let string = json!({"get_weather": {"arguments_encoding": "json_string"}});
    for (other, expected, row) in [
        (
            reply(Vec::new()),
            json!({"get_weather": {"emitted": true}}),
            "emitted: True → False: matches its pin in 5 of 10 trials",
        ),
        (
            calling(&suite, json!({"location": 3})),
            json!({"get_weather": {"arg_nesting": {"location": "string"}}}),
            "arg_nesting:location: string → integer: matches its pin in 5 of 10 trials",
        ),
        (
            encoded(ArgumentsClass::DoubleEncoded),
            string.clone(),
            "arguments_encoding: json_string → double_encoded: matches its pin in 5 of 10 calls",
        ),
        (
            encoded(ArgumentsClass::Invalid),
            string.clone(),
            "arguments_encoding: json_string → invalid: matches its pin in 5 of 10 calls",
        ),
        (
            encoded(ArgumentsClass::Truncated),
            string,
            "arguments_encoding: json_string → truncated: matches its pin in 5 of 10 calls",
        ),
    ] {
        let row = format!("breaking get_weather {row}");
        assert_eq!(change_lines_of(&half(other), &expected), [row]);
    }
}

/// What a contract file would pin, without its reader.
fn pinned(expected: &Value) -> PinnedContract {
    let tools = expected.as_object().unwrap().iter();
    let tools = tools.map(|(name, fields)| {
        let text = |field: &str| Some(fields.get(field)?.as_str()?.to_owned());
        let share = |field: &str| fields.get(field)?.as_f64();
        let texts = |value: &Value| {
            let texts = value.as_array().unwrap().iter();
            let texts = texts.map(|it| it.as_str().unwrap().to_owned());
            texts
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect()
        };
        let types = |value: &Value| {
            let types = value.as_object().unwrap().iter();
            types
                .map(|(key, it)| (key.clone(), it.as_str().unwrap().to_owned()))
                .collect()
        };
        let pinned = PinnedToolContract {
            emitted: fields.get("emitted").and_then(Value::as_bool),
            arg_keys: fields.get("arg_keys").map(texts),
            arg_nesting: fields.get("arg_nesting").map(types),
            arguments_encoding: text("arguments_encoding"),
            parallel_arity: fields.get("parallel_arity").and_then(Value::as_u64),
            tool_call_id_format: text("tool_call_id_format"),
            finish_reason: text("finish_reason"),
            id_class: text("id_class"),
            emit_rate: share("emit_rate"),
            schema_valid_rate: share("schema_valid_rate"),
        };
        (name.clone(), pinned)
    });
    tools.collect()
}
