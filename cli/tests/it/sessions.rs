//! Console blocks that leave something behind, run one after the other in a place of their own.
//! `TRYCMD=overwrite` writes what came out.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use snapbox::cmd::cargo_bin;

#[test]
fn the_sessions_tell_the_truth() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for document in [
        "README.md",
        "docs/tour.md",
        "docs/watch.md",
        "docs/guard.md",
        "docs/audit.md",
        "docs/probe.md",
    ] {
        let path = root.join(document);
        let written = std::fs::read_to_string(&path).unwrap();
        let played = play(&written, &root.join("examples"));
        if std::env::var("TRYCMD").is_ok_and(|it| it == "overwrite") {
            if timeless(&written) != timeless(&played) {
                std::fs::write(&path, &played).unwrap();
            }
            continue;
        }
        snapbox::assert_data_eq!(
            timeless(&played),
            snapbox::Data::from(timeless(&written)).raw()
        );
    }
}

/// A document with its console blocks as they come out now.
fn play(document: &str, examples: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    copy(examples, &folder.path().join("examples"));
    let mut out = String::new();
    let mut inside = false;
    for line in document.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        }
        match line.strip_prefix("$ ").filter(|_| inside) {
            Some(command) => out.push_str(&run(command, folder.path())),
            // Drops the old output: every line of a block that is not a command.
            None if inside && line != "```console" => {}
            None => writeln!(out, "{line}").unwrap(),
        }
    }
    out
}

fn run(command: &str, folder: &Path) -> String {
    let binary = Path::new(cargo_bin!("toolwarden"));
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &format!("{command} 2>&1")])
        .current_dir(folder)
        .env(
            "PATH",
            format!("{}:{path}", binary.parent().unwrap().display()),
        )
        .env("TOOLWARDEN_STORE", "watch.db")
        .env("HOME", folder)
        .env("USER", "ada")
        .output()
        .unwrap();
    let mut text = format!("$ {command}\n");
    match output.status.code().unwrap() {
        0 => {}
        code => writeln!(text, "? {code}").unwrap(),
    }
    text.push_str(&String::from_utf8(output.stdout).unwrap());
    if !text.ends_with("\n\n") {
        text.push('\n');
    }
    text
}

/// A text with every time, duration and digest replaced, for they differ from run to run.
fn timeless(text: &str) -> String {
    let text = &without_digests(&without_latencies(text));
    let mut out = String::new();
    let mut rest = text.as_str();
    let digits = |text: &str, from: usize, to: usize| {
        text.get(from..to)
            .is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    while let Some(found) = rest.find("-") {
        let start = found.checked_sub(4);
        let time = start.and_then(|start| rest.get(start..)).filter(|it| {
            digits(it, 0, 4)
                && digits(it, 5, 7)
                && it.get(10..11) == Some("T")
                && digits(it, 11, 13)
        });
        match (start, time) {
            (Some(start), Some(time)) => {
                let end = time.find(|c: char| !(c.is_ascii_digit() || "-:.TZ+".contains(c)));
                out.push_str(rest.get(..start).unwrap());
                out.push_str("<time>");
                rest = time.get(end.unwrap_or(time.len())..).unwrap();
            }
            _ => {
                out.push_str(rest.get(..=found).unwrap());
                rest = rest.get(found + 1..).unwrap();
            }
        }
    }
    out + rest
}

fn without_latencies(text: &str) -> String {
    let mut parts = text.split("\"latency_ms\": ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        write!(out, "\"latency_ms\": <duration>{rest}").unwrap();
    }
    out
}

fn without_digests(text: &str) -> String {
    let is_digest = |word: &str| word.len() == 64 && word.bytes().all(|it| it.is_ascii_hexdigit());
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    words
        .map(|word| {
            let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if is_digest(bare) {
                word.replace(bare, "<digest>")
            } else {
                word.to_owned()
            }
        })
        .collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        // Documents name no file of a folder in `examples`.
        if path.is_dir() {
            continue;
        }
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[test]
fn times_are_recognized() {
    assert_eq!(
        timeless("seen 2026-11-16T05:41:59Z by a-b, at 2026-11-16T05:41:59.123+00:00; 2026-11-16"),
        "seen <time> by a-b, at <time>; 2026-11-16"
    );
    assert_eq!(
        timeless("\"latency_ms\": 0.02,"),
        "\"latency_ms\": <duration>,"
    );
    assert_eq!(
        timeless(&format!("head: 5:{} x", "0f".repeat(32))),
        "head: 5:<digest> x"
    );
}
