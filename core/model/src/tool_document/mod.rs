//! The canonical form as a JSON document, version 1: the fields of the toolcanon document, then our
//! own.

mod document_node;
mod read;
mod write;

pub use read::{InvalidTool, ToolProblem};
