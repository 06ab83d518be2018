use std::collections::BTreeMap;

use toolwarden_model::json::tokens;
use toolwarden_model::{Fingerprint, Format};
use toolwarden_store::{Approval, ServerKey, StoredDefinition};
use toolwarden_testkit::corpus_definitions;
use toolwarden_watch::{LockFile, LockedServer, LockedTool};

use super::approval;

fn locked(text: &str) -> LockedTool {
    LockedTool {
        kept: StoredDefinition {
            fingerprint: Fingerprint::of_wire(text),
            format: Format::Mcp,
        },
        text: text.into(),
        version: "1.0".to_owned(),
        approval: None,
        shape: None,
    }
}

fn key(name: &str) -> ServerKey {
    ServerKey {
        name: name.to_owned(),
        scope: "default".to_owned(),
    }
}

fn lock(tools: &[(&str, &str)]) -> LockFile {
    let tools = tools
        .iter()
        .map(|(name, text)| ((*name).to_owned(), locked(text)));
    let server = LockedServer {
        sealed: true,
        tools: tools.collect(),
    };
    LockFile {
        servers: BTreeMap::from([(key("browser"), server)]),
    }
}

const GOLDEN: &str = r#"{
  "schema": "toolwarden/lock/v1",
  "note": "Written by `toolwarden watch lock`. Review it like code; do not edit it."
}

{
  "server": "browser",
  "scope": "default",
  "sealed": true
}

{
  "server": "browser",
  "scope": "default",
  "tool": "click",
  "version": "1.0",
  "format": "mcp",
  "definition": {
    "name": "click",
    "inputSchema": {
      "maximum": 1e5,
      "title": "caf\u00e9"
    }
  }
}

{
  "server": "browser",
  "scope": "default",
  "tool": "wait",
  "version": "1.0",
  "format": "mcp",
  "approved": {
    "by": "ada",
    "at": "2026-11-16T10:00:00.000Z",
    "why": "reviewed"
  },
  "definition": {
    "name": "wait"
  }
}
"#;

#[test]
fn the_file_is_sorted_and_keeps_every_token() {
    let click = r#"{"name":"click","inputSchema":{"maximum":1e5,"title":"caf\u00e9"}}"#;
    let mut lock = lock(&[("wait", r#"{"name":"wait"}"#), ("click", click)]);
    let server = lock.servers.get_mut(&key("browser")).unwrap();
    server.tools.get_mut("wait").unwrap().approval = Some(Approval {
        why: Some("reviewed".to_owned()),
        ..approval()
    });
    assert_eq!(lock.render(), GOLDEN);
    let read = LockFile::parse(GOLDEN).unwrap();
    assert_eq!(read.render(), GOLDEN);
    let server = &read.servers[&key("browser")];
    let kept = server.tools["click"].kept.fingerprint;
    assert_eq!(kept, Fingerprint::of_wire(click));
    let windows = LockFile::parse(GOLDEN.replace('\n', "\r\n")).unwrap();
    assert_eq!(
        windows.render(),
        GOLDEN,
        "git may have changed the ends of lines"
    );
}

#[test]
fn real_definitions_survive() {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let texts: Vec<String> = samples
        .iter()
        .step_by(11)
        .map(|it| it.text.clone())
        .collect();
    let names: Vec<String> = (0..texts.len())
        .map(|index| format!("tool-{index:05}"))
        .collect();
    let tools: Vec<(&str, &str)> = names
        .iter()
        .map(String::as_str)
        .zip(texts.iter().map(String::as_str))
        .collect();
    let rendered = lock(&tools).render();
    let read = LockFile::parse(rendered.as_str()).unwrap();
    let server = &read.servers[&key("browser")];
    assert_eq!(server.tools.len(), texts.len());
    for (name, text) in tools {
        let compact = |text: &str| tokens(text).collect::<String>();
        assert_eq!(compact(&server.tools[name].text), compact(text));
    }
    assert_eq!(read.render(), rendered);
}

#[test]
fn a_further_tool_touches_no_line_of_another() {
    let before = lock(&[("a", r#"{"name":"a"}"#), ("c", r#"{"name":"c"}"#)]).render();
    let after = lock(&[
        ("a", r#"{"name":"a"}"#),
        ("b", r#"{"name":"b"}"#),
        ("c", r#"{"name":"c"}"#),
    ])
    .render();
    let kept = before.lines().filter(|line| after.contains(line)).count();
    assert_eq!(kept, before.lines().count());
    let last = lock(&[
        ("a", r#"{"name":"a"}"#),
        ("c", r#"{"name":"c"}"#),
        ("d", r#"{"name":"d"}"#),
    ])
    .render();
    assert!(last.starts_with(&before), "not even of the last one");
}

#[test]
fn what_is_not_as_written_is_refused_with_its_line() {
    let told = |text: &str| LockFile::parse(text).unwrap_err().to_string();
    assert_eq!(told(""), "not a lock file of toolwarden");
    assert_eq!(told("{}"), "not a lock file of toolwarden");
    let newer = GOLDEN.replace("lock/v1", "lock/v2");
    assert_eq!(
        told(&newer),
        "the lock file has the format `toolwarden/lock/v2`; this version reads `toolwarden/lock/v1`"
    );
    let conflict = GOLDEN.replace(
        "  \"sealed\": true\n",
        "<<<<<<< ours\n  \"sealed\": true\n=======\n  \"sealed\": false\n>>>>>>> theirs\n",
    );
    assert_eq!(
        told(&conflict),
        "the lock file holds a merge conflict at line 9"
    );
    let (_, wait) = GOLDEN.rsplit_once("\n\n").unwrap();
    let twice = format!("{GOLDEN}\n{wait}");
    assert_eq!(
        told(&twice),
        "duplicate tool `wait` of server `browser` in the document that ends at line 57"
    );
    let truncated = GOLDEN.trim_end().trim_end_matches('}');
    assert!(told(truncated).contains("EOF"), "{}", told(truncated));
    let format = GOLDEN.replace("\"format\": \"mcp\"", "\"format\": \"mpc\"");
    assert!(
        told(&format).contains("has an unknown format: `mpc`"),
        "{}",
        told(&format)
    );
    let unknown = GOLDEN.replace("\"sealed\": true", "\"seald\": true");
    assert!(
        told(&unknown).contains("unknown field `seald`"),
        "{}",
        told(&unknown)
    );
    let incomplete = GOLDEN.replace("  \"format\": \"mcp\",\n", "");
    assert!(
        told(&incomplete).contains("`format` is missing"),
        "{}",
        told(&incomplete)
    );
}
