//! What the command ends with where there is a mistake in it or in a file: always 2.

use serde_json::json;
use toolwarden_testkit::provider::{ProviderResponse, chat_completion, good};

use super::{ProbeSandbox, parsed, serving};

const SUITE: &str = include_str!("../../../../examples/suite.weather.yaml");

/// Arguments after which the command must refuse, and how its message begins.
#[test]
fn mistakes_in_the_command() {
    let probe = ProbeSandbox::new();
    probe.write("suite.yaml", SUITE);
    probe.write(
        "contract.yaml",
        "suite: suite.yaml\nproviders: {deepseek: }\n",
    );
    probe.write("snapshot.json", "{}");
    probe.write(
        "fixture.json",
        &chat_completion(&good(), &json!("stop")).to_string(),
    );
    let unknown = "error: unknown provider 'absent' and no base_url/model_id override supplied.";
    for (args, message) in [
        (
            "snapshot --provider deepseek",
            "error: missing API key: set $DEEPSEEK_API_KEY for provider 'deepseek', \
             or run with --from-fixtures to replay an offline sample.\n",
        ),
        (
            "run --old deepseek --new qwen",
            "error: missing API key: set $DEEPSEEK_API_KEY for provider 'deepseek', ",
        ),
        (
            "compare-table",
            "error: missing API key: set $DEEPSEEK_API_KEY ",
        ),
        (
            "dialect -p kimi",
            "error: missing API key: set $MOONSHOT_API_KEY for provider 'kimi', ",
        ),
        (
            "run --contract contract.yaml",
            "error: nothing to compare: ",
        ),
        ("snapshot -p absent", unknown),
        ("snapshot -p absent --from-fixtures", unknown),
        ("snapshot -p absent --model m", unknown),
        (
            "snapshot -p deepseak",
            "error: unknown provider 'deepseak' and no base_url/model_id override supplied. \
             Did you mean `deepseek`?",
        ),
        ("run --old deepseek --new absent", unknown),
        ("compare-table -p absent", unknown),
        (
            "snapshot -p x --model m --base-url ftp://example.com",
            "error: expected a base_url such as https://api.example.com/v1, ",
        ),
        (
            "snapshot -p openai --from-fixtures",
            "error: no built-in fixture for provider 'openai'. Pass --fixture PATH. \
             Built-in fixtures: deepseek, qwen, kimi, glm, minimax.\n",
        ),
        (
            "run --old deepseek --new openai --from-fixtures",
            "error: no built-in fixture for ",
        ),
        (
            "snapshot -p deepseek --fixture fixture.json --model deepseek-chat",
            "error: the fixture is an answer of the model `synthetic-1`, not of `deepseek-chat`\n",
        ),
        (
            "run --old deepseek --new deepseek --new-model other --from-fixtures",
            "error: the fixture is an answer of the model `deepseek-chat`, not of `other`\n",
        ),
        (
            "snapshot -p deepseek --fixture gone.json",
            "error: cannot read gone.json\n",
        ),
        (
            "snapshot -p deepseek --suite gone.yaml --from-fixtures",
            "error: cannot read gone.yaml",
        ),
        ("run --contract gone.yaml", "error: cannot read gone.yaml"),
        (
            "diff gone.json snapshot.json",
            "error: cannot read gone.json\n",
        ),
        ("diff snapshot.json snapshot.json", "error: snapshot.json\n"),
        (
            "run --contract contract.yaml --base deepsek --from-fixtures",
            "error: the contract contract.yaml has no provider `deepsek`, did you mean `deepseek`?\n",
        ),
        (
            "run --contract contract.yaml --old deepseek --new qwen",
            "error: the argument ",
        ),
        (
            "run --old deepseek",
            "error: the following required arguments were not provided:",
        ),
        (
            "run",
            "error: the following required arguments were not provided:",
        ),
        (
            "snapshot",
            "error: the following required arguments were not provided:",
        ),
        (
            "snapshot -p deepseek --from-fixture",
            "error: unexpected argument '--from-fixture'",
        ),
        (
            "snapshot -p deepseek --timeout 0s",
            "error: invalid value '0s'",
        ),
        (
            "diff snapshot.json",
            "error: the following required arguments were not provided:",
        ),
        ("replay gone/", "error: gone/: No such file"),
        (
            "replay fixture.json",
            "error: fixture.json is not a capture: ",
        ),
        (
            "snapshot -p deepseek --from-fixtures -o snapshot.json/x.json",
            "error: cannot write snapshot.json",
        ),
        (
            "compare-table --from-fixtures -o snapshot.json/x.md",
            "error: cannot write snapshot.json",
        ),
    ] {
        let words: Vec<&str> = args.split(' ').collect();
        let said = probe.run(&words);
        assert_eq!(
            (said.code, said.out.as_str()),
            (2, ""),
            "{args}: {}",
            said.err
        );
        assert!(said.err.starts_with(message), "{args}: {}", said.err);
    }
}

#[test]
fn suite_and_contract_mistakes_are_reported_with_positions() {
    let probe = ProbeSandbox::new();
    probe.write("suite.yaml", SUITE);
    let suite = [
        "snapshot",
        "-p",
        "deepseek",
        "--from-fixtures",
        "--suite",
        "s.yaml",
    ];
    let contract = ["run", "--from-fixtures", "--contract", "c.yaml"];
    for (file, args, text, told) in [
        (
            "s.yaml",
            &suite[..],
            "name: s\nmesages: []\ntools: []\n",
            "s.yaml:2:1: /mesages: unknown key `mesages`, did you mean `messages`?",
        ),
        ("s.yaml", &suite, "name: [\n", "s.yaml:2:1: "),
        (
            "s.yaml",
            &suite,
            "messages: 5\ntools: []\n",
            "s.yaml:1:1: /messages: ",
        ),
        (
            "c.yaml",
            &contract,
            "suite: suite.yaml\nproviders: {deepseek: }\nexpected:\n  get_weather:\n    emited: true\n",
            "c.yaml:5:5: /expected/get_weather/emited: unknown key `emited`, did you mean `emitted`?",
        ),
        (
            "c.yaml",
            &contract,
            "suite: suite.yaml\nproviders: {deepseek: }\nexpected: {get_wether: {emitted: true}}\n",
            "did you mean `get_weather`?",
        ),
        (
            "c.yaml",
            &contract,
            "suite: suite.yaml\nproviders: {absent: }\n",
            "c.yaml:2:13: /providers/absent: ",
        ),
        (
            "c.yaml",
            &contract,
            "suite: gone.yaml\nproviders: {deepseek: }\n",
            "c.yaml:1:1: /suite: there is no file gone.yaml",
        ),
    ] {
        probe.write(file, text);
        let said = probe.run_to(2, args);
        assert!(said.err.contains(told), "{text}: {}", said.err);
        assert_eq!(said.out, "");
    }
}

/// Other questions get other answers: that is not a difference between models.
#[test]
fn different_suites_are_not_compared() {
    let probe = ProbeSandbox::new();
    probe.write("other.yaml", &SUITE.replace("name: weather", "name: other"));
    probe.write("tools.yaml", &SUITE.replace("maximum: 14", "maximum: 7"));
    let snapshot = |file: &str, more: &[&str]| {
        let args = [
            "snapshot",
            "-p",
            "deepseek",
            "--from-fixtures",
            "-q",
            "-o",
            file,
        ];
        probe.run_to(0, &[&args[..], more].concat());
    };
    snapshot("weather.json", &[]);
    snapshot("other.json", &["-s", "other.yaml"]);
    snapshot("tools.json", &["-s", "tools.yaml"]);
    snapshot("weather-1.json", &["--compat", "tooldrift"]);
    snapshot(
        "other-1.json",
        &["--compat", "tooldrift", "-s", "other.yaml"],
    );
    let suites = "the snapshots are of different suites: `weather` and `other`";
    let tools = "the definition of `get_forecast` is not the same in both snapshots";
    for (new, compat, cause) in [
        ("other.json", false, suites),
        ("tools.json", false, tools),
        ("other.json", true, suites),
        ("tools.json", true, tools),
        ("other-1.json", false, suites),
        ("other-1.json", true, suites),
    ] {
        let old = if new.contains("-1") {
            "weather-1.json"
        } else {
            "weather.json"
        };
        let more: &[&str] = if compat {
            &["--compat", "tooldrift"]
        } else {
            &[]
        };
        let said = probe.run_to(2, &[&["diff", old, new], more].concat());
        assert!(said.err.contains(cause), "{new}: {}", said.err);
        assert_eq!(said.out, "");
    }
    probe.run_to(0, &["diff", "weather.json", "weather-1.json"]);
    probe.run_to(0, &["diff", "weather-1.json", "weather-1.json"]);
}

/// A provider without a preset, by address and model; the key's variable goes by its name.
#[test]
fn any_other_provider_is_asked_by_its_address_and_its_model() {
    let probe = ProbeSandbox::new();
    let server = serving(ProviderResponse::json(&chat_completion(
        &good(),
        &json!("tool_calls"),
    )));
    let url = format!("{}/v1", server.url());
    let args = [
        "snapshot",
        "-p",
        "my-proxy",
        "--base-url",
        &url,
        "--model",
        "m",
        "-q",
    ];
    let mut command = probe.command(&args);
    command.env("MY_PROXY_API_KEY", "key-of-my-proxy");
    let said = super::command_output(command.output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    let taken = parsed(&said.out);
    assert_eq!(
        (&taken["provider"], &taken["model_id"]),
        (&json!("my-proxy"), &json!("m"))
    );
    assert_eq!(taken["models"], json!({"synthetic-1": 1}));
    let seen = &server.requests()[0];
    assert_eq!(seen.path, "/v1/chat/completions");
    assert_eq!(seen.header("authorization"), Some("Bearer key-of-my-proxy"));
    let keys: Vec<&String> = seen.body.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["model", "messages", "tools", "tool_choice", "stream"]
    );
    let args = [
        "snapshot",
        "-p",
        "my-proxy",
        "--base-url",
        "https://example.com/v1",
        "--model",
        "m",
    ];
    let said = probe.run_to(2, &args);
    let told = "error: missing API key: set $MY_PROXY_API_KEY for provider 'my-proxy', ";
    assert!(said.err.starts_with(told), "{}", said.err);
}
