use std::ffi::OsStr;

use toolwarden_guard::{Graph, dot, mermaid, svg};

use super::policy;
use super::policy_location::PolicyLocation;
use crate::args::{GraphArgs, GraphFormat};
use crate::command_outcome::CommandOutcome;
use crate::error::{CliError, GuardError};
use crate::output::OutputFile;

pub(super) fn run(args: &GraphArgs) -> Result<CommandOutcome, CliError> {
    let loaded = policy::load(&PolicyLocation::find(&args.policy)?)?;
    let graph = Graph::of(&loaded.policy);
    let ending = args.output.as_deref().and_then(std::path::Path::extension);
    let format = match (args.format, ending.and_then(OsStr::to_str)) {
        (Some(format), _) => format,
        (None, None | Some("mmd" | "mermaid" | "md" | "txt")) => GraphFormat::Mermaid,
        (None, Some("dot" | "gv")) => GraphFormat::Dot,
        (None, Some("svg")) => GraphFormat::Svg,
        (None, Some(ending)) => {
            let ending = ending.to_owned();
            return Err(GuardError::Drawing { ending }.into());
        }
    };
    let drawn = match format {
        GraphFormat::Mermaid => mermaid(&graph),
        GraphFormat::Dot => dot(&graph),
        GraphFormat::Svg => svg(&graph),
    };
    let mut out = OutputFile::open(args.output.as_deref())?;
    out.write(&drawn)?;
    out.finish()?;
    Ok(CommandOutcome::Pass)
}
