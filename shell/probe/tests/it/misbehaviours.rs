//! Every misbehaviour of the catalogue, served over HTTP: what the clients do, and what a run reports.
//! The table in the documents is what this test finds.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use toolwarden_canon::client_behaviour::{ClientLibrary, ClientOutcome, HttpReply, judge, replay};
use toolwarden_canon::reply::{self, ReplyLimits};
use toolwarden_model::Severity;
use toolwarden_model::reply::{StreamMode, WireApi};
use toolwarden_testkit::provider::{
    FakeProvider, Misbehaviour, ProviderResponse, Script, misbehaviours,
};
use toolwarden_trials::conformance;

use crate::support::{note_words, repeated, run_target, snapshot_without_times, target_on};

const HEAD: &str = include_str!("misbehaviours_head.md");

/// What one client does with a response, in a few words.
fn client_cell(
    client: ClientLibrary,
    wire: WireApi,
    mode: StreamMode,
    response: &ProviderResponse,
) -> String {
    let bytes = HttpReply {
        content_type: response.content_type(),
        body: response.body(),
    };
    let outcome = replay(client, wire, mode, bytes).unwrap();
    let read = reply::read(wire, mode, response.body(), &ReplyLimits::default());
    let faults = read.map(|reply| judge(wire, mode, bytes, &reply));
    let faults = faults.unwrap_or_default();
    let fault = faults.iter().find(|it| it.client == client);
    match (&outcome, fault) {
        (ClientOutcome::Raised(error), _) => format!("raises `{}`", error.class),
        (ClientOutcome::Handed(_), Some(finding)) => finding.fault.as_str().to_owned(),
        (ClientOutcome::Handed(_), None) => "reads it".to_owned(),
    }
}

/// What a run says: the breaking findings, else the notes.
async fn verdict_cell(wire: WireApi, mode: StreamMode, response: ProviderResponse) -> String {
    let provider = FakeProvider::start(Script::always(response));
    let settings = toolwarden_probe::RunSettings {
        retries: 0,
        ..repeated(1, &[mode])
    };
    let run = run_target(target_on(wire, &provider), &settings).await;
    let first = run.trials.first().unwrap();
    let notes = note_words(first);
    if let Err(failure) = &first.outcome {
        let failure = failure.failure.as_str();
        let rejected = conformance(&snapshot_without_times(run));
        let found = rejected.iter().map(|it| it.rule.to_string()).next();
        return match found {
            Some(rule) => format!("breaking: {rule}"),
            None => format!("not measured: {failure}"),
        };
    }
    let snapshot = snapshot_without_times(run);
    // What the cases of the bundled suite ask for is not the subject here.
    let own = ["expectation", "exact_arguments"];
    let found = conformance(&snapshot);
    let of = |severity: Severity| -> Vec<String> {
        let found = found.iter().filter(|it| it.severity() == severity);
        let rules: BTreeSet<String> = found.map(|it| it.rule.to_string()).collect();
        let rules = rules.into_iter();
        rules.filter(|it| !own.contains(&it.as_str())).collect()
    };
    for severity in [Severity::Breaking, Severity::Warning] {
        let rules = of(severity);
        if !rules.is_empty() {
            return format!("{}: {}", severity.as_str(), rules.join(", "));
        }
    }
    let notes: Vec<&str> = notes
        .iter()
        .filter_map(|it| it.strip_prefix("note "))
        .collect();
    if notes.is_empty() {
        "correct".to_owned()
    } else {
        format!("note: {}", notes.join(", "))
    }
}

async fn rows(wire: WireApi, all: &[Misbehaviour]) -> String {
    let clients = ClientLibrary::of_wire(wire);
    let mut table = format!("\n## {}\n\n| misbehaviour | mode |", wire.as_str());
    for client in clients {
        write!(table, " {} |", client.as_str()).unwrap();
    }
    table.push_str(" report |\n|---|---|");
    table.push_str(&"---|".repeat(clients.len() + 1));
    table.push('\n');
    for row in all.iter().filter(|it| it.wire == wire.as_str()) {
        let modes = [
            (StreamMode::Nonstream, &row.nonstream),
            (StreamMode::Stream, &row.stream),
        ];
        for (mode, response) in modes {
            let Some(response) = response else { continue };
            write!(table, "| {} | {} |", row.what, mode.as_str()).unwrap();
            for client in clients {
                write!(table, " {} |", client_cell(*client, wire, mode, response)).unwrap();
            }
            let verdict = verdict_cell(wire, mode, response.clone()).await;
            writeln!(table, " {verdict} |").unwrap();
        }
    }
    table
}

#[tokio::test]
async fn the_table_in_the_documents_is_what_a_run_finds() {
    let all = misbehaviours();
    let mut found = HEAD.to_owned();
    for client in ClientLibrary::ALL {
        let release = client.release();
        writeln!(
            found,
            "| {} | `{}` {} | {} |",
            client.as_str(),
            release.package,
            release.version,
            release.checked
        )
        .unwrap();
    }
    for wire in WireApi::ALL {
        found.push_str(&rows(wire, &all).await);
    }
    let documented = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/probe-misbehaviours.md"
    );
    let shown = std::fs::read_to_string(documented).unwrap_or_default();
    if shown != found {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = folder.join("probe-misbehaviours.md");
        std::fs::write(&path, &found).unwrap();
        panic!(
            "docs/probe-misbehaviours.md differs from {}",
            path.display()
        );
    }
    // A client that fails on a reply which was measured is a breaking finding.
    for line in found
        .lines()
        .filter(|it| it.contains("| loses |") || it.contains("| garbles |"))
    {
        assert!(
            line.contains("breaking:") || line.contains("not measured:"),
            "{line}"
        );
    }
}
