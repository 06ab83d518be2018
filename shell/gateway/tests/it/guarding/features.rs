//! Resources, prompts, completion, skills and methods of extensions pass the same gates as tools, and are recorded
//! like calls.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolwarden_mcp::Era;

use super::{AuditRow, ERAS, agent_of, bearer_of, identity, rows, rows_in, worked};
use crate::support::{Agent, TestGateway, http, shop_of, until};
use crate::transparent::Peer;

const SKILL: &str = "skill://desk/SKILL.md";
const PLAN: &str = "file:///secret/plan";
const DENIED: i64 = -32010;

/// A server with one feature of each kind.
fn desk() -> Peer {
    let digest: String = Sha256::digest("Explains.")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let file = json!({"uri": SKILL, "digest": format!("sha256:{digest}")});
    let uris = ["file:///open/news", PLAN];
    let resources = uris.map(|uri| json!({"uri": uri, "name": uri}));
    Peer::new(
        "desk",
        json!({
            "tools": [{"name": "begin", "inputSchema": {"type": "object"}}],
            "resources": resources,
            "templates": [{"uriTemplate": "file:///{+path}", "name": "any file"}],
            "any_resource": true,
            "prompts": [{"name": "letter"}],
            "skills": [{"uri": SKILL, "frontmatter": {"name": "desk", "description": "Explains."}, "resources": [file]}],
            "files": {SKILL: "Explains."},
            "folders": {"skill://desk": [SKILL, "skill://desk/more"]},
            "extensions": {"io.modelcontextprotocol/skills": {}, "com.example/thing": {}},
            "methods": ["thing/do"],
        }),
    )
}

/// One way to use a feature of the server.
struct Use {
    method: &'static str,
    params: Value,
    /// Its name in records.
    recorded: String,
}

/// Every way to use a feature other than a tool. Agents of the handshake era subscribe, others listen.
fn uses(era: Era) -> Vec<Use> {
    let argument = json!({"name": "tone", "value": "f"});
    let subscription = match era {
        Era::Handshake => ("resources/subscribe", json!({"uri": PLAN})),
        Era::Stateless => ("resources/read", json!({"uri": PLAN, "again": true})),
    };
    let resource = format!("resource:{PLAN}");
    let all = [
        ("resources/read", json!({"uri": PLAN}), resource.clone()),
        (subscription.0, subscription.1, resource),
        (
            "resources/directory/read",
            json!({"uri": "skill://desk"}),
            "resource:skill://desk".to_owned(),
        ),
        (
            "prompts/get",
            json!({"name": "desk__letter", "arguments": {"tone": "formal"}}),
            "prompt:desk__letter".to_owned(),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "desk__letter"}, "argument": argument}),
            "prompt:desk__letter".to_owned(),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "file:///{+path}"}, "argument": argument}),
            "resource:file:///{+path}".to_owned(),
        ),
        (
            "skills/get",
            json!({"uri": SKILL}),
            format!("skill:{SKILL}"),
        ),
        (
            "thing/do",
            json!({"with": 1}),
            "method:desk/thing/do".to_owned(),
        ),
    ];
    let all = all.into_iter().map(|(method, params, recorded)| Use {
        method,
        params,
        recorded,
    });
    all.collect()
}

const LISTS: [(&str, &str); 4] = [
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("prompts/list", "prompts"),
    ("skills/list", "skills"),
];

/// How many entries an agent sees of each list.
async fn listed(agent: &Agent, meta: &Value) -> Vec<usize> {
    let mut counts = Vec::new();
    for (method, member) in LISTS {
        let list = agent.result(method, json!({"_meta": meta})).await;
        counts.push(list[member].as_array().unwrap().len());
    }
    counts
}

async fn use_of(agent: &Agent, used: &Use, meta: &Value) -> Value {
    let mut params = used.params.clone();
    params["_meta"] = meta.clone();
    agent.ask(used.method, params).await
}

/// The code of a denial; `None` if there is none.
fn refusal(answer: &Value) -> Option<&str> {
    let error = answer.get("error")?;
    assert_eq!(error["code"], DENIED, "{answer}");
    assert!(error["data"]["reason"].is_string(), "{answer}");
    assert!(error["data"]["advice"].is_string(), "{answer}");
    error["data"]["code"].as_str()
}

async fn gateway(desk: &Peer, policy: Value, defaults: Value) -> TestGateway {
    let mut entry = desk.entry();
    if !defaults.is_null() {
        entry["tool_defaults"] = defaults;
    }
    TestGateway::start(&json!({
        "servers": {"desk": entry},
        "identity": identity(&["ada", "ben"]),
        "policy": policy,
    }))
    .await
}

/// Decisions and outcomes about features other than tools.
fn about_features(gateway: &TestGateway) -> Vec<AuditRow> {
    let rows = rows(&gateway.gateway).into_iter();
    rows.filter(|row| ["decision", "outcome"].contains(&row.kind.as_str()))
        .filter(|row| row.tool.contains(':'))
        .collect()
}

/// How often the server received one of these requests.
fn got(desk: &Peer, era: Era) -> usize {
    let methods: Vec<&str> = uses(era).iter().map(|it| it.method).collect();
    let asked = |line: &String| methods.contains(&line.split(' ').next().unwrap());
    desk.log().iter().filter(|line| asked(line)).count()
}

fn none_asked() -> Value {
    json!({"toolwarden/groups": []})
}

/// A caller that requests no groups sees and reads nothing, even under a policy that admits everything.
#[tokio::test(flavor = "multi_thread")]
async fn without_groups_nothing_is_listed_or_used() {
    for era in ERAS {
        let desk = desk();
        let open = json!({"principals": {"*": {"groups": ["*"]}}});
        let gateway = gateway(&desk, open, Value::Null).await;
        let ada = agent_of(era, &gateway.url, "ada", &[]).await;
        assert!(listed(&ada, &json!({})).await.iter().all(|it| *it > 0));
        assert_eq!(listed(&ada, &none_asked()).await, [0, 0, 0, 0], "{era:?}");
        for used in uses(era) {
            let answer = use_of(&ada, &used, &none_asked()).await;
            let code = refusal(&answer);
            assert_eq!(code, Some("filtered_by_group"), "{}: {answer}", used.method);
        }
        assert_eq!(got(&desk, era), 0, "{:?}", desk.log());
        let records = about_features(&gateway);
        let told: Vec<(&str, &str)> = records
            .iter()
            .map(|row| (row.code.as_str(), row.tool.as_str()))
            .collect();
        let uses = uses(era);
        let expected = uses.iter().map(|it| ("filtered_by_group", &*it.recorded));
        assert_eq!(told, expected.collect::<Vec<_>>());
        gateway.stop().await;
    }
}

/// Each use leaves a decision and an outcome that name the feature, its server, the principal and the method.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_is_recorded_with_its_outcome() {
    for era in ERAS {
        let desk = desk();
        let gateway = gateway(&desk, json!({}), Value::Null).await;
        let ada = agent_of(era, &gateway.url, "ada", &[]).await;
        for used in uses(era) {
            let answer = use_of(&ada, &used, &json!({})).await;
            assert!(worked(&answer), "{era:?} {}: {answer}", used.method);
        }
        let unknown = ada.ask("prompts/get", json!({"name": "desk__lettr"})).await;
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        let gone = json!({"uri": "skill://desk/none"});
        let refused = ada.ask("resources/directory/read", gone).await;
        assert!(refused["error"].is_object(), "{refused}");
        let records = about_features(&gateway);
        let (pairs, rest) = records.split_at(2 * uses(era).len());
        for (used, pair) in uses(era).iter().zip(pairs.chunks(2)) {
            let [decision, outcome] = pair else { panic!() };
            assert_eq!(decision.word(), "decision allowed");
            assert_eq!(outcome.word(), "outcome succeeded", "{}", used.method);
            for row in pair {
                assert_eq!(row.principal, "ada");
                assert_eq!(row.tool, used.recorded);
                assert_eq!(row.session, decision.session);
            }
            let kind = used.recorded.split(':').next().unwrap();
            assert_eq!(decision.body["kind"], kind);
            assert_eq!(decision.body["method"], used.method);
            assert_eq!(decision.body["server"], "desk");
            assert_eq!(outcome.body["call"], decision.body["id"]);
            let arguments = &decision.body["arguments"];
            match used.method {
                "prompts/get" => assert_eq!(*arguments, json!({"tone": "formal"})),
                "completion/complete" => {
                    assert_eq!(*arguments, json!({"argument": used.params["argument"]}));
                }
                "thing/do" => assert_eq!(*arguments, json!({"with": 1})),
                _ => assert_eq!(*arguments, json!({})),
            }
        }
        let words: Vec<(String, &str)> = rest
            .iter()
            .map(|row| (row.word(), row.tool.as_str()))
            .collect();
        assert_eq!(
            words,
            [
                ("decision not_offered".to_owned(), "prompt:desk__lettr"),
                (
                    "decision not_offered".to_owned(),
                    "resource:skill://desk/none"
                ),
            ],
            "{era:?}"
        );
        gateway.stop().await;
    }
}

/// Rules for all features of the server.
fn ruled(rules: &Value) -> Value {
    json!({
        "tools": {"desk__begin": {"state": "begun"}},
        "resources": {"file:///*": rules, "skill://desk*": rules},
        "prompts": {"desk__letter": rules},
        "skills": {"skill://*": rules},
        "methods": {"desk/thing/*": rules},
        "principals": {
            "ada": {"groups": ["default", "secret"], "permissions": ["files:read"]},
            "ben": {"groups": ["default"]},
        },
    })
}

/// Group, permission and deny rules decide what is listed and what is used.
#[tokio::test(flavor = "multi_thread")]
async fn rules_decide_what_is_listed_and_used() {
    let secret = json!({"toolwarden/groups": ["secret"]});
    let mut denied = ruled(&json!({}));
    denied["principals"]["ben"]["deny"] = json!({
        "resources": ["file:///*", "skill://desk"],
        "prompts": ["*letter"],
        "skills": [SKILL],
        "methods": ["desk/thing/do"],
    });
    let mut quarantined = ruled(&json!({}));
    quarantined["quarantine"] = json!([
        "file:///*",
        "skill://desk*",
        "desk__letter",
        "skill://*",
        "desk/thing/*"
    ]);
    let cases = [
        (
            ruled(&json!({"group": "secret"})),
            secret,
            "filtered_by_group",
        ),
        (
            ruled(&json!({"required_permissions": ["files:read"]})),
            json!({}),
            "missing_permissions",
        ),
        (denied, json!({}), "denied_by_rule"),
        (quarantined, json!({}), "quarantined"),
    ];
    for era in ERAS {
        for (policy, meta, code) in &cases {
            let desk = desk();
            let gateway = gateway(&desk, policy.clone(), Value::Null).await;
            let ada = agent_of(era, &gateway.url, "ada", &[]).await;
            let ben = agent_of(era, &gateway.url, "ben", &[]).await;
            let nothing = [0, 0, 0, 0];
            assert_eq!(listed(&ben, &json!({})).await, nothing, "{era:?} {code}");
            for used in uses(era) {
                let answer = use_of(&ben, &used, &json!({})).await;
                assert_eq!(refusal(&answer), Some(*code), "{}: {answer}", used.method);
            }
            assert_eq!(got(&desk, era), 0, "{:?}", desk.log());
            if *code == "quarantined" {
                gateway.stop().await;
                continue;
            }
            let seen = listed(&ada, meta).await;
            let of_desk: Vec<bool> = seen.iter().map(|it| *it > 0).collect();
            assert_eq!(of_desk, [true; 4], "{era:?} {code}: {seen:?}");
            for used in uses(era) {
                let answer = use_of(&ada, &used, meta).await;
                assert!(worked(&answer), "{code} {}: {answer}", used.method);
            }
            gateway.stop().await;
        }
    }
}

/// A workflow opens resources and prompts as it opens tools; using them does not move it.
#[tokio::test(flavor = "multi_thread")]
async fn states_decide_what_is_listed_and_used() {
    for era in ERAS {
        let desk = desk();
        let policy = ruled(&json!({"available_in_states": ["begun"]}));
        let gateway = gateway(&desk, policy, Value::Null).await;
        let ada = agent_of(era, &gateway.url, "ada", &[]).await;
        let meta = json!({"toolwarden/session": "s"});
        assert_eq!(listed(&ada, &meta).await, [0, 0, 0, 0], "{era:?}");
        for used in uses(era) {
            let answer = use_of(&ada, &used, &meta).await;
            assert_eq!(refusal(&answer), Some("filtered_by_state"), "{answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("`desk__begin`"), "{message}");
        }
        let begin = json!({"name": "desk__begin", "arguments": {}, "_meta": meta});
        let messages = ada.begin("tools/call", begin).await.rest().await;
        assert!(worked(messages.last().unwrap()), "{messages:?}");
        if era == Era::Handshake {
            let has = |method: &str| messages.iter().any(|it| it["method"] == method);
            assert!(has("notifications/prompts/list_changed"), "{messages:?}");
            assert!(has("notifications/resources/list_changed"), "{messages:?}");
        }
        assert_eq!(listed(&ada, &meta).await, [2, 1, 1, 1], "{era:?}");
        for used in uses(era) {
            let answer = use_of(&ada, &used, &meta).await;
            assert!(worked(&answer), "{}: {answer}", used.method);
        }
        gateway.stop().await;
    }
}

/// Uses that one rule covers are counted together, so that other addresses do not evade it.
#[tokio::test(flavor = "multi_thread")]
async fn rates_limit_what_a_rule_covers() {
    for era in ERAS {
        let desk = desk();
        let gateway = gateway(&desk, ruled(&json!({"rate_limit": 2})), Value::Null).await;
        let ada = agent_of(era, &gateway.url, "ada", &[]).await;
        let ben = agent_of(era, &gateway.url, "ben", &[]).await;
        for n in 0..4 {
            let read = json!({"uri": format!("file:///made/up/{n}")});
            let answer = ada.ask("resources/read", read).await;
            let expected = (n >= 2).then_some("rate_limited");
            assert_eq!(refusal(&answer), expected, "{answer}");
            if n >= 2 {
                assert!(answer["error"]["data"]["retryAfter"].as_f64().unwrap() > 0.0);
            }
        }
        let prompt = json!({"name": "desk__letter"});
        assert!(
            worked(&ada.ask("prompts/get", prompt).await),
            "another rule"
        );
        let read = json!({"uri": PLAN});
        assert!(
            worked(&ben.ask("resources/read", read).await),
            "another principal"
        );
        gateway.stop().await;
    }
}

/// Features that the policy does not name follow the defaults of their server, or are hidden.
#[tokio::test(flavor = "multi_thread")]
async fn what_no_rule_names_follows_its_server() {
    let staff = json!({"toolwarden/groups": ["staff"]});
    for era in ERAS {
        let desk = desk();
        let policy = json!({"principals": {"ada": {"groups": ["default", "staff"]}}});
        let defaults = json!({"group": "staff", "state": "moved"});
        let gateway = gateway(&desk, policy, defaults).await;
        let ada = agent_of(era, &gateway.url, "ada", &[]).await;
        assert_eq!(listed(&ada, &json!({})).await, [0, 0, 0, 0], "{era:?}");
        for used in uses(era) {
            let answer = use_of(&ada, &used, &json!({})).await;
            assert_eq!(refusal(&answer), Some("filtered_by_group"), "{answer}");
            let answer = use_of(&ada, &used, &staff).await;
            assert!(worked(&answer), "{}: {answer}", used.method);
        }
        let moved = rows(&gateway.gateway)
            .iter()
            .any(|row| row.kind == "transition");
        assert!(!moved, "reading moves no workflow");
        gateway.stop().await;
    }
}

/// Under `unlisted: hide`, a feature that no rule names looks like one that does not exist, and the record says why.
#[tokio::test(flavor = "multi_thread")]
async fn hidden_features_look_unknown() {
    for era in ERAS {
        let desk = desk();
        let policy = json!({
            "unlisted": "hide",
            "resources": {PLAN: {"server": "desk"}, "file:///open/news": {"server": "shop"}},
        });
        let gateway = gateway(&desk, policy, Value::Null).await;
        let ada = agent_of(era, &gateway.url, "ada", &[]).await;
        assert_eq!(listed(&ada, &json!({})).await, [1, 0, 0, 0], "{era:?}");
        let plan = json!({"uri": PLAN});
        assert!(worked(&ada.ask("resources/read", plan).await));
        let mut told = Vec::new();
        for uri in ["file:///open/news", "none://x"] {
            let answer = ada.ask("resources/read", json!({"uri": uri})).await;
            let error = answer["error"].to_string().replace(uri, "U");
            told.push(error);
        }
        assert_eq!(told[0], told[1], "{era:?}");
        for used in uses(era).iter().filter(|it| !it.recorded.ends_with(PLAN)) {
            let answer = use_of(&ada, used, &json!({})).await;
            let code = answer["error"]["code"].as_i64().unwrap();
            assert!([-32601, -32602, -32002].contains(&code), "{answer}");
        }
        let reasons: Vec<String> = about_features(&gateway)
            .iter()
            .filter(|row| row.code == "not_offered")
            .map(|row| row.body["reason"].as_str().unwrap().to_owned())
            .collect();
        assert!(
            reasons[0].contains("hides what it does not name"),
            "{reasons:?}"
        );
        assert!(reasons[1].contains("no server offers"), "{reasons:?}");
        gateway.stop().await;
    }
}

/// A rule is not evaded by another spelling of an address.
#[tokio::test(flavor = "multi_thread")]
async fn other_spellings_of_an_address_meet_the_same_rule() {
    let desk = desk();
    let mut policy = ruled(&json!({}));
    policy["resources"] = json!({
        "file:///secret/*": {"group": "secret"},
        "file:///*": {},
    });
    let gateway = gateway(&desk, policy, Value::Null).await;
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    for uri in [
        PLAN,
        "file:///open/../secret/plan",
        "file:///%73ecret/plan",
        "file:///open/%2e%2e%2fsecret/plan",
        "file:///open\\..\\secret\\plan",
    ] {
        let answer = ada.ask("resources/read", json!({"uri": uri})).await;
        assert_eq!(
            refusal(&answer),
            Some("filtered_by_group"),
            "{uri}: {answer}"
        );
    }
    let answer = ada
        .ask("resources/read", json!({"uri": "file:///open/x"}))
        .await;
    assert!(worked(&answer), "{answer}");
    gateway.stop().await;
}

/// Callers that may use a skill may read its files, and a folder shows only what may be read.
#[tokio::test(flavor = "multi_thread")]
async fn files_belong_to_their_skills() {
    for era in ERAS {
        let desk = desk();
        let mut policy = ruled(&json!({}));
        policy["skills"] = json!({SKILL: {"group": "secret"}});
        policy["resources"] = json!({"skill://desk/more": {"group": "secret"}});
        let gateway = gateway(&desk, policy, Value::Null).await;
        let ada = agent_of(era, &gateway.url, "ada", &[]).await;
        for method in ["resources/read", "skills/get"] {
            let answer = ada.ask(method, json!({"uri": SKILL})).await;
            assert_eq!(refusal(&answer), Some("filtered_by_group"), "{answer}");
            let meta = json!({"toolwarden/groups": ["secret", "default"]});
            let answer = ada.ask(method, json!({"uri": SKILL, "_meta": meta})).await;
            assert!(worked(&answer), "{answer}");
        }
        let folder =
            |groups: Value| json!({"uri": "skill://desk", "_meta": {"toolwarden/groups": groups}});
        let all = folder(json!(["secret", "default"]));
        let entries = ada.result("resources/directory/read", all).await;
        assert_eq!(
            entries["resources"].as_array().unwrap().len(),
            2,
            "{entries}"
        );
        gateway.stop().await;
        policy_with_visible_skill(era).await;
    }
}

/// All callers may use the skill, but not one entry of its folder.
async fn policy_with_visible_skill(era: Era) {
    let desk = desk();
    let mut policy = ruled(&json!({}));
    policy["skills"] = json!({});
    policy["resources"] = json!({"skill://desk/more": {"group": "secret"}});
    let gateway = gateway(&desk, policy, Value::Null).await;
    let ada = agent_of(era, &gateway.url, "ada", &[]).await;
    let folder = json!({"uri": "skill://desk"});
    let entries = ada.result("resources/directory/read", folder).await;
    let entries = entries["resources"].as_array().unwrap();
    let uris: Vec<&str> = entries
        .iter()
        .map(|it| it["uri"].as_str().unwrap())
        .collect();
    assert_eq!(uris, [SKILL]);
    gateway.stop().await;
}

/// Stateless agents can listen only to resources that they may read.
#[tokio::test(flavor = "multi_thread")]
async fn listening_is_decided_for_each_resource() {
    const ORDER: &str = "orders://A-1002";
    for servers in ERAS {
        let server = shop_of(servers);
        let gateway = TestGateway::start(&json!({
            "servers": {"shop": super::at_with(&server, json!({}))},
            "identity": identity(&["ada"]),
            "policy": {"resources": {"orders://A-*": {"group": "secret"}}},
        }))
        .await;
        let ada = agent_of(Era::Stateless, &gateway.url, "ada", &[]).await;
        let wanted = json!({"resourceSubscriptions": [ORDER, "orders://today"]});
        let mut stream = ada
            .begin("subscriptions/listen", json!({"notifications": wanted}))
            .await;
        let agreed = stream.message().await;
        assert_eq!(
            agreed["params"]["notifications"],
            json!({"resourceSubscriptions": ["orders://today"]}),
            "{servers:?}"
        );
        let told: Vec<(String, String)> = about_features(&gateway)
            .iter()
            .map(|row| (row.word(), row.tool.clone()))
            .collect();
        let word = |word: &str, uri: &str| (word.to_owned(), format!("resource:{uri}"));
        assert_eq!(
            told,
            [
                word("decision filtered_by_group", ORDER),
                word("decision allowed", "orders://today"),
                word("outcome succeeded", "orders://today"),
            ]
        );
        gateway.stop().await;
    }
}

/// The record is in the log while the server still processes the request.
#[tokio::test(flavor = "multi_thread")]
async fn the_decision_is_written_before_the_request_leaves() {
    let server = shop_of(Era::Handshake);
    let settings = json!({
        "servers": {"s": super::at_with(&server, json!({}))},
        "policy": {"audit": {"durability": "group"}},
    });
    let gateway = TestGateway::start(&settings).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let read = json!({"uri": "orders://today"});
    assert!(worked(&agent.ask("resources/read", read.clone()).await));
    let before = rows(&gateway.gateway).len();
    server.shop.stop_answering();
    let store = gateway.gateway.settings().store.clone();
    let look = async {
        until("it is written", || rows_in(&store).len() > before).await;
        let rows = rows_in(&store);
        server.shop.recover();
        rows
    };
    let (answer, during) = tokio::join!(agent.ask("resources/read", read), look);
    assert!(worked(&answer), "{answer}");
    assert_eq!(during.last().unwrap().word(), "decision allowed");
    let last = rows(&gateway.gateway).pop().unwrap();
    assert_eq!(last.word(), "outcome succeeded");
    assert_eq!(last.tool, "resource:orders://today");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn explanations_are_of_resources_prompts_and_skills_too() {
    let peer = desk();
    let gateway = TestGateway::start(&json!({
        "servers": {"desk": peer.entry()},
        "prefix": "never",
        "identity": identity(&["ada"]),
        "policy": {
            "resources": {PLAN: {"required_permissions": ["plan:read"]}},
            "prompts": {"letter": {"available_in_states": ["writing"]}},
        },
    }))
    .await;
    let explain = async |name: &str| {
        let url = format!("{}/api/v1/explain?tool={name}", gateway.root());
        let asked = http(&url).get(&url);
        let asked = asked.header("authorization", bearer_of("ada"));
        let told = asked.send().await.unwrap().text().await.unwrap();
        serde_json::from_str::<Value>(&told).unwrap()
    };
    let plan = format!("resource:{PLAN}");
    // No list is known before an agent requests one.
    let told = explain(&plan).await;
    assert_eq!(
        (&told["cause"], &told["callable"]),
        (&json!("unknown"), &json!(false))
    );
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    for method in [
        "resources/list",
        "resources/templates/list",
        "prompts/list",
        "skills/list",
    ] {
        ada.ask(method, json!({})).await;
    }
    for (name, code) in [
        (plan.as_str(), Some("missing_permissions")),
        ("resource:file:///open/news", None),
        ("resource:file:///fits/the/template", None),
        ("prompt:letter", Some("filtered_by_state")),
        ("skill:skill://desk/SKILL.md", None),
    ] {
        let told = explain(name).await;
        let gates = told["gates"].as_array().unwrap().iter();
        let refused = gates.filter_map(|it| it["code"].as_str()).next();
        assert_eq!(refused, code, "{name}: {told:#}");
        assert_eq!(told["callable"], code.is_none(), "{name}: {told:#}");
        assert_eq!(told["server"]["name"], "desk", "{name}: {told:#}");
    }
    assert_eq!(explain("prompt:other").await["cause"], "unknown");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_read_access_ends_notifications() {
    const TODAY: &str = "orders://today";
    for servers in ERAS {
        let server = shop_of(servers);
        let gateway = TestGateway::start(&json!({
            "servers": {"shop": super::at_with(&server, json!({}))},
            "identity": identity(&["ada"]),
            "policy": {
                "tools": {},
                "resources": {TODAY: {"required_permissions": ["orders:read"]}},
                "principals": {"ada": {"groups": ["*"], "permissions": ["orders:read"]}},
            },
        }))
        .await;
        let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
        let mut news = ada.listen(None).await;
        let subscribed = ada.ask("resources/subscribe", json!({"uri": TODAY})).await;
        assert!(worked(&subscribed), "{subscribed}");
        server.shop.notify_resource_updated(TODAY);
        assert_eq!(news.message().await["params"]["uri"], TODAY);
        let guard = gateway.gateway.guard();
        guard.revoke_permission("ada", "orders:read").unwrap();
        server.shop.notify_resource_updated(TODAY);
        // The next message is another one.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        guard.grant_permission("ada", "orders:read").unwrap();
        let notified = tokio::time::timeout(std::time::Duration::from_millis(300), news.message());
        assert!(notified.await.is_err(), "{servers:?}");
        gateway.stop().await;
    }
}
