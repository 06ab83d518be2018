//! The names of the programs that this one replaces: called by one of them, it speaks by that name.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::{CommandFactory as _, Subcommand};

use super::{CanonCommand, Cli, CliCommand, Color, ProbeCommand, STYLES, WatchCommand};

/// A program this one replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alias {
    /// Its name.
    pub(crate) name: &'static str,
    word: AliasGroup,
}

/// The commands a program is replaced by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AliasGroup {
    Canon,
    Watch,
    Probe,
}

/// Every name.
pub(crate) const ALIASES: [Alias; 5] = [
    Alias::new("toolcanon", AliasGroup::Canon),
    Alias::new("aumai-toolcanon", AliasGroup::Canon),
    Alias::new("toolwatch", AliasGroup::Watch),
    Alias::new("aumai-toolwatch", AliasGroup::Watch),
    Alias::new("tooldrift", AliasGroup::Probe),
];

/// The name this process was called by.
static CALLED: OnceLock<Alias> = OnceLock::new();

/// Whether this process was called by a name of the toolwatch program.
pub(crate) fn is_toolwatch() -> bool {
    CALLED
        .get()
        .is_some_and(|alias| alias.word == AliasGroup::Watch)
}

/// Reads the command line; ends the process where it asks for help or has a mistake.
pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Cli {
    let args: Vec<OsString> = args.collect();
    // The parser prints usage errors before it has read the option.
    Color::written_in(&args).apply();
    match Alias::from_args(&args) {
        Some(alias) => {
            // INVARIANT: nothing else sets it, and the command line is read once.
            CALLED.get_or_init(|| alias);
            alias.parse(args).unwrap_or_else(|error| error.exit())
        }
        None => <Cli as clap::Parser>::parse_from(args),
    }
}

impl AliasGroup {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Canon => "canon",
            Self::Watch => "watch",
            Self::Probe => "probe",
        }
    }
}

impl Alias {
    const fn new(name: &'static str, word: AliasGroup) -> Self {
        Self { name, word }
    }

    /// The name the binary is called by, if it is one of them.
    fn from_args(args: &[OsString]) -> Option<Self> {
        let called = args.first().map(PathBuf::from);
        let stem = called.as_ref()?.file_stem()?.to_str()?;
        ALIASES.into_iter().find(|alias| alias.name == stem)
    }

    fn parse(self, args: Vec<OsString>) -> Result<Cli, clap::Error> {
        let mut command = self.command();
        let matches = command.try_get_matches_from_mut(self.with_compat(args))?;
        fn of<C: Subcommand>(
            matches: &clap::ArgMatches,
            command: &mut clap::Command,
        ) -> Result<C, clap::Error> {
            C::from_arg_matches(matches).map_err(|error| error.format(command))
        }
        Ok(Cli {
            color: matches
                .get_one::<Color>("color")
                .copied()
                .unwrap_or_default(),
            exit_zero: matches.get_flag("exit_zero"),
            command: match self.word {
                AliasGroup::Canon => CliCommand::Canon(of::<CanonCommand>(&matches, &mut command)?),
                AliasGroup::Watch => {
                    CliCommand::Watch(Box::new(of::<WatchCommand>(&matches, &mut command)?))
                }
                AliasGroup::Probe => {
                    CliCommand::Probe(Box::new(of::<ProbeCommand>(&matches, &mut command)?))
                }
            },
        })
    }

    /// The commands of the word as a program of their own.
    fn command(self) -> clap::Command {
        let whole = Cli::command();
        let global: Vec<clap::Arg> = whole.get_arguments().cloned().collect();
        let found = whole.find_subcommand(self.word.as_str()).cloned();
        let command = found.unwrap_or_else(|| whole.clone());
        let command = command
            .name(self.name)
            .bin_name(self.name)
            .version(env!("CARGO_PKG_VERSION"))
            .styles(STYLES)
            .max_term_width(100)
            .args(global.into_iter().filter(clap::Arg::is_global_set));
        self.with_alias_help(command)
    }

    /// The command with texts that name this program.
    fn with_alias_help(self, mut command: clap::Command) -> clap::Command {
        let long = format!("toolwarden {}", self.word.as_str());
        let ours = |text: &clap::builder::StyledStr| text.to_string().replace(&long, self.name);
        if let Some(text) = command.get_about().map(ours) {
            command = command.about(text);
        }
        if let Some(text) = command.get_long_about().map(ours) {
            command = command.long_about(text);
        }
        if let Some(text) = command.get_after_help().map(ours) {
            command = command.after_help(text);
        }
        command = command.mut_args(|mut argument| {
            if let Some(text) = argument.get_help().map(ours) {
                argument = argument.help(text);
            }
            if let Some(text) = argument.get_long_help().map(ours) {
                argument = argument.long_help(text);
            }
            argument
        });
        command.mut_subcommands(|command| self.with_alias_help(command))
    }

    /// Scripts written for these programs read what they write, unless they ask for our formats.
    fn with_compat(self, mut args: Vec<OsString>) -> Vec<OsString> {
        let asked = |args: &[OsString]| args.get(1).and_then(|it| it.to_str().map(str::to_owned));
        if asked(&args).as_deref() == Some(self.word.as_str()) {
            args.remove(1);
        }
        let asks = |option: &str| {
            args.iter()
                .any(|it| it.to_string_lossy().starts_with(option))
        };
        let as_before = !asks("--compat") && !asks("--help") && !asks("-h");
        let compat: &[&str] = match (self.word, asked(&args).as_deref()) {
            (AliasGroup::Watch, Some("baseline" | "check" | "alerts"))
                if as_before && !asks("--format") =>
            {
                &["--compat"]
            }
            (AliasGroup::Probe, Some("snapshot" | "diff" | "run" | "compare-table"))
                if as_before =>
            {
                &["--compat", "tooldrift"]
            }
            _ => &[],
        };
        args.extend(compat.iter().map(OsStr::new).map(OsString::from));
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(args: &[&str]) -> Option<Vec<OsString>> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        Alias::from_args(&args).map(|alias| alias.with_compat(args))
    }

    #[test]
    fn the_old_programs_write_what_they_wrote() {
        for (args, expected) in [
            (&["/usr/bin/toolcanon", "detect"][..], "detect"),
            (
                &["toolwatch", "check", "--tool", "a"],
                "check --tool a --compat",
            ),
            (&["aumai-toolwatch", "watch", "alerts"], "alerts --compat"),
            (
                &["toolwatch", "check", "--format=sarif"],
                "check --format=sarif",
            ),
            (&["toolwatch", "list"], "list"),
            (&["toolwatch", "check", "--help"], "check --help"),
            (
                &["tooldrift", "diff", "a", "b"],
                "diff a b --compat tooldrift",
            ),
        ] {
            let found = words(args).map(|words| words.join(OsStr::new(" ")));
            let found = found.map(|it| it.to_string_lossy().into_owned());
            let expected = format!("{} {expected}", args[0]);
            assert_eq!(found, Some(expected));
        }
        assert_eq!(words(&["toolwarden", "canon"]), None);
    }

    #[test]
    fn every_program_speaks_by_its_own_name() {
        fn texts(command: &mut clap::Command) -> String {
            let mut text = command.render_long_help().to_string();
            text.push_str(&command.render_version());
            let names: Vec<String> = command
                .get_subcommands()
                .map(|it| it.get_name().to_owned())
                .collect();
            for name in names.iter().filter(|name| *name != "help") {
                let found = command.find_subcommand_mut(name).unwrap();
                text.push_str(&texts(found));
            }
            text
        }
        for alias in ALIASES {
            let mut command = alias.command();
            command.build();
            command.clone().debug_assert();
            let text = texts(&mut command);
            let long = format!("toolwarden {}", alias.word.as_str());
            assert!(!text.contains(&long), "{}: {text}", alias.name);
            assert!(text.contains(&format!("Usage: {} ", alias.name)), "{text}");
            assert!(text.contains(&format!("{} {}", alias.name, env!("CARGO_PKG_VERSION"))));
        }
    }
}
