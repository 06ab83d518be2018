//! Resources: which server an address belongs to, and what agents call it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use memchr::memmem;
use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_mcp::codes::{INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND};
use toolwarden_mcp::{Era, Members, RpcError};
use toolwarden_model::Fingerprint;

use super::asked::Asked;
use super::exchange::{Outgoing, forwarded};
use super::{EMPTY, Gateway, Reply};
use crate::catalogue::{Kind, List, Shelf, ToolItem};
use crate::uri_template;

/// How an address begins that says whose it is: the name of the server and the server's own address
/// follow.
const QUALIFIED: &str = "toolwarden://resource/";

/// Members of a tool's `_meta` that name the page by which its results are shown.
const PAGE_KEYS: [&str; 2] = ["ui/resourceUri", "openai/outputTemplate"];

/// A resource of a server.
pub(super) struct Address {
    pub(super) shelf: Arc<Shelf>,
    /// The server's own address.
    pub(super) uri: String,
    /// What a file of a skill digests to, as the skill's pinned entry says.
    digest: Option<String>,
}

/// Servers that an address may belong to.
type Owners = Vec<Arc<Shelf>>;

impl Gateway {
    pub(super) async fn read_resource(
        &self,
        asked: &Arc<Asked>,
        params: Option<&RawValue>,
    ) -> Reply {
        const METHOD: &str = "resources/read";
        if let Some(reply) = self.resumed(asked, METHOD, params, |_| true).await {
            return reply;
        }
        self.ask_owner(asked, METHOD, params).await
    }

    /// Puts a request about one resource to the server that owns it.
    pub(super) async fn ask_owner(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Reply {
        let members = Members::of_optional(params);
        let Some(shown) = members.text("uri") else {
            return Reply::error(INVALID_PARAMS, "params.uri is no string");
        };
        let Address { shelf, uri, digest } = match self.resource_at(asked, &shown).await {
            Ok(address) => address,
            // Methods of extensions know one code for whatever is wrong with their parameters.
            Err(Reply::Error(error)) if method != "resources/read" => {
                return Reply::Error(RpcError {
                    code: INVALID_PARAMS,
                    ..error
                });
            }
            Err(reply) => return reply,
        };
        let change = (*uri != *shown).then_some(("uri", &*uri));
        let params = forwarded(params, change).map(Cow::into_owned);
        let reply = self.ask_server(asked, shelf, method, params).await;
        match reply {
            Reply::Result(result)
                if method == "resources/read" && !has_digest(&result, digest.as_deref()) =>
            {
                let text = format!(
                    "the file `{shown}` is not the one its skill lists: its digest is another, so it is withheld"
                );
                Reply::error(INTERNAL_ERROR, text)
            }
            Reply::Result(result) if *uri != *shown => {
                Reply::Result(with_shown_uris(result, &uri, &shown))
            }
            reply => reply,
        }
    }

    /// The server that owns an address, and what it calls it. An address that only one server lists is
    /// that server's; one that none lists is asked for only where a template, a tool that the agent sees
    /// or an earlier answer refers to it.
    pub(super) async fn resource_at(
        &self,
        asked: &Arc<Asked>,
        shown: &str,
    ) -> Result<Address, Reply> {
        let (server, own) = match qualified_parts(shown) {
            Some((server, own)) if self.transparent().is_none() => (Some(server), own),
            _ => (None, shown),
        };
        let skills = self.skills_with(asked, own).await?;
        let digest_of = |owner: &Arc<Shelf>| {
            let of_owner = skills.iter().find(|(it, _)| Arc::ptr_eq(it, owner));
            of_owner.and_then(|(_, digest)| digest.clone())
        };
        let found = |shelf: Arc<Shelf>| Address {
            digest: digest_of(&shelf),
            uri: own.to_owned(),
            shelf,
        };
        if let Some(only) = self.transparent() {
            return Ok(found(only));
        }
        if let Some(server) = server {
            let shelf = self.shelf(server).filter(|shelf| !shelf.is_blocked());
            let shelf = shelf.ok_or_else(|| unknown_resource(shown, asked.agent.era))?;
            return Ok(found(shelf));
        }
        let mut owners = self.listing(asked, Kind::Resources, shown).await;
        if owners.is_empty() {
            owners = skills.iter().map(|(shelf, _)| Arc::clone(shelf)).collect();
        }
        if owners.is_empty() {
            owners = self.fitting_templates(asked, shown).await;
        }
        if owners.is_empty() {
            owners = self.referring_tools(asked, shown).await?;
        }
        // An answer may refer to what no list has, and says which one is meant of several.
        let referred = self.referred_owner(asked, shown);
        let is_owner = |it: &Arc<Shelf>| owners.iter().any(|owner| Arc::ptr_eq(owner, it));
        let referred = referred.filter(|it| owners.is_empty() || is_owner(it));
        if let Some(referred) = referred {
            owners = vec![referred];
        }
        match owners.as_slice() {
            [] => Err(unknown_resource(shown, asked.agent.era)),
            [owner] => Ok(found(Arc::clone(owner))),
            several => Err(ambiguous(shown, several, asked.agent.era)),
        }
    }

    /// The server whose template it is.
    pub(super) async fn template_at(
        &self,
        asked: &Arc<Asked>,
        shown: &str,
    ) -> Result<Address, Reply> {
        let owners = self.listing(asked, Kind::Templates, shown).await;
        match owners.as_slice() {
            [owner] => Ok(Address {
                shelf: Arc::clone(owner),
                uri: shown.to_owned(),
                digest: None,
            }),
            _ => self.resource_at(asked, shown).await,
        }
    }

    /// The server whose answer referred to an address in this conversation.
    fn referred_owner(&self, asked: &Asked, uri: &str) -> Option<Arc<Shelf>> {
        let server = asked.conversation.referred(uri)?;
        self.shelf(&server).filter(|shelf| !shelf.is_blocked())
    }

    /// The servers that list something under an address.
    async fn listing(&self, asked: &Arc<Asked>, kind: Kind, uri: &str) -> Owners {
        let lists = self.others_for(asked, kind).await;
        let has = |list: &List| list.items.iter().any(|item| *item.key == *uri);
        let owners = lists.iter().filter(|(_, list)| has(list));
        owners.map(|(shelf, _)| Arc::clone(shelf)).collect()
    }

    /// The servers whose skills have a file or a folder under an address, and the digest of the file.
    ///
    /// # Errors
    /// A skill that is withheld has it.
    async fn skills_with(
        &self,
        asked: &Arc<Asked>,
        uri: &str,
    ) -> Result<Vec<(Arc<Shelf>, Option<String>)>, Reply> {
        if !self.shelves().iter().any(|shelf| shelf.has(Kind::Skills)) {
            return Ok(Vec::new());
        }
        let lists = self.others_for(asked, Kind::Skills).await;
        let mut withheld = lists.iter().flat_map(|(_, list)| &list.withheld);
        if withheld.any(|skill| file_of(&skill.text, uri).is_some()) {
            let text = format!(
                "`{uri}` belongs to a skill that changed since it was pinned; it is withheld until it is approved"
            );
            return Err(Reply::error(INVALID_PARAMS, text));
        }
        let owners = lists.iter().filter_map(|(shelf, list)| {
            let mut skills = list.items.iter();
            let digest = skills.find_map(|skill| file_of(&skill.text, uri))?;
            Some((Arc::clone(shelf), digest))
        });
        Ok(owners.collect())
    }

    /// The servers with a template that an address fits. Where several have one, the template that says
    /// most of the address counts.
    async fn fitting_templates(&self, asked: &Arc<Asked>, uri: &str) -> Owners {
        let lists = self.others_for(asked, Kind::Templates).await;
        let fitting = lists.iter().filter_map(|(shelf, list)| {
            let keys = list.items.iter().map(|item| &*item.key);
            let fitting = keys.filter(|key| uri_template::fits(key, uri));
            let said = fitting.map(uri_template::literal_length).max()?;
            Some((said, Arc::clone(shelf)))
        });
        let fitting: Vec<_> = fitting.collect();
        let most = fitting.iter().map(|(said, _)| *said).max();
        let fitting = fitting.into_iter().filter(|(said, _)| Some(*said) == most);
        fitting.map(|(_, shelf)| shelf).collect()
    }

    /// The servers with a tool that the agent sees and whose results are shown by this page.
    async fn referring_tools(&self, asked: &Arc<Asked>, uri: &str) -> Result<Owners, Reply> {
        let mut owners: Owners = Vec::new();
        for (shelf, tool) in self.visible_items(asked).await? {
            let known = owners.iter().any(|it| Arc::ptr_eq(it, &shelf));
            if !known && refers_to(&tool, uri) {
                owners.push(shelf);
            }
        }
        Ok(owners)
    }

    pub(super) async fn subscribe(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Reply {
        let members = Members::of_optional(params);
        let Some(shown) = members.text("uri") else {
            return Reply::error(INVALID_PARAMS, "params.uri is no string");
        };
        if method == "resources/unsubscribe" {
            let gone = asked.conversation.unsubscribe(&shown);
            let gone = gone.and_then(|(server, uri)| Some((self.shelf(&server)?, uri)));
            let Some((shelf, uri)) = gone else {
                return Reply::Result(EMPTY.to_owned());
            };
            return self.unwatch_resource(asked, &shelf, &uri).await;
        }
        match self.watch_resource(asked, &shown).await {
            Ok(()) => Reply::Result(EMPTY.to_owned()),
            Err(reply) => reply,
        }
    }

    /// Has the owner of a resource notify the agent of its changes.
    ///
    /// # Errors
    /// No server owns it, or its server refuses.
    pub(super) async fn watch_resource(
        &self,
        asked: &Arc<Asked>,
        shown: &str,
    ) -> Result<(), Reply> {
        let Address { shelf, uri, .. } = self.resource_at(asked, shown).await?;
        let ready = self
            .outgoing(asked, &shelf, "resources/subscribe", None)
            .await?;
        let server: Arc<str> = shelf.upstream.name().into();
        let conversation = &asked.conversation;
        if ready.looking.era == Era::Stateless {
            if !conversation.is_subscribed(&uri, &server) {
                let stream = self.listen_for_resource(&shelf, ready.looking, &uri).await;
                let stream = stream.ok_or_else(|| unknown_resource(shown, asked.agent.era))?;
                conversation.subscribe(shown, (server, &uri), Some(stream));
            }
            return Ok(());
        }
        let params = serde_json::value::to_raw_value(&serde_json::json!({"uri": uri})).ok();
        let outgoing = Outgoing { params, ..ready };
        match self.exchange_direct(asked, &outgoing, None).await {
            Ok(Ok(_)) => {
                conversation.subscribe(shown, (server, &uri), None);
                Ok(())
            }
            Ok(Err(error)) => Err(Reply::Error(error)),
            Err(error) => Err(super::denial::unavailable(&error)),
        }
    }

    /// Has a server notify no more of a resource that is unsubscribed already, whose stream has ended.
    pub(super) async fn unwatch_resource(
        &self,
        asked: &Arc<Asked>,
        shelf: &Arc<Shelf>,
        uri: &str,
    ) -> Reply {
        const METHOD: &str = "resources/unsubscribe";
        let params = serde_json::value::to_raw_value(&serde_json::json!({"uri": uri})).ok();
        let ready = self.outgoing(asked, shelf, METHOD, params.as_deref());
        match ready.await {
            Ok(ready) if ready.looking.era == Era::Stateless => Reply::Result(EMPTY.to_owned()),
            Ok(ready) => self.answer_of(asked, METHOD, ready).await,
            Err(reply) => reply,
        }
    }

    /// Remembers which resources an answer of a server refers to: the agent may read those, though no
    /// list has them.
    pub(super) fn note_references(&self, asked: &Asked, shelf: &Shelf, result: &str) {
        if self.transparent().is_some() {
            return;
        }
        let result = result.as_bytes();
        let refers = memmem::find(result, b"resource_link").is_some()
            || memmem::find(result, b"\"resource\"").is_some();
        if !refers {
            return;
        }
        let result: Value = serde_json::from_slice(result).unwrap_or_default();
        let content = result.get("content").into_iter();
        let messages = result.get("messages").and_then(Value::as_array);
        let messages = messages.into_iter().flatten();
        let contents = content.chain(messages.filter_map(|message| message.get("content")));
        let server: Arc<str> = shelf.upstream.name().into();
        for content in contents {
            let parts = content
                .as_array()
                .map_or(std::slice::from_ref(content), |it| it);
            for part in parts {
                let embedded = part.get("resource").unwrap_or(part);
                if let Some(uri) = embedded.get("uri").and_then(Value::as_str) {
                    asked.conversation.refer(uri, &server);
                }
            }
        }
    }
}

/// Addresses that several lists have; agents see them with the name of their server.
pub(super) fn shared_addresses(lists: &[(Arc<Shelf>, Arc<List>)]) -> BTreeSet<Arc<str>> {
    let mut seen: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut shared = BTreeSet::new();
    for (_, list) in lists {
        let own: BTreeSet<&Arc<str>> = list.items.iter().map(|item| &item.key).collect();
        for key in own {
            if !seen.insert(Arc::clone(key)) {
                shared.insert(Arc::clone(key));
            }
        }
    }
    shared
}

/// An address that says whose it is.
pub(super) fn qualified(server: &str, uri: &str) -> String {
    format!("{QUALIFIED}{server}/{uri}")
}

fn qualified_parts(shown: &str) -> Option<(&str, &str)> {
    shown.strip_prefix(QUALIFIED)?.split_once('/')
}

/// A result whose resource goes by the address the agent knows.
fn with_shown_uris(result: String, uri: &str, shown: &str) -> String {
    let Ok(mut members) = serde_json::from_str::<Members<'_>>(&result) else {
        return result;
    };
    let contents = members.get("contents");
    let contents = contents.and_then(|it| serde_json::from_str::<Vec<Box<RawValue>>>(it).ok());
    let Some(contents) = contents else {
        return result;
    };
    let renamed = contents.iter().map(|content| {
        let mut content = Members::of_optional(Some(content));
        if content.text("uri").as_deref() == Some(uri) {
            content.set("uri", Value::from(shown).to_string());
        }
        content.to_string()
    });
    let renamed: Vec<String> = renamed.collect();
    members.set("contents", format!("[{}]", renamed.join(",")));
    members.to_string()
}

/// Whether a skill has a file or a folder under an address, and the digest of the file where it says one.
fn file_of(skill: &RawValue, uri: &str) -> Option<Option<String>> {
    let skill: Value = serde_json::from_str(skill.get()).ok()?;
    let files = skill.get("resources").and_then(Value::as_array);
    let mut is_known = false;
    for file in files.into_iter().flatten().chain([&skill]) {
        let own = file.get("uri").and_then(Value::as_str).unwrap_or_default();
        if own == uri {
            is_known = true;
            if let Some(digest) = file.get("digest").and_then(Value::as_str) {
                return Some(Some(digest.to_owned()));
            }
        }
        let inside = own.strip_prefix(uri.trim_end_matches('/'));
        is_known |= inside.is_some_and(|rest| rest.starts_with('/'));
    }
    is_known.then_some(None)
}

/// Whether what was read has the digest that is promised for it. A digest of another kind is not checked.
fn has_digest(result: &str, promised: Option<&str>) -> bool {
    let Some(promised) = promised.and_then(|it| it.strip_prefix("sha256:")) else {
        return true;
    };
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    let contents = result.get("contents").and_then(Value::as_array);
    let mut contents = contents.into_iter().flatten();
    let (Some(content), None) = (contents.next(), contents.next()) else {
        return false;
    };
    let text = content.get("text").and_then(Value::as_str);
    let text = text.map(|it| it.as_bytes().to_vec());
    let blob = || BASE64.decode(content.get("blob")?.as_str()?).ok();
    let bytes = text.or_else(blob).unwrap_or_default();
    Fingerprint::of_bytes(&bytes).to_string() == promised
}

/// Whether a definition names a page by which results are shown.
fn refers_to(tool: &ToolItem, uri: &str) -> bool {
    let definition = Members::of_optional(Some(&tool.definition));
    let Some(meta) = definition.object("_meta") else {
        return false;
    };
    let ui = meta.object("ui");
    let page = ui.as_ref().and_then(|ui| ui.text("resourceUri"));
    let others = PAGE_KEYS.iter().filter_map(|key| meta.text(key));
    page.into_iter().chain(others).any(|it| it == uri)
}

fn ambiguous(uri: &str, owners: &[Arc<Shelf>], era: Era) -> Reply {
    let forms = owners.iter();
    let forms = forms.map(|shelf| format!("`{}`", qualified(shelf.upstream.name(), uri)));
    let forms: Vec<String> = forms.collect();
    let message = format!(
        "several servers behind this gateway have the resource `{uri}`; ask for one of {}",
        forms.join(", ")
    );
    not_found(uri, message, era)
}

pub(super) fn unknown_resource(uri: &str, era: Era) -> Reply {
    let message = format!("no server behind this gateway has the resource `{uri}`");
    not_found(uri, message, era)
}

fn not_found(uri: &str, message: String, era: Era) -> Reply {
    // The stateless era gave the older code up.
    let code = match era {
        Era::Handshake => RESOURCE_NOT_FOUND,
        Era::Stateless => INVALID_PARAMS,
    };
    Reply::Error(RpcError {
        code,
        message,
        data: serde_json::value::to_raw_value(&serde_json::json!({"uri": uri})).ok(),
    })
}
