//! How a conversation with the shop begins.

use serde_json::Value;
use toolwarden_mcp::{Era, Members};

use super::answer::{Asked, value};
use super::page::{INFO, Refusal, complete, listed};
use super::shop::{Eras, Shop};

/// The version of the stateless era.
pub(super) const STATELESS_VERSION: &str = "2026-07-28";
/// The versions of the handshake era, newest first.
const HANDSHAKE_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const INSTRUCTIONS: &str = "Search for an order before you refund it.";
const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{},"experimental":{"shop.example/desk":{"since":2}}}"#;

/// Opens a session of the handshake era.
pub(super) fn initialize(shop: &Shop, asked: &Asked) -> Result<String, Refusal> {
    let params = Members::of_optional(asked.params.as_deref());
    let wanted = params
        .text("protocolVersion")
        .ok_or_else(|| Refusal::invalid("`protocolVersion` is missing"))?;
    if shop.options().eras == Eras::Stateless {
        return Err(Refusal::unsupported_version(&wanted, &[STATELESS_VERSION]));
    }
    let [newest, ..] = HANDSHAKE_VERSIONS;
    let known = HANDSHAKE_VERSIONS.iter().find(|it| **it == wanted);
    let version = known.copied().unwrap_or(newest);
    shop.open_session(&asked.session, value(&params, "capabilities"));
    shop.note(|seen| seen.face.clone_from(&asked.params));
    let members = format!(
        r#""protocolVersion":"{version}","capabilities":{CAPABILITIES},"serverInfo":{INFO},"instructions":"{INSTRUCTIONS}""#
    );
    Ok(complete(Era::Handshake, &members))
}

/// Tells a client of the stateless era what there is.
pub(super) fn discover(shop: &Shop) -> String {
    let mut versions = vec![STATELESS_VERSION];
    if shop.options().eras == Eras::Both {
        versions.extend(HANDSHAKE_VERSIONS);
    }
    let versions = Value::from(versions);
    let members = format!(
        r#""supportedVersions":{versions},"capabilities":{CAPABILITIES},"instructions":"{INSTRUCTIONS}""#
    );
    listed(Era::Stateless, &members)
}
