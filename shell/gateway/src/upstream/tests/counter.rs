use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolwarden_mcp::{Command, Endpoint, EnvInheritance};

/// The counting program.
pub(super) fn counter(mode: &str, log: Option<&Path>) -> Endpoint {
    let mut args = vec![
        "-c".to_owned(),
        include_str!("counter.py").to_owned(),
        mode.to_owned(),
    ];
    args.extend(log.map(|path| path.to_str().unwrap().to_owned()));
    command("python3", args)
}

pub(super) fn command(program: &str, args: Vec<String>) -> Endpoint {
    Endpoint::Command(Command {
        program: program.to_owned(),
        args,
        env: Vec::new(),
        inherit: EnvInheritance::default(),
        directory: None,
        shows_errors: false,
    })
}

/// A path for the log of a counting program.
pub(super) fn log_in(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("calls")
}

/// Count and process of an answer.
pub(super) fn parse_answer(answer: &Value) -> (u64, u32) {
    let number = |key: &str| answer.get(key).and_then(Value::as_u64).unwrap();
    (number("count"), u32::try_from(number("pid")).unwrap())
}

/// Whether a process exists and is not merely unreaped.
pub(super) fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|status| status != 'Z')
}

/// Whether nothing is left of a process, its entry in the table of processes included.
pub(super) fn is_gone(pid: u32) -> bool {
    stat(pid).is_none()
}

pub(super) fn kill(pid: u32) {
    let status = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

fn stat(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}
