use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolwarden_model::reply::WireApi;
use toolwarden_probe::{ApiKey, FIXTURES, InvalidProvider, ProbeSuite, Provider, fixture, presets};
use toolwarden_testkit::read_vectors;

fn env(set: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    move |name| {
        let found = set.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

#[test]
fn the_five_providers_of_tooldrift_are_asked_as_before() {
    let asked: Vec<_> = presets()
        .iter()
        .take(5)
        .map(|it| {
            [
                it.name.as_str(),
                it.base_url.as_str(),
                it.model_id.as_str(),
                it.key_env[0].as_str(),
            ]
        })
        .collect();
    assert_eq!(
        asked,
        [
            [
                "deepseek",
                "https://api.deepseek.com/v1",
                "deepseek-chat",
                "DEEPSEEK_API_KEY"
            ],
            [
                "qwen",
                "https://dashscope.aliyuncs.com/compatible-mode/v1",
                "qwen-plus",
                "DASHSCOPE_API_KEY"
            ],
            [
                "kimi",
                "https://api.moonshot.cn/v1",
                "moonshot-v1-8k",
                "MOONSHOT_API_KEY"
            ],
            [
                "glm",
                "https://open.bigmodel.cn/api/paas/v4",
                "glm-4-plus",
                "ZHIPUAI_API_KEY"
            ],
            [
                "minimax",
                "https://api.minimaxi.com/v1",
                "MiniMax-M2",
                "MINIMAX_API_KEY"
            ],
        ]
    );
}

#[test]
fn wires_are_those_of_the_vendors() {
    let others: BTreeMap<&str, WireApi> = presets()
        .iter()
        .filter(|it| it.wire != WireApi::OpenaiChat)
        .map(|it| (it.name.as_str(), it.wire))
        .collect();
    let expected = [
        ("anthropic", WireApi::Anthropic),
        ("gemini", WireApi::Gemini),
        ("openai-responses", WireApi::OpenaiResponses),
    ];
    assert_eq!(others, BTreeMap::from(expected));
}

#[test]
fn a_provider_is_a_preset_or_described() {
    let tuned = Provider::resolve("kimi", Some("kimi-k3"), None).unwrap();
    assert_eq!(tuned.model_id, "kimi-k3");
    assert_eq!(tuned.base_url, Provider::find("kimi").unwrap().base_url);
    assert!(tuned.further_models().contains(&"kimi-k2.6".to_owned()));

    let url = "https://llm.example.com/v1";
    let other = Provider::resolve("my-proxy", Some("m"), Some(url)).unwrap();
    assert_eq!(other, Provider::custom("my-proxy", url, "m"));
    assert_eq!(other.key_env, ["MY_PROXY_API_KEY"]);
    assert_eq!(other.further_models(), &[] as &[String]);
}

#[test]
fn unusable_providers_are_reported() {
    let message = |name, model, url| match Provider::resolve(name, model, url) {
        Ok(provider) => format!("{provider:?}"),
        Err(error @ (InvalidProvider::Unknown(_) | InvalidProvider::BaseUrl(_))) => {
            error.to_string()
        }
    };
    let known = "Known providers: deepseek, qwen, kimi, glm, minimax, doubao, hunyuan, stepfun, \
                 ernie, baichuan, mimo, openai, openai-responses, anthropic, gemini, mistral, ollama, vllm.";
    assert_eq!(
        message("x", Some("m"), None),
        format!("unknown provider 'x' and no base_url/model_id override supplied. {known}")
    );
    assert_eq!(
        message("depseek", None, None),
        format!(
            "unknown provider 'depseek' and no base_url/model_id override supplied. \
             Did you mean `deepseek`? {known}"
        )
    );
    for (url, why) in [
        ("api.example.com", "this is not an address"),
        ("file:///etc/passwd", "only http and https are supported"),
        (
            "https://me:sk-1@example.com",
            "a name or password does not belong in it",
        ),
        (
            "https://example.com/v1?key=sk-1",
            "a key does not belong in its query",
        ),
        (
            "https://example.com/v1?api-version=1&access_token=sk-1",
            "a key does not belong in its query",
        ),
        (
            "https://example.com/v1#part",
            "a fragment does not belong in it",
        ),
    ] {
        let expected = format!("expected a base_url such as https://api.example.com/v1, {why}");
        assert_eq!(message("x", Some("m"), Some(url)), expected);
    }
    let azure = "https://example.com/openai/v1?api-version=2024-10-21";
    let provider = Provider::resolve("x", Some("m"), Some(azure)).unwrap();
    assert_eq!(provider.base_url, azure);
}

#[test]
fn the_first_variable_that_is_set_holds_the_key() {
    let kimi = Provider::find("kimi").unwrap();
    let set = env(&[
        ("MOONSHOT_API_KEY", "  "),
        ("MOONSHOTAI_API_KEY", "second\n"),
        ("KIMI_API_KEY", "third"),
    ]);
    assert_eq!(kimi.key(&set), Ok(ApiKey::new("second")));
    assert_eq!(kimi.key_variable(&set), Some("MOONSHOTAI_API_KEY"));

    let nothing = env(&[]);
    assert_eq!(kimi.key_variable(&nothing), None);
    let missing = Provider::find("deepseek").unwrap().key(&nothing);
    assert_eq!(
        missing.unwrap_err().to_string(),
        "missing API key: set $DEEPSEEK_API_KEY for provider 'deepseek', \
         or run with --from-fixtures to replay an offline sample."
    );
    for name in ["ollama", "vllm"] {
        assert_eq!(Provider::find(name).unwrap().key(&nothing), Ok(None));
    }
    let vllm = Provider::find("vllm").unwrap();
    assert_eq!(
        vllm.key(&env(&[("VLLM_API_KEY", "k")])),
        Ok(ApiKey::new("k"))
    );
    for local in [
        "http://localhost:1/v1",
        "http://[::1]:1",
        "http://127.1.2.3",
    ] {
        assert!(Provider::custom("x", local, "m").is_local(), "{local}");
    }
    for remote in ["http://10.0.0.1/v1", "https://localhost.example.com", "?"] {
        assert!(!Provider::custom("x", remote, "m").is_local(), "{remote}");
    }
}

#[test]
fn headers_take_the_values_of_variables() {
    let mut provider = Provider::custom("x", "https://example.com", "m");
    provider.headers = BTreeMap::from([
        ("X-Team".to_owned(), "platform".to_owned()),
        ("Api-Key".to_owned(), "Key ${A};${B}".to_owned()),
    ]);
    let headers = provider
        .resolve_headers(&env(&[("A", "secret-a"), ("B", "secret-b")]))
        .unwrap();
    assert_eq!(headers.values["Api-Key"].expose(), "Key secret-a;secret-b");
    assert_eq!(headers.values["X-Team"].expose(), "platform");
    let secrets: Vec<&str> = headers.secrets.iter().map(ApiKey::expose).collect();
    assert_eq!(secrets, ["secret-a", "secret-b"]);
    assert!(!format!("{headers:?}").contains("secret-a"));
    assert_eq!(provider.key(&env(&[])), Ok(None), "a header authorizes");
    let missing = provider.resolve_headers(&env(&[("A", "a")]));
    assert_eq!(
        missing.unwrap_err().to_string(),
        "$B is not set; the header 'Api-Key' of provider 'x' needs it"
    );
}

#[test]
fn every_fixture_answers_the_bundled_suite_as_its_preset_would() {
    let suite = ProbeSuite::bundled().unwrap();
    let offered: Vec<&str> = suite.tools.iter().map(|it| it.name.as_str()).collect();
    for (name, body) in FIXTURES {
        let body: Value = serde_json::from_slice(body).unwrap();
        let preset = Provider::find(name).unwrap();
        assert_eq!(body["model"], json!(preset.model_id));
        let calls = body["choices"][0]["message"]["tool_calls"]
            .as_array()
            .unwrap();
        let called: Vec<_> = calls.iter().map(|it| &it["function"]["name"]).collect();
        assert_eq!(called, offered, "{name}");
    }
    assert_eq!(fixture("openai"), None);
}

#[test]
fn two_fixtures_are_those_of_tooldrift() {
    let Some(vectors) = read_vectors("probe-flagship.json") else {
        return;
    };
    for name in ["deepseek", "qwen"] {
        let body: Value = serde_json::from_slice(fixture(name).unwrap()).unwrap();
        assert_eq!(body, vectors[format!("{name}_fixture")], "{name}");
    }
}
