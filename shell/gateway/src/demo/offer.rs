//! The list of tools as it is sent, written once.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::marks::{self, Mark};

/// Tools in pages, and what is needed to take a call.
#[derive(Debug)]
pub(super) struct Offer {
    /// The members of each page, without braces: the two eras write different ones after them.
    pages: Vec<String>,
    marks: BTreeMap<String, Vec<Mark>>,
}

impl Offer {
    /// Puts tools into pages; a page of no tools means one page for all.
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
            Some((name, marks::marks(schema)))
        });
        Self {
            marks: marks.collect(),
            pages,
        }
    }

    /// The members of the page with this cursor; none for a cursor that was never given.
    pub(super) fn page(&self, cursor: Option<&str>) -> Option<&str> {
        let at = match cursor {
            None => 0,
            Some(cursor) => cursor.strip_prefix("page-")?.parse().ok()?,
        };
        self.pages.get(at).map(String::as_str)
    }

    /// The marks of a tool; none if it is not offered.
    pub(super) fn marks(&self, tool: &str) -> Option<&[Mark]> {
        self.marks.get(tool).map(Vec::as_slice)
    }
}

fn members(tools: &[Box<RawValue>]) -> String {
    let texts: Vec<&str> = tools.iter().map(|tool| tool.get()).collect();
    format!(r#""tools":[{}]"#, texts.join(","))
}
