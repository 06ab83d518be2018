use std::path::Path;

use super::super::Settings;
use super::*;

fn taken(client: ClientApp, text: &str) -> ImportedServers {
    import_client_file(client, text, Path::new("client.json")).unwrap()
}

fn notes(imported: &ImportedServers) -> Vec<String> {
    let notes = imported.notes.iter();
    notes
        .map(|it| format!("{}:{}: {it}", it.position.line, it.position.column))
        .collect()
}

/// The imported servers, written as settings and read back.
fn read_back(imported: &ImportedServers) -> Vec<ImportedServer> {
    let text = imported.to_yaml();
    // References stay unresolved, so that both sides have the same text.
    let keep = |name: &str| Some(format!("${{{name}}}"));
    let loaded = Settings::of_text(&text, Path::new("toolwarden.yaml"), &keep);
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let servers = loaded.settings.servers.into_iter();
    servers
        .map(|server| ImportedServer {
            name: server.name,
            endpoint: server.endpoint,
            disabled: false,
        })
        .collect()
}

#[test]
fn claude_desktop() {
    let imported = taken(
        ClientApp::ClaudeDesktop,
        r#"{
  "globalShortcut": "x",
  "mcpServers": {
    "filesystem": {"command": "npx", "args": ["-y", "@x/fs", "/home/me/my files", 1]},
    "My Server": {"command": "C:\\Program Files\\x.exe", "env": {"API_KEY": "sk-1", "PORT": "$8", "N": 5, "URL": "${U}"}},
    "broken": {}, "list": [], "ws": {"url": "ws://h"}
  }
}"#,
    );
    let expected = r#"servers:
  filesystem:
    command: npx
    args: ["-y", "@x/fs", "/home/me/my files", "1"]
  My-Server:
    command: "C:\\Program Files\\x.exe"
    args: []
    env:
      API_KEY: "sk-1"
      PORT: "$8"
      "N": "5"
      URL: "${U}"
"#;
    let expected = expected.replace("\"sk-1\"", "sk-1");
    assert_eq!(imported.to_yaml(), expected);
    assert_eq!(
        notes(&imported),
        [
            "5:66: /mcpServers/My Server/env/API_KEY: `API_KEY` looks like a plaintext secret; write \
             `${API_KEY}` and set the variable",
            "5:107: /mcpServers/My Server/env/URL: Claude Desktop does not expand `${…}`; the gateway does",
            "5:5: /mcpServers/My Server: the server `My Server` is renamed to `My-Server`",
            "6:5: /mcpServers/broken: left out: it has neither `command` nor `url`",
            "6:19: /mcpServers/list: left out: it is not an object",
            "6:38: /mcpServers/ws/url: left out: only http and https addresses can be reached",
        ]
    );
    assert_eq!(read_back(&imported), imported.servers);
}

#[test]
fn claude_code_with_projects() {
    let imported = taken(
        ClientApp::ClaudeCode,
        r#"{"mcpServers": {"a": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${T:-d}"}}},
"projects": {
  "/p/one": {"mcpServers": {"a": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${T:-d}"}}}},
  "/p/two": {"mcpServers": {"a": {"type": "sse", "url": "https://other/sse", "headers": {"X-Api-Key": "k"}}}},
  "/p/three": {}}}"#,
    );
    let expected = r#"servers:
  a:
    url: "https://h/mcp"
    headers:
      Authorization: "Bearer ${T:-d}"
  a-2:
    url: "https://other/sse"
    headers:
      X-Api-Key: k
"#;
    assert_eq!(imported.to_yaml(), expected);
    assert_eq!(
        notes(&imported),
        [
            "4:90: /projects/~1p~1two/mcpServers/a/headers/X-Api-Key: `X-Api-Key` looks like a plaintext \
             secret; write `${A_2_X_API_KEY}` and set the variable",
            "4:29: /projects/~1p~1two/mcpServers/a: the server `a` is renamed to `a-2`",
        ]
    );
}

#[test]
fn cursor() {
    let imported = taken(
        ClientApp::Cursor,
        r#"{"mcpServers": {"s": {"command": "${userHome}/s", "args": ["--api-key", "abc", "--token=${env:T}", "--password=x"],
  "env": {"T": "${env:T}"}, "envFile": ".env", "disabled": true}}}"#,
    );
    let expected = r#"servers:
  s:
    command: "${HOME}/s"
    args: ["--api-key", abc, "--token=${T}", "--password=x"]
    env:
      T: "${T}"
    disabled: true
"#;
    assert_eq!(imported.to_yaml(), expected);
    assert_eq!(
        notes(&imported),
        [
            "1:73: /mcpServers/s/args/1: `api-key` looks like a plaintext secret; write `${S_API_KEY}` \
             and set the variable",
            "1:100: /mcpServers/s/args/3: `password` looks like a plaintext secret; write \
             `${S_PASSWORD}` and set the variable",
            "2:29: /mcpServers/s/envFile: `envFile` is not imported: set its variables in \
             `servers.s.env`, or in the environment of the gateway",
        ]
    );
}

#[test]
fn vs_code_with_inputs_and_comments() {
    let file = r#"// servers
{
  "inputs": [{"type": "promptString", "id": "gh-token", "description": "GitHub token", "password": true,}],
  "servers": {
    /* hosted */ "github": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${input:gh-token}"},},
    "local": {"type": "stdio", "command": "node", "args": ["${workspaceFolder}/s.js"], "dev": {"watch": "x"}},
  },
}"#;
    let expected = r#"servers:
  github:
    url: "https://h/mcp"
    headers:
      Authorization: "Bearer ${GH_TOKEN}"
  local:
    command: node
    args: ["${WORKSPACE_FOLDER}/s.js"]
"#;
    let imported = taken(ClientApp::VsCode, file);
    assert_eq!(imported.to_yaml(), expected);
    assert_eq!(
        notes(&imported),
        [
            "5:81: /servers/github/headers/Authorization: VS Code asks for `gh-token` (GitHub token); set \
             the environment variable `GH_TOKEN` instead",
            "6:60: /servers/local/args/0: there is no `${workspaceFolder}` outside the editor; set the \
             environment variable `WORKSPACE_FOLDER`",
            "6:88: /servers/local/dev: `dev` is not imported",
        ]
    );
    assert_eq!(read_back(&imported), imported.servers);
    for wrapped in [
        format!("{{\"editor.x\": 1, \"mcp\": {file}}}"),
        "{\"mcp.servers\": {\"local\": {\"command\": \"node\"}}}".to_owned(),
    ] {
        assert_eq!(
            taken(ClientApp::VsCode, &wrapped)
                .servers
                .last()
                .unwrap()
                .name,
            "local"
        );
    }
}

#[test]
fn files_without_servers_are_errors() {
    let told = |client, text| {
        let path = Path::new("c.json");
        import_client_file(client, text, path)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        told(ClientApp::Cursor, "{\"servers\": {}}"),
        "c.json has no servers of Cursor: there is no `mcpServers`"
    );
    assert_eq!(
        told(ClientApp::VsCode, "{}"),
        "c.json has no servers of VS Code: there is no `servers`"
    );
    assert_eq!(
        told(ClientApp::VsCode, "{\"a\": 1,\n \"a\": 2}"),
        "c.json:2:2: key `a` is given twice"
    );
}

#[test]
fn credentials_are_carried_over_or_noted_with_a_remedy() {
    let imported = taken(
        ClientApp::Cursor,
        r#"{"mcpServers": {
  "a": {"url": "https://a.example/mcp", "bearerToken": "${env:A}"},
  "b": {"url": "https://b.example/mcp", "auth": {"type": "bearer", "token": "${env:B}"}},
  "c": {"url": "https://c.example/mcp", "auth": {"CLIENT_ID": "x", "CLIENT_SECRET": "y"}},
  "d": {"url": "https://d.example/mcp", "bearer_token_env_var": "D", "env": {"D": "1"}},
  "e": {"command": "e", "headers": {"Authorization": "Bearer x"}},
  "f": {"url": "https://f.example/mcp", "oauth": {}, "headersHelper": "./h"},
  "g": {"url": "https://g.example/mcp", "headers": {"authorization": "Bearer ${env:G}"}, "token": "z"}}}"#,
    );
    let expected = r#"servers:
  a:
    url: "https://a.example/mcp"
    headers:
      Authorization: "Bearer ${A}"
  b:
    url: "https://b.example/mcp"
    headers:
      Authorization: "Bearer ${B}"
  c:
    url: "https://c.example/mcp"
  d:
    url: "https://d.example/mcp"
    headers:
      Authorization: "Bearer ${D}"
  e:
    command: e
  f:
    url: "https://f.example/mcp"
  g:
    url: "https://g.example/mcp"
    headers:
      authorization: "Bearer ${G}"
"#;
    assert_eq!(imported.to_yaml(), expected);
    let login = |key: &str, name: &str| {
        let variable = format!("{}_TOKEN", name.to_uppercase());
        format!(
            "`{key}` is not imported: the gateway does not log in by itself; obtain a token, set \
             `servers.{name}.headers: {{Authorization: \"Bearer ${{{variable}}}\"}}` and the variable \
             {variable}"
        )
    };
    let messages: Vec<&str> = imported
        .notes
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    assert_eq!(
        messages,
        [
            login("auth", "c").as_str(),
            "`env` is not imported: a server with an address gets no environment; pass its \
             credentials in `headers`",
            "`headers` is not imported: a program gets no headers; pass what they say in `env` or \
             `args`",
            login("oauth", "f").as_str(),
            "`headersHelper` is not imported: the gateway does not run it; set \
             `servers.f.headers`, with secrets as `${NAME}`",
            "`token` is not imported: `headers` has `Authorization` already",
        ]
    );
}
