//! The required metadata of a stateless request.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolwarden_mcp::RawObject;

use super::header_arguments;
use super::initialize::STATELESS_VERSION;
use super::messages::DemoError;
use super::request::{DemoRequest, value};
use super::shop::Shop;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// Whether a request names its own protocol version.
pub(super) fn is_stateless(params: &RawObject<'_>) -> bool {
    let meta = params.object("_meta");
    meta.is_some_and(|meta| meta.get(VERSION_KEY).is_some())
}

/// Refuses a request whose metadata is incomplete, or whose headers contradict it. Over standard streams there are
/// no headers.
pub(super) fn check(
    shop: &Shop,
    asked: &DemoRequest,
    headers: Option<&HeaderMap>,
) -> Result<(), DemoError> {
    let params = RawObject::parse_optional(asked.params.as_deref());
    let meta = params.object("_meta").unwrap_or_default();
    for key in [VERSION_KEY, CAPABILITIES_KEY] {
        if meta.get(key).is_none() {
            return Err(DemoError::invalid(format!("`_meta` lacks `{key}`")));
        }
    }
    let version = meta.text(VERSION_KEY);
    let version = version.as_deref();
    if let Some(headers) = headers {
        let same = |header: &str, said: Option<&str>| {
            if text(headers, header).as_deref() == said {
                return Ok(());
            }
            Err(mismatch(header))
        };
        same("mcp-protocol-version", version)?;
        same("mcp-method", Some(&asked.method))?;
        let named = match asked.method.as_str() {
            "tools/call" | "prompts/get" => params.text("name"),
            "resources/read" => params.text("uri"),
            _ => None,
        };
        if let Some(name) = named {
            same("mcp-name", Some(&name))?;
            check_header_arguments(shop, asked, &params, &name, headers)?;
        }
    }
    if version != Some(STATELESS_VERSION) {
        let requested = version.unwrap_or_default();
        return Err(DemoError::unsupported_version(
            requested,
            &[STATELESS_VERSION],
        ));
    }
    shop.record(|seen| seen.last_client_info = Some(meta.to_raw()));
    Ok(())
}

fn check_header_arguments(
    shop: &Shop,
    asked: &DemoRequest,
    params: &RawObject<'_>,
    tool: &str,
    headers: &HeaderMap,
) -> Result<(), DemoError> {
    let offer = shop.tool_pages();
    let marked = offer.header_arguments(tool).unwrap_or_default();
    if asked.method != "tools/call" || marked.is_empty() {
        return Ok(());
    }
    let arguments = value(params, "arguments");
    let differs = header_arguments::mismatch(marked, &arguments, |header| text(headers, header));
    differs.map_or(Ok(()), |header| Err(mismatch(header)))
}

fn mismatch(header: &str) -> DemoError {
    DemoError::new(
        -32020,
        format!("the header `{header}` contradicts the body"),
    )
}

/// The text of a header, decoded from base64; `None` if it is absent, occurs twice, or is not text.
fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut all = headers.get_all(name).iter();
    let value = all.next()?.to_str().ok()?;
    if all.next().is_some() {
        return None;
    }
    let wrapped = value.strip_prefix("=?base64?");
    match wrapped.and_then(|wrapped| wrapped.strip_suffix("?=")) {
        Some(wrapped) => String::from_utf8(STANDARD.decode(wrapped).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}
