//! How agents are greeted: `initialize` and `server/discover`.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolwarden_guard::RequestedGroups;
use toolwarden_mcp::codes::{INTERNAL_ERROR, INVALID_PARAMS};
use toolwarden_mcp::serve::handshake::{SERVED_VERSIONS, version_for};
use toolwarden_mcp::{Era, Face, Members, RpcError, ServerDescription};
use toolwarden_warden::guard::{Call, CallerClaims};

use super::asked::{Asked, SESSION_KEY, STATE_KEY, groups_in};
use super::denial::denied;
use super::extensions::advertised;
use super::{Gateway, Reply};
use crate::agent::{Agent, nothing};
use crate::catalogue::{Client, ClientVariant, ListError, Shelf};
use crate::conversation::{Conversation, Opened};
use crate::upstream::{LinkKey, UpstreamError};
use toolwarden_warden::settings::DenialForm;

/// A conversation that was begun, and what its agent is told.
#[derive(Debug)]
pub struct Initialized {
    /// The conversation.
    pub conversation: Arc<Conversation>,
    /// The text of the result.
    pub result: String,
}

/// The longest name of a session, and the most that an agent may say of itself and of what it can do: all are
/// kept for as long as the conversation.
const LONGEST_NAME: usize = 256;
const LONGEST_INFO: usize = 16 * 1024;
const LONGEST_CAPABILITIES: usize = 16 * 1024;

/// The name an agent gives its session.
fn session_name(members: &Members<'_>, face: &Face) -> Result<Option<Arc<str>>, RpcError> {
    let meta = members.object("_meta");
    let named = meta.as_ref().and_then(|meta| meta.text(SESSION_KEY));
    let refused = |what: &str, most: usize| RpcError {
        code: INVALID_PARAMS,
        message: format!("{what} is longer than {most} bytes"),
        data: None,
    };
    if named.as_ref().is_some_and(|it| it.len() > LONGEST_NAME) {
        return Err(refused("the name of the session", LONGEST_NAME));
    }
    if face.info.get().len() > LONGEST_INFO {
        return Err(refused("what is said of the client", LONGEST_INFO));
    }
    if face.capabilities.get().len() > LONGEST_CAPABILITIES {
        return Err(refused(
            "what is said of capabilities",
            LONGEST_CAPABILITIES,
        ));
    }
    Ok(named.map(|it| Arc::from(&*it)))
}

impl Gateway {
    /// Begins a conversation of the handshake era.
    ///
    /// # Errors
    /// The agent says nothing usable of itself, asks for groups that are not its own, or there is no
    /// room.
    pub async fn initialize(
        &self,
        principal: &Arc<str>,
        claims: Option<&Arc<CallerClaims>>,
        params: Option<&RawValue>,
        groups: Option<RequestedGroups>,
    ) -> Result<Initialized, RpcError> {
        let members = Members::of_optional(params);
        let agent = Agent::introduced(&members)?;
        let named = session_name(&members, &agent.face)?;
        let meta = members.object("_meta");
        let groups = match groups {
            Some(groups) => Some(groups),
            None => groups_in(meta.as_ref())?,
        };
        let state = meta.as_ref().and_then(|meta| meta.text(STATE_KEY));
        if let Some(shelf) = self.transparent() {
            // The one server is told who speaks, so that it offers what this agent can use.
            let reached = self.reach(&shelf, &agent).await;
            reached.map_err(|error| unavailable(&error))?;
        }
        let id = new_id()?;
        let session = named.unwrap_or_else(|| Arc::clone(&id));
        let with = Opened {
            principal: Arc::clone(principal),
            session: Some(session),
            groups: groups.clone(),
            agent: agent.clone(),
        };
        // Before the conversation begins, so that it is not told of changes it never saw.
        let descriptions = self.descriptions(&agent).await;
        let conversation = self.open_conversation(id, with, claims, state.as_deref())?;
        let opened = Call {
            principal: &conversation.principal,
            session: conversation.session.as_deref(),
            groups: conversation.groups.clone(),
            claims: claims.map(|claims| &**claims),
            ..Call::default()
        };
        let reaches = |shelf: &Shelf| self.may_use_any(&opened, shelf);
        let (info, instructions) = self.introduction(&descriptions, reaches);
        let mut result = json!({
            "protocolVersion": agent.version,
            "capabilities": capabilities(&descriptions),
            "serverInfo": info,
        });
        if let (Some(text), Value::Object(result)) = (instructions, &mut result) {
            result.insert("instructions".to_owned(), text.into());
        }
        Ok(Initialized {
            conversation,
            result: result.to_string(),
        })
    }

    /// The conversation of a stateless request: by the name it gives, else the principal's own.
    ///
    /// # Errors
    /// There is no room.
    pub fn stateless_conversation(
        &self,
        principal: &Arc<str>,
        params: Option<&RawValue>,
        agent: &Agent,
    ) -> Result<Arc<Conversation>, RpcError> {
        let members = Members::of_optional(params);
        let named = session_name(&members, &agent.face)?;
        // Capabilities are part of the name: a server's session has those it was opened with.
        let face = agent.face.capabilities.get();
        let id = format!(
            "stateless\u{0}{principal}\u{0}{}\u{0}{face}",
            named.as_deref().unwrap_or_default()
        );
        if let Some(known) = self.shared.conversations.find(&id, self.now()) {
            return Ok(known);
        }
        let with = Opened {
            principal: Arc::clone(principal),
            session: named,
            // Every request of this era asks for its own.
            groups: None,
            agent: agent.clone(),
        };
        let opened = self.shared.conversations.open(id.into(), with, self.now());
        opened.map_err(|error| internal(&error.to_string()))
    }

    fn open_conversation(
        &self,
        id: Arc<str>,
        with: Opened,
        claims: Option<&Arc<CallerClaims>>,
        state: Option<&str>,
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
            return Err(match denied(&denial, DenialForm::RpcError) {
                Reply::Error(error) => error,
                Reply::Result(_) | Reply::Nothing => internal(&denial.reason),
            });
        }
        let opened = self.shared.conversations.open(id, with, self.now());
        opened.map_err(|error| internal(&error.to_string()))
    }

    /// Answers `server/discover`.
    pub(super) async fn discover(&self, asked: &Asked) -> Reply {
        if let Some(shelf) = self.transparent()
            && let Err(error) = self.reach(&shelf, &asked.agent).await
        {
            return Reply::Error(unavailable(&error));
        }
        let descriptions = self.descriptions(&asked.agent).await;
        let reaches = |shelf: &Shelf| self.reaches(asked, shelf);
        let (info, instructions) = self.introduction(&descriptions, reaches);
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": SERVED_VERSIONS,
            "capabilities": capabilities(&descriptions),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": info},
        });
        if let (Some(text), Value::Object(result)) = (instructions, &mut result) {
            result.insert("instructions".to_owned(), text.into());
        }
        Reply::Result(result.to_string())
    }

    /// Reaches the only server for its only agent.
    async fn reach(&self, shelf: &Arc<Shelf>, agent: &Agent) -> Result<(), UpstreamError> {
        let upstream = &shelf.upstream;
        if self.shared.alone {
            upstream.speak_as(&agent.face, agent.era);
        }
        let face = upstream.face();
        upstream.link(&LinkKey::Main, &face).await.map(drop)
    }

    /// What servers say of themselves to agents of an era, in written order. Those that are starting are
    /// waited for as long as a list would be.
    async fn descriptions(&self, agent: &Agent) -> Vec<(Arc<Shelf>, Arc<ServerDescription>)> {
        let shelves = self.shelves();
        let mut found = Vec::with_capacity(shelves.len());
        let mut waiting = Vec::new();
        for shelf in shelves.iter() {
            let (gateway, shelf) = (self.clone(), Arc::clone(shelf));
            let (looked, presented) = (Arc::clone(&shelf), agent.clone());
            let look = async move { gateway.described(&looked, &presented).await };
            waiting.push((Arc::clone(&shelf), shelf.wait_for(look)));
        }
        for (shelf, look) in waiting {
            drop(look.await);
            let description = shelf.upstream.description_for(agent.era);
            found.extend(description.map(|description| (shelf, description)));
        }
        found
    }

    /// Finds out what a server says of itself to an agent.
    async fn described(&self, shelf: &Arc<Shelf>, agent: &Agent) -> Result<(), ListError> {
        // The first look pins what there is, so that what is said here is checked, too.
        self.look_at(shelf, None).await?;
        let client = Client {
            conversation: &Arc::default(),
            variant: &ClientVariant::of(&agent.face.capabilities),
            agent,
        };
        // Finding the agent's view finds out which eras the server speaks.
        shelf.list_sight(client).await.map(drop)
    }

    /// Who the gateway says it is, and what it tells models: of one server what that server says, of
    /// several all of it. What drifted is not told, nor anything of a server that the agent may not use.
    fn introduction(
        &self,
        descriptions: &[(Arc<Shelf>, Arc<ServerDescription>)],
        reaches: impl Fn(&Shelf) -> bool,
    ) -> (Value, Option<String>) {
        let ours = json!({"name": "toolwarden", "version": env!("CARGO_PKG_VERSION")});
        let told = descriptions
            .iter()
            .filter(|(shelf, _)| shelf.tells_instructions() && reaches(shelf));
        if self.transparent().is_some()
            && let [(_, only)] = descriptions
        {
            let info = only.info.as_ref();
            let info = info.and_then(|it| serde_json::from_str(it.get()).ok());
            let text = told
                .filter_map(|(shelf, _)| checked_instructions(shelf))
                .next();
            return (info.unwrap_or(ours), text);
        }
        let texts: Vec<String> = told
            .filter_map(|(shelf, _)| {
                let text = checked_instructions(shelf)?;
                Some(format!("# {}\n\n{text}", shelf.upstream.name()))
            })
            .collect();
        (ours, (!texts.is_empty()).then(|| texts.join("\n\n")))
    }
}

impl Agent {
    /// An agent as `initialize` introduces it.
    fn introduced(params: &Members<'_>) -> Result<Self, RpcError> {
        let invalid = |text: &str| RpcError {
            code: INVALID_PARAMS,
            message: text.to_owned(),
            data: None,
        };
        let asked = params
            .text("protocolVersion")
            .ok_or_else(|| invalid("params.protocolVersion is no string"))?;
        let member = |key: &str| {
            let text = params.get(key).filter(|text| text.starts_with('{'))?;
            RawValue::from_string(text.to_owned()).ok()
        };
        Ok(Self {
            era: Era::Handshake,
            version: version_for(&asked).to_owned(),
            face: Face {
                capabilities: member("capabilities").unwrap_or_else(nothing).into(),
                info: member("clientInfo")
                    .ok_or_else(|| invalid("params.clientInfo is missing"))?
                    .into(),
            },
            log_level: None,
        })
    }
}

/// What a server tells models, as it was checked: over the main link, whatever it says over others.
fn checked_instructions(shelf: &Shelf) -> Option<String> {
    shelf.upstream.description()?.instructions.clone()
}

/// What all servers together can do. Tools change with every state, so that agents are told.
fn capabilities(descriptions: &[(Arc<Shelf>, Arc<ServerDescription>)]) -> Value {
    let mut all = Map::new();
    for (_, description) in descriptions {
        let said = description.capabilities.as_ref();
        let said = said.and_then(|it| serde_json::from_str::<Value>(it.get()).ok());
        if let Some(Value::Object(said)) = said {
            unite(&mut all, said);
        }
    }
    if let Some(Value::Object(extensions)) = all.remove("extensions") {
        let extensions = advertised(descriptions, extensions);
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

fn unite(all: &mut Map<String, Value>, said: Map<String, Value>) {
    for (key, value) in said {
        match (all.get_mut(&key), value) {
            (Some(Value::Object(held)), Value::Object(more)) => unite(held, more),
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
    getrandom::fill(&mut bytes).map_err(|error| internal(&error.to_string()))?;
    let id = bytes.iter().map(|byte| format!("{byte:02x}"));
    Ok(id.collect::<String>().into())
}

fn internal(message: &str) -> RpcError {
    RpcError {
        code: INTERNAL_ERROR,
        message: message.to_owned(),
        data: None,
    }
}

fn unavailable(error: &UpstreamError) -> RpcError {
    match super::denial::unavailable(error) {
        Reply::Error(error) => error,
        Reply::Result(_) | Reply::Nothing => internal(&error.to_string()),
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
                unite(&mut all, said);
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
