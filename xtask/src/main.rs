//! `cargo xtask tidy`: the checks no compiler makes. Prints every violation and fails if there is one.
//! `cargo xtask demo-svg`: draws docs/demo.svg from what `toolwarden demo` prints.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads the output"
)]

mod guard_dependencies;
mod layers;
mod licences;
mod modules;
mod phrases;
mod source_rules;
mod type_names;
mod workspace;

use std::process::{Command, ExitCode};

use workspace::Workspace;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    match argument.as_deref() {
        Some("tidy") => tidy(),
        Some("demo-svg") => demo_svg(),
        _ => {
            eprintln!("usage: cargo xtask tidy | demo-svg");
            ExitCode::from(2)
        }
    }
}

/// Has the test that compares the picture with the demo write it instead.
fn demo_svg() -> ExitCode {
    let status = Command::new(env!("CARGO"))
        .args([
            "test",
            "--quiet",
            "--package",
            "toolwarden-cli",
            "--test",
            "it",
        ])
        .args([
            "--",
            "--exact",
            "demo_picture::the_picture_shows_what_the_demo_prints",
        ])
        .env("UPDATE_GOLDEN", "1")
        .status();
    match status {
        Ok(status) => ExitCode::from(u8::from(!status.success())),
        Err(error) => {
            eprintln!("cannot start cargo: {error}");
            ExitCode::from(3)
        }
    }
}

fn tidy() -> ExitCode {
    let workspace = match Workspace::read() {
        Ok(workspace) => workspace,
        Err(error) => {
            eprintln!("cannot read the workspace: {error}");
            return ExitCode::from(3);
        }
    };
    let mut violations = Vec::new();
    violations.extend(layers::check(&workspace));
    violations.extend(source_rules::check(&workspace));
    violations.extend(licences::check(&workspace));
    violations.extend(modules::check(&workspace));
    violations.extend(phrases::check(&workspace));
    violations.extend(type_names::check(&workspace));
    match guard_dependencies::read(&workspace.root) {
        Ok(crates) => {
            violations.extend(guard_dependencies::check(&crates));
            println!("the guard alone: {} crates", crates.len());
        }
        Err(error) => violations.push(format!("cargo tree of the guard: {error}")),
    }
    for violation in &violations {
        println!("{violation}");
    }
    println!(
        "{} crates, {} source files, {} violations",
        workspace.crates.len(),
        workspace.files.len(),
        violations.len()
    );
    ExitCode::from(u8::from(!violations.is_empty()))
}
