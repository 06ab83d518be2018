//! Links by the names of the programs this one replaces.

use std::io;
use std::path::Path;

use crate::args::{ALIASES, InstallAliasesArgs};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::error::CliError;
use crate::output::print_text;

/// Creates the links. A file of one of the names that is not a link to this program is replaced only
/// with `--force`.
pub(super) fn install(args: &InstallAliasesArgs) -> Result<CommandOutcome, CliError> {
    let failed = |place: &Path| {
        let place = place.to_owned();
        move |source| CliError::Write { place, source }
    };
    let program = std::env::current_exe().and_then(|it| it.canonicalize());
    let program = program.map_err(failed(&args.folder))?;
    if !args.folder.is_dir() {
        let source = io::Error::from(io::ErrorKind::NotADirectory);
        return Err(failed(&args.folder)(source));
    }
    let links: Vec<_> = ALIASES
        .iter()
        .map(|alias| args.folder.join(alias.name))
        .collect();
    // All links are checked before the first is created.
    for link in links.iter().filter(|_| !args.force) {
        if link.symlink_metadata().is_ok() && !links_to(link, &program) {
            return Err(CliError::AliasTaken { path: link.clone() });
        }
    }
    let mut report = String::new();
    for link in &links {
        if links_to(link, &program) {
            report.push_str(&format!("exists {}\n", link.display()));
            continue;
        }
        if link.symlink_metadata().is_ok() {
            std::fs::remove_file(link).map_err(failed(link))?;
        }
        make_link(&program, link).map_err(failed(link))?;
        report.push_str(&format!("linked {}\n", link.display()));
    }
    print_text(&report)?;
    if !is_in_path(&args.folder) {
        print_status(&format!(
            "{} is not in PATH, so a shell does not find these names",
            args.folder.display()
        ));
    }
    Ok(CommandOutcome::Pass)
}

/// Whether a link leads to this program already.
fn links_to(link: &Path, program: &Path) -> bool {
    link.canonicalize().is_ok_and(|target| target == *program) && link != program
}

fn is_in_path(folder: &Path) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    let wanted = folder.canonicalize().ok();
    std::env::split_paths(&path).any(|it| it.canonicalize().ok() == wanted)
}

#[cfg(unix)]
fn make_link(program: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(program, link)
}

#[cfg(not(unix))]
fn make_link(program: &Path, link: &Path) -> io::Result<()> {
    std::fs::hard_link(program, link).or_else(|_| std::fs::copy(program, link).map(|_| ()))
}
