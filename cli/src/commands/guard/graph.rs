use toolwarden_guard::{Graph, dot, mermaid, svg};

use super::policy;
use crate::args::{GraphArgs, GraphFormat};
use crate::error::CliError;
use crate::output::{Output, Verdict};

pub(super) fn run(args: &GraphArgs) -> Result<Verdict, CliError> {
    let loaded = policy::load(&args.policy.policy)?;
    let graph = Graph::of(&loaded.policy);
    let drawn = match args.format {
        GraphFormat::Mermaid => mermaid(&graph),
        GraphFormat::Dot => dot(&graph),
        GraphFormat::Svg => svg(&graph),
    };
    let mut out = Output::open(args.output.as_deref())?;
    out.write(&drawn)?;
    out.finish()?;
    Ok(Verdict::Fine)
}
