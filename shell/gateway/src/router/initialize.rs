//! Answers `initialize` and `server/discover`.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolwarden_guard::RequestedGroups;
use toolwarden_live_guard::{Call, CallerClaims};
use toolwarden_mcp::error_codes::{INTERNAL_ERROR, INVALID_PARAMS};
use toolwarden_mcp::serve::versions::{SERVED_VERSIONS, negotiate_version};
use toolwarden_mcp::{ClientInfo, Era, RawObject, RpcError, ServerDescription};
use toolwarden_model::StateName;

use super::error_replies::denied_reply;
use super::extensions::advertised_extensions;
use super::{Gateway, RpcReply};
use crate::agent_info::{Agent, empty_object};
use crate::catalog::{CatalogClient, ClientVariant, ListError, ServerCatalog};
use crate::conversation::{Conversation, NewConversation};
use crate::request_context::{RequestContext, SESSION_KEY, groups_from_meta, state_from_meta};
use crate::upstream::{LinkKey, UpstreamError};
use toolwarden_settings::DenialForm;

/// A conversation that was opened, and the result for its agent.
#[derive(Debug)]
pub struct InitializeOutcome {
    /// The conversation.
    pub conversation: Arc<Conversation>,
    /// The text of the result.
    pub result: String,
}

/// The longest name of a session, and the largest description that an agent may give of itself and its
/// capabilities: the gateway stores them for as long as the conversation lasts.
const MAX_NAME_BYTES: usize = 256;
const MAX_INFO_BYTES: usize = 16 * 1024;
const MAX_CAPABILITIES_BYTES: usize = 16 * 1024;

/// The name an agent gives its session.
fn session_name(
    members: &RawObject<'_>,
    client_info: &ClientInfo,
) -> Result<Option<Arc<str>>, RpcError> {
    let meta = members.object("_meta");
    let named = meta.as_ref().and_then(|meta| meta.text(SESSION_KEY));
    let refused = |what: &str, most: usize| RpcError {
        code: INVALID_PARAMS,
        message: format!("{what} is longer than {most} bytes"),
        data: None,
    };
    if named.as_ref().is_some_and(|it| it.len() > MAX_NAME_BYTES) {
        return Err(refused("the name of the session", MAX_NAME_BYTES));
    }
    if client_info.info.get().len() > MAX_INFO_BYTES {
        return Err(refused("`clientInfo`", MAX_INFO_BYTES));
    }
    if client_info.capabilities.get().len() > MAX_CAPABILITIES_BYTES {
        return Err(refused("`capabilities`", MAX_CAPABILITIES_BYTES));
    }
    Ok(named.map(|it| Arc::from(&*it)))
}

impl Gateway {
    /// Opens a conversation of the handshake era.
    ///
    /// # Errors
    /// The agent's description of itself is invalid, it requests groups that it may not request, or there are too
    /// many conversations.
    pub async fn initialize(
        &self,
        principal: &Arc<str>,
        claims: Option<&Arc<CallerClaims>>,
        params: Option<&RawValue>,
        groups: Option<RequestedGroups>,
    ) -> Result<InitializeOutcome, RpcError> {
        let members = RawObject::parse_optional(params);
        let agent = Agent::from_initialize(&members)?;
        let named = session_name(&members, &agent.client_info)?;
        let meta = members.object("_meta");
        let groups = match groups {
            Some(groups) => Some(groups),
            None => groups_from_meta(meta.as_ref())?,
        };
        let state = meta.as_ref().and_then(state_from_meta);
        if let Some(catalog) = self.transparent_server() {
            // The gateway presents the agent to the only server, which then offers what this agent can use.
            let reached = self.connect_single_server(&catalog, &agent).await;
            reached.map_err(|error| unavailable_error(&error))?;
        }
        let id = new_id()?;
        let session = named.unwrap_or_else(|| Arc::clone(&id));
        let with = NewConversation {
            principal: Arc::clone(principal),
            session: Some(session),
            groups: groups.clone(),
            agent: agent.clone(),
        };
        // Before the conversation begins, so that it is not notified of changes to lists that it never saw.
        let descriptions = self.descriptions(&agent).await;
        let conversation = self.open_conversation(id, with, claims, state.as_ref())?;
        let opened = Call {
            principal: &conversation.principal,
            session: conversation.session.as_deref(),
            groups: conversation.groups.clone(),
            claims: claims.map(|claims| &**claims),
            ..Call::default()
        };
        let reaches = |catalog: &ServerCatalog| self.may_use_any(&opened, catalog);
        let (info, instructions) = self.server_info(&descriptions, reaches);
        let mut result = json!({
            "protocolVersion": agent.version,
            "capabilities": merged_capabilities(&descriptions),
            "serverInfo": info,
        });
        if let (Some(text), Value::Object(result)) = (instructions, &mut result) {
            result.insert("instructions".to_owned(), text.into());
        }
        Ok(InitializeOutcome {
            conversation,
            result: result.to_string(),
        })
    }

    /// The conversation of a stateless request: by the session name it sends, otherwise the principal's own.
    ///
    /// # Errors
    /// There are too many conversations.
    pub fn stateless_conversation(
        &self,
        principal: &Arc<str>,
        params: Option<&RawValue>,
        agent: &Agent,
    ) -> Result<Arc<Conversation>, RpcError> {
        let members = RawObject::parse_optional(params);
        let named = session_name(&members, &agent.client_info)?;
        // Capabilities are part of the name, because a server session keeps those it was opened with.
        let client_info = agent.client_info.capabilities.get();
        let id = format!(
            "stateless\u{0}{principal}\u{0}{}\u{0}{client_info}",
            named.as_deref().unwrap_or_default()
        );
        if let Some(known) = self.shared.conversations.find(&id, self.now()) {
            return Ok(known);
        }
        let with = NewConversation {
            principal: Arc::clone(principal),
            session: named,
            // Every request of this era names its own groups.
            groups: None,
            agent: agent.clone(),
        };
        let opened = self.shared.conversations.open(id.into(), with, self.now());
        opened.map_err(|error| internal_error(&error.to_string()))
    }

    fn open_conversation(
        &self,
        id: Arc<str>,
        with: NewConversation,
        claims: Option<&Arc<CallerClaims>>,
        state: Option<&StateName>,
    ) -> Result<Arc<Conversation>, RpcError> {
        let call = Call {
            principal: &with.principal,
            session: with.session.as_deref(),
            groups: with.groups.clone(),
            state,
            claims: claims.map(|claims| &**claims),
            ..Call::default()
        };
        if let Err(denial) = self.shared.guard.open_session(&call) {
            return Err(match denied_reply(&denial, DenialForm::RpcError) {
                RpcReply::Error(error) => error,
                RpcReply::Result(_) | RpcReply::NoReply => internal_error(&denial.reason),
            });
        }
        let opened = self.shared.conversations.open(id, with, self.now());
        opened.map_err(|error| internal_error(&error.to_string()))
    }

    /// Answers `server/discover`.
    pub(super) async fn discover(&self, context: &RequestContext) -> RpcReply {
        if let Some(catalog) = self.transparent_server()
            && let Err(error) = self.connect_single_server(&catalog, &context.agent).await
        {
            return RpcReply::Error(unavailable_error(&error));
        }
        let descriptions = self.descriptions(&context.agent).await;
        let reaches = |catalog: &ServerCatalog| self.may_reach_server(context, catalog);
        let (info, instructions) = self.server_info(&descriptions, reaches);
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": SERVED_VERSIONS,
            "capabilities": merged_capabilities(&descriptions),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": info},
        });
        if let (Some(text), Value::Object(result)) = (instructions, &mut result) {
            result.insert("instructions".to_owned(), text.into());
        }
        RpcReply::Result(result.to_string())
    }

    /// Connects to the only server for its only agent.
    async fn connect_single_server(
        &self,
        catalog: &Arc<ServerCatalog>,
        agent: &Agent,
    ) -> Result<(), UpstreamError> {
        let upstream = &catalog.upstream;
        if self.shared.alone {
            upstream.set_client_info(&agent.client_info, agent.era);
        }
        let client_info = upstream.client_info();
        upstream.link(&LinkKey::Main, &client_info).await.map(drop)
    }

    /// How servers describe themselves to agents of an era, in the order of the settings. Waits for starting servers
    /// as long as it would for a list.
    async fn descriptions(
        &self,
        agent: &Agent,
    ) -> Vec<(Arc<ServerCatalog>, Arc<ServerDescription>)> {
        let catalogs = self.server_catalogs();
        let mut found = Vec::with_capacity(catalogs.len());
        let mut waiting = Vec::new();
        for catalog in catalogs.iter() {
            let (gateway, catalog) = (self.clone(), Arc::clone(catalog));
            let (looked, presented) = (Arc::clone(&catalog), agent.clone());
            let look = async move { gateway.fetch_description(&looked, &presented).await };
            waiting.push((Arc::clone(&catalog), catalog.with_list_timeout(look)));
        }
        for (catalog, look) in waiting {
            drop(look.await);
            let description = catalog.upstream.description_for(agent.era);
            found.extend(description.map(|description| (catalog, description)));
        }
        found
    }

    /// Finds out how a server describes itself to an agent.
    async fn fetch_description(
        &self,
        catalog: &Arc<ServerCatalog>,
        agent: &Agent,
    ) -> Result<(), ListError> {
        // The first listing pins the server's description, too, so that it is checked from then on.
        self.refresh_tools(catalog, None).await?;
        let client = CatalogClient {
            conversation: &Arc::default(),
            variant: &ClientVariant::from_capabilities(&agent.client_info.capabilities),
            agent,
        };
        // Determining the agent's view finds out which eras the server speaks.
        catalog.list_view(client).await.map(drop)
    }

    /// The gateway's `serverInfo` and instructions: those of the only server, or the instructions of several servers
    /// together. Drifted instructions are left out, and so are those of servers that the agent may not use.
    fn server_info(
        &self,
        descriptions: &[(Arc<ServerCatalog>, Arc<ServerDescription>)],
        reaches: impl Fn(&ServerCatalog) -> bool,
    ) -> (Value, Option<String>) {
        let ours = json!({"name": "toolwarden", "version": env!("CARGO_PKG_VERSION")});
        let told = descriptions
            .iter()
            .filter(|(catalog, _)| catalog.serves_instructions() && reaches(catalog));
        if self.transparent_server().is_some()
            && let [(_, only)] = descriptions
        {
            let info = only.info.as_ref();
            let info = info.and_then(|it| serde_json::from_str(it.get()).ok());
            let text = told
                .filter_map(|(catalog, _)| checked_instructions(catalog))
                .next();
            return (info.unwrap_or(ours), text);
        }
        let texts: Vec<String> = told
            .filter_map(|(catalog, _)| {
                let text = checked_instructions(catalog)?;
                Some(format!("# {}\n\n{text}", catalog.upstream.name()))
            })
            .collect();
        (ours, (!texts.is_empty()).then(|| texts.join("\n\n")))
    }
}

impl Agent {
    /// An agent as `initialize` describes it.
    fn from_initialize(params: &RawObject<'_>) -> Result<Self, RpcError> {
        let invalid = |text: &str| RpcError {
            code: INVALID_PARAMS,
            message: text.to_owned(),
            data: None,
        };
        let requested_version = params
            .text("protocolVersion")
            .ok_or_else(|| invalid("params.protocolVersion is not a string"))?;
        let member = |key: &str| {
            let text = params.get(key).filter(|text| text.starts_with('{'))?;
            RawValue::from_string(text.to_owned()).ok()
        };
        Ok(Self {
            era: Era::Handshake,
            version: negotiate_version(&requested_version).to_owned(),
            client_info: ClientInfo {
                capabilities: member("capabilities").unwrap_or_else(empty_object).into(),
                info: member("clientInfo")
                    .ok_or_else(|| invalid("params.clientInfo is missing"))?
                    .into(),
            },
            log_level: None,
        })
    }
}

/// The checked instructions of a server: those of the main link, whatever other links return.
fn checked_instructions(catalog: &ServerCatalog) -> Option<String> {
    catalog.upstream.description()?.instructions.clone()
}

/// The combined capabilities of all servers. Tools change with the workflow state, so `listChanged` is always set.
fn merged_capabilities(descriptions: &[(Arc<ServerCatalog>, Arc<ServerDescription>)]) -> Value {
    let mut all = Map::new();
    for (_, description) in descriptions {
        let said = description.capabilities.as_ref();
        let said = said.and_then(|it| serde_json::from_str::<Value>(it.get()).ok());
        if let Some(Value::Object(said)) = said {
            merge_capabilities(&mut all, said);
        }
    }
    if let Some(Value::Object(extensions)) = all.remove("extensions") {
        let extensions = advertised_extensions(descriptions, extensions);
        if !extensions.is_empty() {
            all.insert("extensions".to_owned(), Value::Object(extensions));
        }
    }
    let tools = all.entry("tools").or_insert_with(|| json!({}));
    if let Value::Object(tools) = tools {
        tools.insert("listChanged".to_owned(), Value::Bool(true));
    }
    Value::Object(all)
}

fn merge_capabilities(all: &mut Map<String, Value>, said: Map<String, Value>) {
    for (key, value) in said {
        match (all.get_mut(&key), value) {
            (Some(Value::Object(held)), Value::Object(more)) => merge_capabilities(held, more),
            (Some(held @ Value::Bool(false)), value) => *held = value,
            (Some(_), _) => {}
            (None, value) => {
                all.insert(key, value);
            }
        }
    }
}

fn new_id() -> Result<Arc<str>, RpcError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| internal_error(&error.to_string()))?;
    let id = bytes.iter().map(|byte| format!("{byte:02x}"));
    Ok(id.collect::<String>().into())
}

fn internal_error(message: &str) -> RpcError {
    RpcError {
        code: INTERNAL_ERROR,
        message: message.to_owned(),
        data: None,
    }
}

fn unavailable_error(error: &UpstreamError) -> RpcError {
    match super::error_replies::unavailable_reply(error) {
        RpcReply::Error(error) => error,
        RpcReply::Result(_) | RpcReply::NoReply => internal_error(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_united() {
        let mut all = Map::new();
        for said in [
            json!({"resources": {"subscribe": false}, "prompts": {}}),
            json!({"resources": {"subscribe": true, "listChanged": true}, "logging": {}}),
        ] {
            if let Value::Object(said) = said {
                merge_capabilities(&mut all, said);
            }
        }
        assert_eq!(
            Value::Object(all),
            json!({
                "resources": {"subscribe": true, "listChanged": true},
                "prompts": {},
                "logging": {},
            })
        );
    }
}
