//! Reads a tool definition of one provider and writes it for another:
//! `cargo run --package toolwarden-examples --bin canonicalize`
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::error::Error;

use serde_json::json;
use toolwarden::canon::{EmitTarget, FormatChoice, canonicalize, emit};

fn main() -> Result<(), Box<dyn Error>> {
    let anthropic = json!({
        "name": "issue_refund",
        "description": "Refunds an order",
        "input_schema": {
            "type": "object",
            "properties": {
                "order": {"type": "string"},
                "amount": {"type": "number", "exclusiveMinimum": 0}
            },
            "required": ["order"]
        }
    });
    let read = canonicalize(anthropic, FormatChoice::Detect)?;
    for found in read.tools {
        let tool = found.tool;
        println!(
            "{} is a definition in the format {}",
            tool.name, tool.format
        );
        let strict = emit(tool, EmitTarget::OpenaiStrict)?;
        println!("{:#}", strict.value);
        for edit in &strict.edits {
            println!("changed {}: {}", edit.path, edit.reason);
        }
    }
    Ok(())
}
