//! Tells the story as it happens, or as a document when it is over.

use serde_json::{Value, json};

use crate::args::PlainFormat;
use crate::error::CliError;
use crate::output::{print, print_part};
use crate::style::{self, visible};

/// Tells the story.
pub(super) struct Teller {
    format: PlainFormat,
    steps: Vec<Value>,
}

/// One line of a step.
pub(super) enum Line {
    /// What somebody does.
    Does(String),
    /// What went well.
    Good(String),
    /// What was refused or found.
    Bad(String),
    /// What there is to say about it.
    Says(String),
}

impl Teller {
    pub(super) const fn new(format: PlainFormat) -> Self {
        Self {
            format,
            steps: Vec::new(),
        }
    }

    /// Tells a step: its title and lines in words, its name and facts in JSON.
    pub(super) fn step(
        &mut self,
        (name, title): (&str, &str),
        lines: &[Line],
        facts: Value,
    ) -> Result<(), CliError> {
        let mut entry = json!({"step": name});
        if let (Value::Object(entry), Value::Object(facts)) = (&mut entry, facts) {
            entry.extend(facts);
        }
        self.steps.push(entry);
        if self.format == PlainFormat::Json {
            return Ok(());
        }
        let lines: String = lines.iter().map(Line::text).collect();
        print_part(&format!("{}. {title}\n{lines}\n", self.steps.len()))
    }

    /// Tells how to go on.
    pub(super) fn end(self) -> Result<(), CliError> {
        match self.format {
            PlainFormat::Text => print(GO_ON),
            PlainFormat::Json => {
                let document = json!({"schema": "toolwarden/demo/v1", "steps": self.steps});
                print(&format!("{document:#}\n"))
            }
        }
    }
}

const GO_ON: &str = "\
Go on with:
  toolwarden import claude       take over the servers of a desktop client
  toolwarden serve               run the gateway for them
  toolwarden wrap -- COMMAND     or put it before one server, in the configuration of a client
";

impl Line {
    fn text(&self) -> String {
        let (good, bad, dim) = (style::GOOD, style::ERROR, style::DIM);
        match self {
            Self::Does(text) => format!("   {}\n", visible(text)),
            Self::Good(text) => format!("     {good}ok{good:#}      {}\n", visible(text)),
            Self::Bad(text) => format!("     {bad}denied{bad:#}  {}\n", visible(text)),
            Self::Says(text) => format!("     {dim}{}{dim:#}\n", visible(text)),
        }
    }
}
