//! Opens a conversation with the shop.

use serde_json::Value;
use toolwarden_mcp::{Era, RawObject};

use super::messages::{DemoError, INFO, cacheable_result, complete_result};
use super::request::{DemoRequest, value};
use super::shop::{Shop, SupportedEras};

/// The version of the stateless era.
pub(super) const STATELESS_VERSION: &str = "2026-07-28";
/// The versions of the handshake era, newest first.
const HANDSHAKE_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const INSTRUCTIONS: &str = "Search for an order before you refund it.";
const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{},"experimental":{"shop.example/desk":{"since":2}}}"#;

/// Opens a session of the handshake era.
pub(super) fn initialize(shop: &Shop, asked: &DemoRequest) -> Result<String, DemoError> {
    let params = RawObject::parse_optional(asked.params.as_deref());
    let wanted = params
        .text("protocolVersion")
        .ok_or_else(|| DemoError::invalid("`protocolVersion` is missing"))?;
    if shop.options().eras == SupportedEras::Stateless {
        return Err(DemoError::unsupported_version(
            &wanted,
            &[STATELESS_VERSION],
        ));
    }
    let [newest, ..] = HANDSHAKE_VERSIONS;
    let known = HANDSHAKE_VERSIONS.iter().find(|it| **it == wanted);
    let version = known.copied().unwrap_or(newest);
    shop.open_session(&asked.session, value(&params, "capabilities"));
    shop.record(|seen| seen.last_client_info.clone_from(&asked.params));
    let members = format!(
        r#""protocolVersion":"{version}","capabilities":{CAPABILITIES},"serverInfo":{INFO},"instructions":"{INSTRUCTIONS}""#
    );
    Ok(complete_result(Era::Handshake, &members))
}

/// Describes the server to a client of the stateless era.
pub(super) fn discover(shop: &Shop) -> String {
    let mut versions = vec![STATELESS_VERSION];
    if shop.options().eras == SupportedEras::Both {
        versions.extend(HANDSHAKE_VERSIONS);
    }
    let versions = Value::from(versions);
    let members = format!(
        r#""supportedVersions":{versions},"capabilities":{CAPABILITIES},"instructions":"{INSTRUCTIONS}""#
    );
    cacheable_result(Era::Stateless, &members)
}
