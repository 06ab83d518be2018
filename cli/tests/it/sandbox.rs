//! A place with a store of its own, and the command in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

pub(crate) struct Sandbox {
    folder: TempDir,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A `toolwarden` that knows no other place than this one.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(cargo_bin!("toolwarden"));
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("XDG_DATA_HOME", self.path("data"))
            .env("USER", "ada")
            .env_remove("TOOLWARDEN_STORE");
        command
    }

    pub(crate) fn watch(&self, args: &[&str]) -> CommandOutput {
        command_output(self.command().arg("watch").args(args).output().unwrap())
    }

    /// Runs a `watch` command that must end with this code.
    pub(crate) fn watch_to(&self, code: i32, args: &[&str]) -> CommandOutput {
        let said = self.watch(args);
        assert_eq!(said.code, code, "{args:?}: {said:#?}");
        said
    }
}

pub(crate) fn command_output(output: Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A file of this crate's test data.
pub(crate) fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    path.to_str().unwrap().to_owned()
}
