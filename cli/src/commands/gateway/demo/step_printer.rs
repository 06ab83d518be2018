//! Tells the story as it happens, or as a document when it is over.

use serde_json::{Value, json};

use crate::args::PlainFormat;
use crate::error::CliError;
use crate::output::{print_chunk, print_text};
use crate::style::{self, escape_controls};

/// Prints the steps of the demo.
pub(super) struct StepPrinter {
    format: PlainFormat,
    steps: Vec<Value>,
}

/// One line of a step.
pub(super) enum StepLine {
    /// What the agent, the server or the operator does.
    Action(String),
    /// What went well.
    Good(String),
    /// What was refused or found.
    Bad(String),
    /// What there is to say about it.
    Note(String),
}

impl StepPrinter {
    pub(super) const fn new(format: PlainFormat) -> Self {
        Self {
            format,
            steps: Vec::new(),
        }
    }

    /// Tells a step: its title and lines in words, its name and facts in JSON.
    pub(super) fn print_step(
        &mut self,
        (name, title): (&str, &str),
        lines: &[StepLine],
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
        let lines: String = lines.iter().map(StepLine::text).collect();
        let (number, bold) = (self.steps.len(), style::TITLE);
        print_chunk(&format!("{bold}{number}. {title}{bold:#}\n{lines}\n"))
    }

    /// Tells how to go on.
    pub(super) fn finish(self) -> Result<(), CliError> {
        match self.format {
            PlainFormat::Text => print_text(NEXT_STEPS),
            PlainFormat::Json => {
                let document = json!({"schema": "toolwarden/demo/v1", "steps": self.steps});
                print_text(&format!("{document:#}\n"))
            }
        }
    }
}

const NEXT_STEPS: &str = "\
Next steps:
  toolwarden import claude       import the servers of a desktop client
  toolwarden serve               run the gateway in front of them
  toolwarden wrap -- COMMAND     or protect one server, in the configuration of a client
";

impl StepLine {
    fn text(&self) -> String {
        let (good, bad, dim) = (style::SUCCESS, style::ERROR, style::DIM);
        match self {
            Self::Action(text) => format!("   {}\n", escape_controls(text)),
            Self::Good(text) => format!("     {good}ok{good:#}      {}\n", escape_controls(text)),
            Self::Bad(text) => format!("     {bad}denied{bad:#}  {}\n", escape_controls(text)),
            Self::Note(text) => format!("     {dim}{}{dim:#}\n", escape_controls(text)),
        }
    }
}
