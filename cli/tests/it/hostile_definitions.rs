//! Definitions that are hard to compare, or poisoned, on the command line.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

/// Far above the time limit, for machines with much else to do.
const GENEROUS: Duration = Duration::from_secs(40);

fn run(folder: &TempDir, args: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(cargo_bin!("toolwarden"))
        .args(args)
        .current_dir(folder.path())
        .env("TOOLWARDEN_STORE", "store.db")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn write(folder: &TempDir, name: &str, tools: &[Value]) {
    std::fs::write(
        folder.path().join(name),
        json!({"tools": tools}).to_string(),
    )
    .unwrap();
}

fn tool(schema: &Value) -> Value {
    json!({"name": "find", "description": "Finds.", "inputSchema": {"type": "object",
        "properties": {"a": schema}, "required": ["a"]}})
}

/// Five pairs of a few kilobytes each.
fn pairs() -> Vec<(Value, Value)> {
    let pair = |make: &dyn Fn(usize) -> Value| (tool(&make(0)), tool(&make(1)));
    vec![
        pair(&|new| {
            let end = ["b", "c"][new];
            let all = (1..60).map(|n| json!({"pattern": format!("a.{{{n}}}{end}")}));
            json!({"type": "string", "allOf": all.collect::<Vec<_>>()})
        }),
        pair(&|new| {
            let one = (1..60).map(|n| {
                json!({"type": "string", "pattern": format!("^(a|b){{{n},{}}}c*$", n + 8 + new)})
            });
            json!({"oneOf": one.collect::<Vec<_>>()})
        }),
        pair(&|new| {
            let all = (2..30).map(|n| {
                json!({"contains": {"multipleOf": n}, "minContains": 2, "maxContains": 5 - new})
            });
            json!({"type": "array", "allOf": all.collect::<Vec<_>>()})
        }),
        pair(&|new| {
            let all = (0..25).map(|n| {
                json!({"if": {"properties": {format!("a{n}"): {"const": new}}},
                    "then": {"required": [format!("b{n}")]},
                    "else": {"required": [format!("c{n}")]}})
            });
            json!({"type": "object", "allOf": all.collect::<Vec<_>>()})
        }),
        pair(&|new| {
            let all = (0..150).map(|n| {
                let pattern = format!("^[a-z]{{1,{}}}(x|y){{2,{}}}$", n + 2 + new, n % 90 + 3);
                (
                    format!("p{n}"),
                    json!({"type": "string", "pattern": pattern}),
                )
            });
            let properties: serde_json::Map<String, Value> = all.collect();
            json!({"type": "object", "properties": properties})
        }),
    ]
}

#[test]
fn a_diff_of_hostile_schemas_ends_with_the_answer_it_has() {
    for (index, (old, new)) in pairs().iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder, "old.json", std::slice::from_ref(old));
        write(&folder, "new.json", std::slice::from_ref(new));
        let start = Instant::now();
        let args = ["watch", "diff", "old.json", "new.json", "--format", "json"];
        let (code, out, error) = run(&folder, &args);
        assert!(start.elapsed() < GENEROUS, "{index}: {:?}", start.elapsed());
        // Unknown, or breaking with a witness that was confirmed: never fine.
        assert_eq!(code, 1, "{index}: {out} {error}");
    }
}

#[test]
fn findings_in_new_pins_are_printed() {
    for command in ["baseline", "check"] {
        let folder = tempfile::tempdir().unwrap();
        let poisoned = json!({"name": "add", "inputSchema": {"type": "object"},
            "description": "Adds.\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}"});
        let honest = json!({"name": "sub", "inputSchema": {"type": "object"},
            "description": "Subtracts."});
        write(&folder, "tools.json", &[poisoned, honest]);
        let (_, out, error) = run(&folder, &["watch", command, "tools.json"]);
        assert!(
            error.contains("`add` of server `local` is suspicious (high hidden-unicode)"),
            "{command}: {out} {error}"
        );
        assert!(error.contains("reads: ignore"), "{command}: {error}");
        assert!(!error.contains("`sub`"), "{command}: {error}");
        // Once is enough.
        let (_, _, error) = run(&folder, &["watch", command, "tools.json"]);
        assert!(!error.contains("suspicious"), "{command}: {error}");
    }
}
