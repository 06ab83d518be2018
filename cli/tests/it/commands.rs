//! What a transcript cannot show: standard input, files written, links to the binary.

use std::path::Path;

use snapbox::cmd::{Command, cargo_bin};

const SEARCH: &str = r#"{"type":"function","function":{"name":"search_web","description":"Search the web","parameters":{"type":"object"}}}"#;

fn toolwarden() -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    Command::new(cargo_bin!("toolwarden")).current_dir(root)
}

#[test]
fn a_dash_reads_standard_input() {
    toolwarden()
        .args(["canon", "detect", "-"])
        .stdin(SEARCH)
        .assert()
        .success()
        .stdout_eq("Detected format: openai\n");
    toolwarden()
        .args(["canon", "detect", "--input", "-"])
        .stdin("\u{feff}\n  []\n")
        .assert()
        .success()
        .stdout_eq("");
    toolwarden()
        .args(["canon", "detect", "-"])
        .stdin("")
        .assert()
        .code(2);
}

#[test]
fn a_reader_that_goes_away_does_not_change_the_verdict() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut child = std::process::Command::new(cargo_bin!("toolwarden"))
        .args([
            "watch",
            "diff",
            "examples/browser-1.json",
            "examples/browser-2.json",
        ])
        .current_dir(root)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn json_lines_are_read_line_by_line() {
    let lines = format!("{SEARCH}\n\n[{SEARCH}]\n{{\n\"name\":\"pretty\",\"inputSchema\":{{}}}}\n");
    let out = toolwarden()
        .args(["canon", "detect", "-"])
        .stdin(lines)
        .assert()
        .success();
    out.stdout_eq("Detected format: mcp (1 tool)\nDetected format: openai (2 tools)\n");
}

#[test]
fn the_documented_commands_work_under_the_old_name() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("toolcanon");
    std::os::unix::fs::symlink(cargo_bin!("toolwarden"), &link).unwrap();
    let run = |args: &[&str]| {
        Command::new(&link)
            .current_dir(folder.path())
            .args(args)
            .assert()
            .success()
    };
    std::fs::write(folder.path().join("my_tool.json"), SEARCH).unwrap();
    run(&[
        "canonicalize",
        "--input",
        "my_tool.json",
        "--output",
        "canonical.json",
    ])
    .stdout_eq("Canonical tool written to canonical.json\n");
    run(&[
        "emit",
        "--input",
        "canonical.json",
        "--target",
        "openai",
        "--output",
        "openai_tool.json",
    ])
    .stdout_eq("Emitted openai tool written to openai_tool.json\n");
    let written = std::fs::read_to_string(folder.path().join("openai_tool.json")).unwrap();
    assert_eq!(
        written.replace(char::is_whitespace, ""),
        SEARCH.replace(char::is_whitespace, "")
    );
    run(&["detect", "--input", "my_tool.json"]).stdout_eq("Detected format: openai\n");
    run(&["--version"]).stdout_eq("toolcanon [..]\n");
}

#[test]
fn a_failed_run_leaves_the_output_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.json");
    std::fs::write(&output, "before").unwrap();
    let broken = format!("{SEARCH}\n{{\"name\":");
    toolwarden()
        .args(["canon", "canonicalize", "-", "--output"])
        .arg(&output)
        .stdin(broken)
        .assert()
        .code(2);
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "before");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "no temporary file is left behind"
    );
}

#[test]
fn output_respects_what_is_there_already() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write_to = |path: &Path| {
        toolwarden()
            .args(["canon", "canonicalize", "-", "--output"])
            .arg(path)
            .stdin(SEARCH)
            .assert()
            .success();
    };
    std::fs::write(at("private"), "").unwrap();
    std::fs::set_permissions(at("private"), std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink(at("private"), at("link")).unwrap();
    write_to(&at("link"));
    assert!(at("link").is_symlink());
    assert!(
        std::fs::read_to_string(at("private"))
            .unwrap()
            .contains("search_web")
    );
    assert_eq!(
        at("private").metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );

    let pipe = at("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    write_to(&pipe);
    assert!(reader.join().unwrap().contains("search_web"));
    assert!(pipe.metadata().unwrap().file_type().is_fifo());
}

#[test]
fn what_canonicalize_writes_emit_reads() {
    for format in ["text", "json", "jsonl"] {
        let canonical = toolwarden()
            .args([
                "canon",
                "canonicalize",
                "--format",
                format,
                "examples/workspace.json",
            ])
            .output()
            .unwrap();
        let mut emit = toolwarden();
        emit = emit.args(["canon", "emit", "--target", "mcp", "--format", "jsonl", "-"]);
        let back = emit.stdin(canonical.stdout).output().unwrap();
        let text = std::fs::read_to_string(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/workspace.json"),
        )
        .unwrap();
        let original: serde_json::Value = serde_json::from_str(&text).unwrap();
        let lines: Vec<serde_json::Value> = String::from_utf8(back.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            serde_json::Value::Array(lines),
            original["tools"],
            "{format}"
        );
    }
}

#[test]
fn fixing_mends_what_the_document_says_it_does() {
    let rejected = |args: &[&str]| {
        let out = toolwarden()
            .args(["canon", "lint", "--for", "kimi"])
            .args(args)
            .arg("examples/workspace.json");
        let out = out.output().unwrap();
        let said = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
        said.lines()
            .filter(|line| line.starts_with("kimi: "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        rejected(&[]),
        ["kimi: 5 of 8 tools rejected (checked 2026-11-15)"]
    );
    assert_eq!(
        rejected(&["--fix"]),
        ["kimi: 3 of 8 tools rejected (checked 2026-11-15)"]
    );
}

#[test]
fn completions_exist_for_the_shells_we_name() {
    for shell in ["bash", "zsh", "fish"] {
        let out = toolwarden().args(["completions", shell]).output().unwrap();
        assert!(out.status.success());
        let script = String::from_utf8(out.stdout).unwrap();
        assert!(
            script.contains("canonicalize") && script.contains("deny-loss"),
            "{shell}"
        );
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let script = "set -o pipefail; \"$0\" canon canonicalize examples/workspace.json | head -n 1";
    let out = Command::new("bash")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .args(["-c", script])
        .arg(cargo_bin!("toolwarden"))
        .assert();
    out.success().stdout_eq("[\n");
}
