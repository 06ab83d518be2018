//! Many processes at once, some of them killed: the store and the lock file stay whole.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::sandbox::Sandbox;

const ROUNDS: usize = 50;
const PROCESSES: usize = 50;
const KILLED: usize = 20;

/// A generator of numbers that are the same in every run.
struct Random(u64);

impl Random {
    const fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// One process: what it was asked, and whether it will be killed.
struct RunningProcess {
    tool: String,
    kind: ProcessKind,
    child: Child,
    killed_after: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProcessKind {
    Baseline,
    Check,
    Lock,
}

fn start(sandbox: &Sandbox, round: usize, number: usize, random: &mut Random) -> RunningProcess {
    let tool = format!("tool-{round}-{number}");
    let file = format!("{tool}.json");
    let description = "x".repeat(usize::try_from(random.below(4000)).unwrap());
    sandbox.write(
        &file,
        &format!(
            r#"{{"name":"{tool}","description":"{description}","inputSchema":{{"type":"object"}}}}"#
        ),
    );
    let kind = match number % 5 {
        0 => ProcessKind::Lock,
        1 | 2 => ProcessKind::Check,
        _ => ProcessKind::Baseline,
    };
    let mut command = sandbox.command();
    command.args(match kind {
        ProcessKind::Baseline => vec!["watch", "baseline", "--open", &file],
        // The first check of a server pins what it has.
        ProcessKind::Check => vec!["watch", "check", "--new", "--server", &tool, &file],
        ProcessKind::Lock => vec!["watch", "lock", &file, "--server", "s", "--tool", &tool],
    });
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let killed = number % 5 < 4 && (number * 2) % 5 < 2;
    RunningProcess {
        tool,
        kind,
        child,
        killed_after: killed.then(|| Duration::from_micros(random.below(60_000))),
    }
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_torn() {
    let sandbox = Sandbox::new();
    let mut random = Random(20_261_116);
    let mut acknowledged: BTreeMap<String, ProcessKind> = BTreeMap::new();
    let mut kills = 0;
    for round in 0..ROUNDS {
        let mut running: Vec<RunningProcess> = (0..PROCESSES)
            .map(|number| start(&sandbox, round, number, &mut random))
            .collect();
        let killers: Vec<_> = running
            .iter()
            .filter_map(|it| Some((it.child.id(), it.killed_after?)))
            .map(|(pid, after)| {
                std::thread::spawn(move || {
                    std::thread::sleep(after);
                    std::process::Command::new("kill")
                        .args(["-KILL", &pid.to_string()])
                        .stderr(Stdio::null())
                        .status()
                        .unwrap();
                })
            })
            .collect();
        assert_eq!(killers.len(), KILLED);
        // A process is reaped only after its killer is done, so that no other has its number.
        killers.into_iter().for_each(|it| it.join().unwrap());
        for it in &mut running {
            let output = it.child.wait().unwrap();
            match output.code() {
                Some(0) => {
                    acknowledged.insert(it.tool.clone(), it.kind);
                }
                None if it.killed_after.is_some() => kills += 1,
                code => {
                    let mut err = String::new();
                    std::io::Read::read_to_string(&mut it.child.stderr.take().unwrap(), &mut err)
                        .unwrap();
                    panic!("{} ended with {code:?}: {err}", it.tool);
                }
            }
        }
        let listed = sandbox.watch_to(0, &["list", "--format", "json"]);
        let listed: Value = serde_json::from_str(&listed.out).unwrap();
        let servers = listed["servers"].as_array().unwrap().iter();
        let tools = servers.flat_map(|it| it["tools"].as_array().unwrap());
        let kept: Vec<&str> = tools.map(|it| it["tool"].as_str().unwrap()).collect();
        let lock = sandbox.read("toolwarden.lock");
        let lock = toolwarden_watch::LockFile::parse(lock).unwrap();
        let locked: Vec<&String> = lock
            .servers
            .values()
            .flat_map(|it| it.tools.keys())
            .collect();
        for (tool, kind) in &acknowledged {
            let kept = match kind {
                ProcessKind::Lock => locked.contains(&tool),
                ProcessKind::Baseline | ProcessKind::Check => kept.contains(&tool.as_str()),
            };
            assert!(kept, "round {round}: {tool} is missing");
        }
    }
    let pinned = acknowledged
        .values()
        .filter(|it| **it != ProcessKind::Lock)
        .count();
    assert!(
        kills > ROUNDS && pinned > ROUNDS * 10,
        "{kills} killed, {pinned} pinned"
    );
    let temporary = std::fs::read_dir(sandbox.path(""))
        .unwrap()
        .filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with(".tmp")
        });
    assert!(
        temporary.count() <= kills,
        "only the killed leave something behind"
    );
}
