//! What a request of the stateless era must say of itself.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolwarden_mcp::Members;

use super::answer::{Asked, value};
use super::marks;
use super::opening::STATELESS_VERSION;
use super::page::Refusal;
use super::shop::Shop;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// Whether a request names a protocol version of its own.
pub(super) fn is_stateless(params: &Members<'_>) -> bool {
    let meta = params.object("_meta");
    meta.is_some_and(|meta| meta.get(VERSION_KEY).is_some())
}

/// Refuses a request that says too little of itself, or whose headers say something else. Over
/// standard streams there are no headers.
pub(super) fn check(
    shop: &Shop,
    asked: &Asked,
    headers: Option<&HeaderMap>,
) -> Result<(), Refusal> {
    let params = Members::of_optional(asked.params.as_deref());
    let meta = params.object("_meta").unwrap_or_default();
    for key in [VERSION_KEY, CAPABILITIES_KEY] {
        if meta.get(key).is_none() {
            return Err(Refusal::invalid(format!("`_meta` lacks `{key}`")));
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
            check_marks(shop, asked, &params, &name, headers)?;
        }
    }
    if version != Some(STATELESS_VERSION) {
        let requested = version.unwrap_or_default();
        return Err(Refusal::unsupported_version(
            requested,
            &[STATELESS_VERSION],
        ));
    }
    shop.note(|seen| seen.face = Some(meta.to_raw()));
    Ok(())
}

fn check_marks(
    shop: &Shop,
    asked: &Asked,
    params: &Members<'_>,
    tool: &str,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let offer = shop.offer();
    let marked = offer.marks(tool).unwrap_or_default();
    if asked.method != "tools/call" || marked.is_empty() {
        return Ok(());
    }
    let arguments = value(params, "arguments");
    let differs = marks::mismatch(marked, &arguments, |header| text(headers, header));
    differs.map_or(Ok(()), |header| Err(mismatch(header)))
}

fn mismatch(header: &str) -> Refusal {
    Refusal::new(
        -32020,
        format!("the header `{header}` does not say what the body says"),
    )
}

/// A header's text, unwrapped from base64; none if it is absent, twice there, or no text.
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
