//! `cargo xtask tidy`: the checks no compiler makes. Prints every violation and fails if there is one.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads the output"
)]

mod layers;
mod licences;
mod sources;
mod workspace;

use std::process::ExitCode;

use workspace::Workspace;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    if argument.as_deref() != Some("tidy") {
        eprintln!("usage: cargo xtask tidy");
        return ExitCode::from(2);
    }
    let workspace = match Workspace::read() {
        Ok(workspace) => workspace,
        Err(error) => {
            eprintln!("cannot read the workspace: {error}");
            return ExitCode::from(3);
        }
    };
    let mut violations = Vec::new();
    violations.extend(layers::check(&workspace));
    violations.extend(sources::check(&workspace));
    violations.extend(licences::check(&workspace));
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
