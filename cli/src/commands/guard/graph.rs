use std::ffi::OsStr;

use toolwarden_guard::{Graph, dot, mermaid, svg};

use super::policy;
use crate::args::{GraphArgs, GraphFormat};
use crate::error::CliError;
use crate::output::{Output, Verdict};

pub(super) fn run(args: &GraphArgs) -> Result<Verdict, CliError> {
    let loaded = policy::load(&args.policy.policy)?;
    let graph = Graph::of(&loaded.policy);
    let named = args.output.as_deref().and_then(std::path::Path::extension);
    let format = args
        .format
        .unwrap_or_else(|| match named.and_then(OsStr::to_str) {
            Some("svg") => GraphFormat::Svg,
            Some("dot" | "gv") => GraphFormat::Dot,
            _ => GraphFormat::Mermaid,
        });
    let drawn = match format {
        GraphFormat::Mermaid => mermaid(&graph),
        GraphFormat::Dot => dot(&graph),
        GraphFormat::Svg => svg(&graph),
    };
    let mut out = Output::open(args.output.as_deref())?;
    out.write(&drawn)?;
    out.finish()?;
    Ok(Verdict::Fine)
}
