//! What `probe snapshot` writes, and that it writes it alike.

use toolwarden_testkit::read_vectors;

use super::{ProbeSandbox, files, names, parsed};

#[test]
fn the_original_file_is_written_to_the_byte() {
    let Some(vectors) = read_vectors("probe-flagship.json") else {
        return;
    };
    let probe = ProbeSandbox::new();
    for provider in ["deepseek", "qwen"] {
        let wanted = &vectors[format!("{provider}_snapshot")];
        let mut wanted = wanted.clone();
        wanted.sort_all_objects();
        let wanted = format!("{wanted:#}\n");
        let args = ["snapshot", "-p", provider, "--from-fixtures"];
        let compat = ["--compat", "tooldrift", "-o", "new/folders/taken.json"];
        let said = probe.run_to(0, &[&args[..], &compat].concat());
        assert!(
            said.out.starts_with(&format!("{provider}/")),
            "{}",
            said.out
        );
        assert_eq!(probe.read("new/folders/taken.json"), wanted);
        assert_eq!(names(&files(&probe.path("new"))), ["taken.json"]);
        let shown = probe.tooldrift(&args);
        assert_eq!((shown.code, shown.out), (0, wanted.clone()));
        assert!(
            shown.err.starts_with(&format!("{provider}/")),
            "{}",
            shown.err
        );
        let quiet = probe.tooldrift(&[&args[..], &["--quiet"]].concat());
        assert_eq!(quiet.err, "");
        assert_eq!((quiet.code, quiet.out), (0, wanted.clone()));
        probe.write(
            "fixture.json",
            &vectors[format!("{provider}_fixture")].to_string(),
        );
        let fixture = [
            "snapshot",
            "-q",
            "-p",
            provider,
            "--fixture",
            "fixture.json",
        ];
        assert_eq!(probe.tooldrift(&fixture).out, wanted);
    }
}

/// The same answer gives the same bytes, on the screen and in a file; no clock gets in.
#[test]
fn a_recorded_answer_always_gives_the_same_bytes() {
    let probe = ProbeSandbox::new();
    for provider in ["deepseek", "qwen", "kimi", "glm", "minimax"] {
        let args = ["snapshot", "-p", provider, "--from-fixtures"];
        let quiet = probe.run_to(0, &[&args[..], &["-q"]].concat()).out;
        let json = probe.run_to(
            0,
            &[&args[..], &["--format", "json", "-o", "a/b.json"]].concat(),
        );
        assert_eq!(json.out, quiet);
        assert_eq!(probe.read("a/b.json"), quiet);
        let silent = probe.run_to(0, &[&args[..], &["-q", "-o", "a/c.json"]].concat());
        assert_eq!((silent.out.as_str(), silent.err.as_str()), ("", ""));
        assert_eq!(probe.read("a/c.json"), quiet);
        let taken = parsed(&quiet);
        assert_eq!(taken["schema_version"], 2);
        assert_eq!(taken["at"], serde_json::Value::Null);
        let mut sorted = taken.clone();
        sorted.sort_all_objects();
        assert_eq!(quiet, format!("{sorted:#}\n"), "keys are sorted");
    }
}

/// One provider alone: schema violations are reported without anything to compare with.
#[test]
fn single_snapshot_reports_its_faults() {
    let probe = ProbeSandbox::new();
    let said = probe.run_to(0, &["snapshot", "-p", "qwen", "--from-fixtures"]);
    assert!(
        said.out.contains("\"3\" is not of type \"integer\""),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("arguments valid in 0 of 1 calls"),
        "{}",
        said.out
    );
    // Two providers with the same faults are equal, and the faults are reported.
    let run = ["run", "--old", "qwen", "--new", "qwen", "--from-fixtures"];
    let said = probe.run_to(0, &run);
    assert!(
        said.out.contains("\"3\" is not of type \"integer\""),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("(always so on both sides)"),
        "{}",
        said.out
    );
    assert_eq!(
        probe.tooldrift(&run).code,
        0,
        "the original sees no difference"
    );
}
