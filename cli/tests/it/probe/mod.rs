//! `probe` as a user meets it: bundled answers, real HTTP, and the program it takes the place of.

mod ci_examples;
mod clients;
mod compat;
mod contract;
mod dialect;
mod exit_codes;
mod failures;
mod files;
mod flagship;
mod formats;
mod hostile;
mod init;
mod model_report;
mod odd_replies;
mod pace;
mod providers;
mod rates;
mod replay;
mod secrets;
mod table;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use snapbox::cmd::cargo_bin;
use toolwarden_testkit::provider::{FakeProvider, ProviderResponse, Script};

use super::sandbox::{CommandOutput, Sandbox, command_output};

/// A place to probe from, in which no key is set.
struct ProbeSandbox {
    sandbox: Sandbox,
}

impl ProbeSandbox {
    fn new() -> Self {
        Self {
            sandbox: Sandbox::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.sandbox.path(name)
    }

    fn write(&self, name: &str, text: &str) {
        self.sandbox.write(name, text);
    }

    fn read(&self, name: &str) -> String {
        self.sandbox.read(name)
    }

    /// `toolwarden probe` with arguments.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = keyless(self.sandbox.command());
        command.arg("probe").args(args);
        command
    }

    /// The same program, called by the name of the one it takes the place of.
    fn tooldrift(&self, args: &[&str]) -> CommandOutput {
        let link = self.path("tooldrift");
        if !link.exists() {
            std::os::unix::fs::symlink(cargo_bin!("toolwarden"), &link).unwrap();
        }
        let mut command = keyless(Command::new(link));
        command.current_dir(self.path("")).args(args);
        command_output(command.output().unwrap())
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        command_output(self.command(args).output().unwrap())
    }

    /// Runs a command that must end with this code.
    fn run_to(&self, code: i32, args: &[&str]) -> CommandOutput {
        let said = self.run(args);
        assert_eq!(said.code, code, "{args:?}: {said:#?}");
        said
    }
}

/// The environment of the tests may have keys, and a proxy.
fn keyless(mut command: Command) -> Command {
    for name in toolwarden_probe::presets()
        .iter()
        .flat_map(|it| &it.key_env)
    {
        command.env_remove(name);
    }
    command.env("NO_PROXY", "127.0.0.1");
    command
}

/// A provider that answers everyone the same.
fn serving(answer: ProviderResponse) -> FakeProvider {
    FakeProvider::start(Script::always(answer))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("not JSON: {text}"))
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn names(files: &[PathBuf]) -> Vec<&str> {
    let names = files.iter().filter_map(|it| it.file_name());
    names.filter_map(OsStr::to_str).collect()
}
