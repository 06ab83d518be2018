use toolwarden_mcp::ClientInfo;

use super::LinkKey;

/// Over which link a request goes, and for which principal.
#[derive(Clone, Copy, Debug)]
pub struct LinkRoute<'a> {
    /// The link, which is opened if necessary.
    pub key: &'a LinkKey,
    /// How the client describes itself where the link is opened.
    pub client_info: &'a ClientInfo,
    /// The principal that the request is sent for; `None` is the gateway itself.
    pub principal: Option<&'a str>,
    /// Whether a request that stays open keeps the link open with it.
    pub keeps_link_open: bool,
}

impl<'a> LinkRoute<'a> {
    /// The route of a request of the gateway itself.
    #[must_use]
    pub const fn new(key: &'a LinkKey, client_info: &'a ClientInfo) -> Self {
        Self {
            key,
            client_info,
            principal: None,
            keeps_link_open: true,
        }
    }
}
