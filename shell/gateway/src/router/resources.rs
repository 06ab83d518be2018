//! Resources: which server an address belongs to, and which address agents use.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use memchr::memmem;
use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_guard::{FeatureKind, is_ambiguous_address};
use toolwarden_mcp::error_codes::{INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND};
use toolwarden_mcp::{Era, RawObject, RpcError};
use toolwarden_model::Fingerprint;

use super::features::FeatureRequest;
use super::forward::forwarded_params;
use super::skill_files::{SkillFiles, SkillMembership};
use super::{Gateway, RpcReply};
use crate::catalog::{ListItem, ListKind, ServerCatalog, ServerList, ToolItem};
use crate::pending_inputs::{PendingInput, PendingInputs};
use crate::request_context::RequestContext;
use crate::uri_template;

/// The prefix of an address that names its server: the name of the server and the server's own address
/// follow.
const QUALIFIED_PREFIX: &str = "toolwarden://resource/";

/// Members of a tool's `_meta` that name the page that displays its results.
const PAGE_KEYS: [&str; 2] = ["ui/resourceUri", "openai/outputTemplate"];

/// The longest accepted address: subscriptions and references store theirs.
const MAX_URI_BYTES: usize = 8 * 1024;

/// The method that lists a folder.
const DIRECTORY_READ: &str = "resources/directory/read";

/// A resource of a server.
pub(super) struct ResourceAddress {
    pub(super) catalog: Arc<ServerCatalog>,
    /// The server's own address.
    pub(super) uri: String,
    /// What the pinned entries of skills say about it.
    skill_membership: SkillMembership,
    /// The files of all skills.
    skills: SkillFiles,
}

/// Servers that an address may belong to.
type Owners = Vec<Arc<ServerCatalog>>;

impl Gateway {
    pub(super) async fn read_resource(
        &self,
        context: &Arc<RequestContext>,
        params: Option<&RawValue>,
    ) -> RpcReply {
        self.forward_to_owner(context, "resources/read", params)
            .await
    }

    /// Sends a request about one resource or skill to the server that owns it.
    pub(super) async fn forward_to_owner(
        &self,
        context: &Arc<RequestContext>,
        method: &str,
        params: Option<&RawValue>,
    ) -> RpcReply {
        let members = RawObject::parse_optional(params);
        let Some(shown) = members.text("uri") else {
            return RpcReply::error(INVALID_PARAMS, "params.uri is not a string");
        };
        let found = self.find_resource(context, &shown).await;
        let kind = match method {
            "skills/get" => FeatureKind::Skill,
            _ => FeatureKind::Resource,
        };
        let address = match found {
            Ok(address) => address,
            Err(reply) => {
                let reply = adapt_error(method, reply);
                return self
                    .refuse_unknown(context, &members, (kind, method), &shown, reply)
                    .await;
            }
        };
        let check = |result: String| {
            self.check_resource(context, &members, method, (&address, &shown), result)
        };
        if let Some(state) = members
            .text("requestState")
            .filter(|it| PendingInputs::owns_state(it))
        {
            let is_same = |parked: &PendingInput| parked.is_for_server(&address.catalog);
            let request = (method, params);
            return self
                .resume_feature(context, request, &state, is_same, check)
                .await;
        }
        let used = address.feature_request(kind, method);
        let open = match self
            .permit_feature(context, &members, &used, empty_arguments())
            .await
        {
            Ok(open) => open,
            Err(refusal) => {
                let era = context.agent.era;
                let unknown = || adapt_error(method, unknown_resource(&shown, era));
                return refusal.into_reply(unknown);
            }
        };
        let change = (*address.uri != *shown).then_some(("uri", &*address.uri));
        let params = forwarded_params(params, change).map(Cow::into_owned);
        let to = (&address.catalog, method);
        self.forward_permitted(context, to, params, open, check)
            .await
    }

    /// Records a request for an address that no server has, and returns the reply.
    pub(super) async fn refuse_unknown(
        &self,
        context: &Arc<RequestContext>,
        params: &RawObject<'_>,
        (kind, method): (FeatureKind, &str),
        shown: &str,
        reply: RpcReply,
    ) -> RpcReply {
        let used = FeatureRequest::new(kind, method, shown);
        let permitted = self
            .permit_feature(context, params, &used, empty_arguments())
            .await;
        // An address that no server has is never permitted; only the record matters.
        drop(permitted.map(|open| open.report_failure_async(&"no server has it")));
        reply
    }

    /// What an agent gets of a server's result: a file that its skill lists, under the address the agent knows, or
    /// the entries of a folder that the agent may see.
    fn check_resource(
        &self,
        context: &Arc<RequestContext>,
        params: &RawObject<'_>,
        method: &str,
        (address, shown): (&ResourceAddress, &str),
        result: String,
    ) -> Result<String, RpcReply> {
        if method == "resources/read"
            && !matches_digest(&result, address.skill_membership.digest.as_deref())
        {
            let text = format!(
                "the file `{shown}` is not the one its skill lists: its digest differs, so it is withheld"
            );
            return Err(RpcReply::error(INTERNAL_ERROR, text));
        }
        if method == DIRECTORY_READ {
            return self.visible_entries(context, params, address, result);
        }
        if *address.uri != *shown {
            return Ok(with_shown_uris(result, &address.uri, shown));
        }
        Ok(result)
    }

    /// The entries of a folder that an agent may read.
    fn visible_entries(
        &self,
        context: &Arc<RequestContext>,
        params: &RawObject<'_>,
        address: &ResourceAddress,
        result: String,
    ) -> Result<String, RpcReply> {
        let unreadable = || {
            let text = "the server's folder was withheld: its `resources` cannot be read as a list";
            RpcReply::error(INTERNAL_ERROR, text)
        };
        let members = serde_json::from_str::<RawObject<'_>>(&result);
        let mut members = members.map_err(|_| unreadable())?;
        let entries = members.get("resources").unwrap_or("[]");
        let entries = serde_json::from_str::<Vec<Box<RawValue>>>(entries);
        let entries = entries.map_err(|_| unreadable())?;
        let used: Vec<FeatureRequest<'_>> = entries
            .iter()
            .map(|entry| {
                let uri = RawObject::parse_optional(Some(entry));
                let uri = uri.text("uri").unwrap_or_default();
                address
                    .entry(&uri)
                    .feature_request(FeatureKind::Resource, DIRECTORY_READ)
            })
            .collect();
        let seen = self.feature_visibility(context, params, &used)?;
        if seen.iter().all(|it| *it) {
            return Ok(result);
        }
        let kept = entries.iter().zip(seen).filter(|(_, seen)| *seen);
        let kept: Vec<&str> = kept.map(|(entry, _)| entry.get()).collect();
        members.set("resources", format!("[{}]", kept.join(",")));
        Ok(members.to_string())
    }

    /// The server that owns an address, and the server's own address. An address that only one server lists belongs
    /// to that server. One that no server lists is requested only if a template, a tool that the agent sees or an
    /// earlier answer refers to it.
    pub(super) async fn find_resource(
        &self,
        context: &Arc<RequestContext>,
        shown: &str,
    ) -> Result<ResourceAddress, RpcReply> {
        let (server, own) = match split_qualified_uri(shown) {
            Some((server, own)) if self.transparent_server().is_none() => (Some(server), own),
            _ => (None, shown),
        };
        if own.len() > MAX_URI_BYTES {
            let text = format!("params.uri is longer than {MAX_URI_BYTES} bytes");
            return Err(RpcReply::error(INVALID_PARAMS, text));
        }
        if is_ambiguous_address(own) {
            let text = "params.uri can be read as several addresses; write it without control characters, \
                        encoded `?` or `#`, and empty segments beside `..`";
            return Err(RpcReply::error(INVALID_PARAMS, text));
        }
        let skills = self.skill_files(context).await;
        let found = |skills: SkillFiles, catalog: Arc<ServerCatalog>| ResourceAddress {
            skill_membership: skills.membership(&catalog, own),
            uri: own.to_owned(),
            catalog,
            skills,
        };
        if let Some(only) = self.transparent_server() {
            return Ok(found(skills, only));
        }
        let meant = match server {
            None => None,
            Some(server) => {
                let catalog = self
                    .server_catalog(server)
                    .filter(|catalog| !catalog.is_blocked());
                Some(catalog.ok_or_else(|| unknown_resource(shown, context.agent.era))?)
            }
        };
        // An address that names its server does not give access to what the server does not offer.
        let is_meant =
            |it: &Arc<ServerCatalog>| meant.as_ref().is_none_or(|meant| Arc::ptr_eq(meant, it));
        let of_meant = |owners: Owners| owners.into_iter().filter(is_meant).collect::<Owners>();
        let mut owners = of_meant(
            self.listing_servers(context, ListKind::Resources, own)
                .await,
        );
        if owners.is_empty() {
            owners = of_meant(skills.owners(own));
        }
        if owners.is_empty() {
            owners = self.matching_templates(context, own, is_meant).await;
        }
        if owners.is_empty() {
            owners = of_meant(self.referring_tools(context, own).await?);
        }
        // An answer may refer to an address that no list has, and decides which of several servers is meant.
        let referred = self.referred_owner(context, own).filter(is_meant);
        let is_owner = |it: &Arc<ServerCatalog>| owners.iter().any(|owner| Arc::ptr_eq(owner, it));
        let referred = referred.filter(|it| owners.is_empty() || is_owner(it));
        if let Some(referred) = referred {
            owners = vec![referred];
        }
        match owners.as_slice() {
            [] => Err(unknown_resource(shown, context.agent.era)),
            [owner] => Ok(found(skills, Arc::clone(owner))),
            several => Err(ambiguous_resource(shown, several, context.agent.era)),
        }
    }

    /// The server that offers a template.
    pub(super) async fn find_template(
        &self,
        context: &Arc<RequestContext>,
        shown: &str,
    ) -> Result<ResourceAddress, RpcReply> {
        let owners = self
            .listing_servers(context, ListKind::Templates, shown)
            .await;
        match owners.as_slice() {
            [owner] => Ok(ResourceAddress {
                catalog: Arc::clone(owner),
                uri: shown.to_owned(),
                skill_membership: SkillMembership::default(),
                skills: SkillFiles::default(),
            }),
            _ => self.find_resource(context, shown).await,
        }
    }

    /// The server whose answer referred to an address in this conversation.
    fn referred_owner(&self, context: &RequestContext, uri: &str) -> Option<Arc<ServerCatalog>> {
        let server = context.conversation.referring_server(uri)?;
        self.server_catalog(&server)
            .filter(|catalog| !catalog.is_blocked())
    }

    /// The servers that list an address, served or withheld.
    async fn listing_servers(
        &self,
        context: &Arc<RequestContext>,
        kind: ListKind,
        uri: &str,
    ) -> Owners {
        let lists = self.feature_lists_for(context, kind).await;
        let having = |entries: fn(&ServerList) -> &Vec<ListItem>| -> Owners {
            let has = |list: &ServerList| entries(list).iter().any(|item| *item.key == *uri);
            let owners = lists.iter().filter(|(_, list)| has(list));
            owners.map(|(catalog, _)| Arc::clone(catalog)).collect()
        };
        let served = having(|list| &list.items);
        // Withheld entries do not reserve addresses.
        match served.is_empty() {
            true => having(|list| &list.withheld),
            false => served,
        }
    }

    /// The servers with a template that matches an address. If several have one, the template with the longest
    /// literal parts wins.
    async fn matching_templates(
        &self,
        context: &Arc<RequestContext>,
        uri: &str,
        is_meant: impl Fn(&Arc<ServerCatalog>) -> bool,
    ) -> Owners {
        let lists = self.feature_lists_for(context, ListKind::Templates).await;
        let lists = lists.iter().filter(|(catalog, _)| is_meant(catalog));
        let fitting = lists.filter_map(|(catalog, list)| {
            let keys = list.items.iter().map(|item| &*item.key);
            let fitting = keys.filter(|key| uri_template::matches_template(key, uri));
            let said = fitting.map(uri_template::literal_length).max()?;
            Some((said, Arc::clone(catalog)))
        });
        let fitting: Vec<_> = fitting.collect();
        let most = fitting.iter().map(|(said, _)| *said).max();
        let fitting = fitting.into_iter().filter(|(said, _)| Some(*said) == most);
        fitting.map(|(_, catalog)| catalog).collect()
    }

    /// The servers with a tool that the agent sees and whose results this page displays.
    async fn referring_tools(
        &self,
        context: &Arc<RequestContext>,
        uri: &str,
    ) -> Result<Owners, RpcReply> {
        let mut owners: Owners = Vec::new();
        for (catalog, tool) in self.visible_items(context).await? {
            let known = owners.iter().any(|it| Arc::ptr_eq(it, &catalog));
            if !known && refers_to(&tool, uri) {
                owners.push(catalog);
            }
        }
        Ok(owners)
    }

    /// Stores which resources a server's answer refers to: the agent may read those, although no list has them.
    pub(super) fn record_references(
        &self,
        context: &RequestContext,
        catalog: &ServerCatalog,
        result: &str,
    ) {
        if self.transparent_server().is_some() {
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
        let server: Arc<str> = catalog.upstream.name().into();
        for content in contents {
            let parts = content
                .as_array()
                .map_or(std::slice::from_ref(content), |it| it);
            for part in parts {
                let embedded = part.get("resource").unwrap_or(part);
                if let Some(uri) = embedded.get("uri").and_then(Value::as_str) {
                    context.conversation.add_reference(uri, &server);
                }
            }
        }
    }
}

impl ResourceAddress {
    /// The entry of this folder at an address.
    fn entry(&self, uri: &str) -> Self {
        Self {
            catalog: Arc::clone(&self.catalog),
            uri: uri.to_owned(),
            skill_membership: self.skills.membership(&self.catalog, uri),
            skills: SkillFiles::default(),
        }
    }

    /// The resource or skill as the guard decides it.
    pub(super) fn feature_request<'u>(
        &self,
        kind: FeatureKind,
        method: &'u str,
    ) -> FeatureRequest<'u> {
        let lists = [ListKind::Resources, ListKind::Templates];
        let used = FeatureRequest::new(kind, method, &self.uri).with_listing(
            &self.catalog,
            &lists,
            &self.uri,
        );
        let skills = self.skill_membership.skills.iter();
        // A skill is its own file, and is decided only once.
        let others = skills.filter(|it| kind != FeatureKind::Skill || ***it != *self.uri);
        FeatureRequest {
            withheld: self.skill_membership.withheld_reason().or(used.withheld),
            skills: others.cloned().collect(),
            ..used
        }
    }
}

/// Methods of extensions have one error code for all invalid parameters.
fn adapt_error(method: &str, reply: RpcReply) -> RpcReply {
    match reply {
        RpcReply::Error(error) if method != "resources/read" => RpcReply::Error(RpcError {
            code: INVALID_PARAMS,
            ..error
        }),
        reply => reply,
    }
}

/// The arguments of a feature that takes none.
pub(super) fn empty_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Addresses that several lists have; agents see them prefixed with the name of their server.
pub(super) fn shared_addresses(
    lists: &[(Arc<ServerCatalog>, Arc<ServerList>)],
) -> BTreeSet<Arc<str>> {
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

/// An address that names its server.
pub(super) fn qualified_uri(server: &str, uri: &str) -> String {
    format!("{QUALIFIED_PREFIX}{server}/{uri}")
}

pub(super) fn split_qualified_uri(shown: &str) -> Option<(&str, &str)> {
    shown.strip_prefix(QUALIFIED_PREFIX)?.split_once('/')
}

/// A result with the address the agent knows in place of the server's own.
fn with_shown_uris(result: String, uri: &str, shown: &str) -> String {
    let Ok(mut members) = serde_json::from_str::<RawObject<'_>>(&result) else {
        return result;
    };
    let contents = members.get("contents");
    let contents = contents.and_then(|it| serde_json::from_str::<Vec<Box<RawValue>>>(it).ok());
    let Some(contents) = contents else {
        return result;
    };
    let renamed = contents.iter().map(|content| {
        let mut content = RawObject::parse_optional(Some(content));
        if content.text("uri").as_deref() == Some(uri) {
            content.set("uri", Value::from(shown).to_string());
        }
        content.to_string()
    });
    let renamed: Vec<String> = renamed.collect();
    members.set("contents", format!("[{}]", renamed.join(",")));
    members.to_string()
}

/// Whether the content has the digest that its skill promises. A digest of an unknown kind is not checked.
fn matches_digest(result: &str, promised: Option<&str>) -> bool {
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

/// Whether a definition names a page as the one that displays its results.
fn refers_to(tool: &ToolItem, uri: &str) -> bool {
    let definition = RawObject::parse_optional(Some(&tool.definition));
    let Some(meta) = definition.object("_meta") else {
        return false;
    };
    let ui = meta.object("ui");
    let page = ui.as_ref().and_then(|ui| ui.text("resourceUri"));
    let others = PAGE_KEYS.iter().filter_map(|key| meta.text(key));
    page.into_iter().chain(others).any(|it| it == uri)
}

fn ambiguous_resource(uri: &str, owners: &[Arc<ServerCatalog>], era: Era) -> RpcReply {
    let forms = owners.iter();
    let forms = forms.map(|catalog| format!("`{}`", qualified_uri(catalog.upstream.name(), uri)));
    let forms: Vec<String> = forms.collect();
    let message = format!(
        "several servers behind this gateway have the resource `{uri}`; ask for one of {}",
        forms.join(", ")
    );
    resource_not_found(uri, message, era)
}

pub(super) fn unknown_resource(uri: &str, era: Era) -> RpcReply {
    let message = format!("no server behind this gateway has the resource `{uri}`");
    resource_not_found(uri, message, era)
}

fn resource_not_found(uri: &str, message: String, era: Era) -> RpcReply {
    // The stateless era dropped the older code.
    let code = match era {
        Era::Handshake => RESOURCE_NOT_FOUND,
        Era::Stateless => INVALID_PARAMS,
    };
    RpcReply::Error(RpcError {
        code,
        message,
        data: serde_json::value::to_raw_value(&serde_json::json!({"uri": uri})).ok(),
    })
}
