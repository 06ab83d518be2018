//! How a client describes itself to servers.

use std::sync::Arc;

use serde_json::value::RawValue;

/// A client's description of itself: its own, or that of the agent it represents.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    /// Its capabilities, an object.
    pub capabilities: Arc<RawValue>,
    /// Its name and version, an object.
    pub info: Arc<RawValue>,
}

impl Default for ClientInfo {
    /// This program, without any client capabilities.
    fn default() -> Self {
        let info = concat!(
            r#"{"name":"toolwarden","version":""#,
            env!("CARGO_PKG_VERSION"),
            r#""}"#
        );
        Self {
            capabilities: raw("{}").into(),
            info: raw(info).into(),
        }
    }
}

fn raw(text: &str) -> Box<RawValue> {
    // The texts above are valid JSON.
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_client_info_is_valid() {
        let client_info = ClientInfo::default();
        assert_eq!(client_info.capabilities.get(), "{}");
        assert_eq!(
            client_info.info.get(),
            format!(
                r#"{{"name":"toolwarden","version":"{}"}}"#,
                env!("CARGO_PKG_VERSION")
            )
        );
    }
}
