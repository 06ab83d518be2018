//! What a client says of itself.

use std::sync::Arc;

use serde_json::value::RawValue;

/// What a client tells servers of itself: its own words, or those of the agent it speaks for.
#[derive(Debug, Clone)]
pub struct Face {
    /// What it can do for a server, an object.
    pub capabilities: Arc<RawValue>,
    /// Its name and version, an object.
    pub info: Arc<RawValue>,
}

impl Default for Face {
    /// This program, which can do nothing for a server.
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
    // The texts above are JSON.
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_a_face() {
        let face = Face::default();
        assert_eq!(face.capabilities.get(), "{}");
        assert_eq!(
            face.info.get(),
            format!(
                r#"{{"name":"toolwarden","version":"{}"}}"#,
                env!("CARGO_PKG_VERSION")
            )
        );
    }
}
