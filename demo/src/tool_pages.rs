//! The list of tools as it is sent, serialized once.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::header_arguments::{self, HeaderArgument};

/// Tools in pages, and what is needed to accept a call.
#[derive(Debug)]
pub(super) struct ToolPages {
    /// The members of each page, without braces: the two eras append different ones.
    pages: Vec<String>,
    header_arguments: BTreeMap<String, Vec<HeaderArgument>>,
}

impl ToolPages {
    /// Distributes tools over pages; a page size of 0 puts all on one page.
    pub(super) fn new(tools: &[Box<RawValue>], page: usize) -> Self {
        let page = if page == 0 { tools.len().max(1) } else { page };
        let mut pages: Vec<String> = tools.chunks(page).map(members).collect();
        if pages.is_empty() {
            pages.push(members(&[]));
        }
        let last = pages.len() - 1;
        for (at, text) in pages.iter_mut().enumerate().take(last) {
            text.push_str(&format!(r#","nextCursor":"page-{}""#, at + 1));
        }
        let marks = tools.iter().filter_map(|tool| {
            let tool: Value = serde_json::from_str(tool.get()).ok()?;
            let name = tool.get("name")?.as_str()?.to_owned();
            let schema = tool.get("inputSchema").unwrap_or(&Value::Null);
            Some((name, header_arguments::header_arguments(schema)))
        });
        Self {
            header_arguments: marks.collect(),
            pages,
        }
    }

    /// The members of the page with this cursor; `None` for a cursor that was never issued.
    pub(super) fn page(&self, cursor: Option<&str>) -> Option<&str> {
        let at = match cursor {
            None => 0,
            Some(cursor) => cursor.strip_prefix("page-")?.parse().ok()?,
        };
        self.pages.get(at).map(String::as_str)
    }

    /// The marks of a tool; `None` if it is not offered.
    pub(super) fn header_arguments(&self, tool: &str) -> Option<&[HeaderArgument]> {
        self.header_arguments.get(tool).map(Vec::as_slice)
    }
}

fn members(tools: &[Box<RawValue>]) -> String {
    let texts: Vec<&str> = tools.iter().map(|tool| tool.get()).collect();
    format!(r#""tools":[{}]"#, texts.join(","))
}
