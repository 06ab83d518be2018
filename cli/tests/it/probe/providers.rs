//! Who is known, and which keys are set.

use serde_json::json;

use super::{ProbeSandbox, command_output, parsed};

const KEY: &str = "sk-test-key-1234567890abcdef";

#[test]
fn variable_is_shown_and_the_key_is_not() {
    let probe = ProbeSandbox::new();
    let list = |more: &[&str]| {
        let mut command = probe.command(&[&["providers"], more].concat());
        command
            .env("MOONSHOTAI_API_KEY", KEY)
            .env("OPENAI_API_KEY", "");
        let said = command_output(command.output().unwrap());
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        assert!(!said.out.contains(KEY), "{}", said.out);
        said.out
    };
    let text = list(&[]);
    let line = |name: &str| {
        text.lines()
            .find(|it| it.starts_with(&format!("{name} ")))
            .unwrap()
    };
    assert!(
        line("kimi").ends_with("$MOONSHOTAI_API_KEY is set"),
        "{text}"
    );
    assert!(
        line("openai").ends_with("set $OPENAI_API_KEY"),
        "an empty key is none: {text}"
    );
    assert!(
        line("qwen").ends_with("set $DASHSCOPE_API_KEY or $ALIBABA_API_KEY"),
        "{text}"
    );
    assert!(line("ollama").ends_with("needs no key"), "{text}");

    let document = parsed(&list(&["--format", "json"]));
    assert_eq!(document["schema"], "toolwarden/probe/providers/v1");
    let providers = document["providers"].as_array().unwrap();
    assert_eq!(providers.len(), text.lines().count());
    let of = |name: &str| providers.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(of("kimi")["key_set"], "MOONSHOTAI_API_KEY");
    assert_eq!(of("openai")["key_set"], json!(null));
    assert_eq!(of("deepseek")["base_url"], "https://api.deepseek.com/v1");
    assert_eq!(of("anthropic")["wire"], "anthropic");
    let fixtures = providers.iter().filter(|it| it["fixture"] == true);
    let mut fixtures: Vec<&str> = fixtures.map(|it| it["name"].as_str().unwrap()).collect();
    fixtures.sort_unstable();
    assert_eq!(fixtures, ["deepseek", "glm", "kimi", "minimax", "qwen"]);
    assert_eq!(of("kimi")["verified_on"], "2026-11-15");
    assert_eq!(
        of("openai")["verified_on"],
        json!(null),
        "it was never verified"
    );
    assert_eq!(probe.tooldrift(&["providers", "--from-fixtures"]).code, 0);
}
