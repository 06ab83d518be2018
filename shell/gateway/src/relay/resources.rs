//! Resources: which server an address belongs to, and what agents call it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use memchr::memmem;
use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_guard::{FeatureKind, is_ambiguous_address};
use toolwarden_mcp::codes::{INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND};
use toolwarden_mcp::{Era, Members, RpcError};
use toolwarden_model::Fingerprint;

use super::asked::Asked;
use super::exchange::forwarded;
use super::features::Used;
use super::parking::{Parked, Parking};
use super::skill_files::{Belonging, SkillFiles};
use super::{Gateway, Reply};
use crate::catalogue::{Item, Kind, List, Shelf, ToolItem};
use crate::uri_template;

/// How an address begins that says whose it is: the name of the server and the server's own address
/// follow.
const QUALIFIED: &str = "toolwarden://resource/";

/// Members of a tool's `_meta` that name the page by which its results are shown.
const PAGE_KEYS: [&str; 2] = ["ui/resourceUri", "openai/outputTemplate"];

/// The longest address that is asked for: subscriptions and references keep theirs.
const LONGEST_ADDRESS: usize = 8 * 1024;

/// The method that reads a folder.
const FOLDER: &str = "resources/directory/read";

/// A resource of a server.
pub(super) struct Address {
    pub(super) shelf: Arc<Shelf>,
    /// The server's own address.
    pub(super) uri: String,
    /// What the pinned entries of skills say of it.
    belonging: Belonging,
    /// The files of all skills.
    skills: SkillFiles,
}

/// Servers that an address may belong to.
type Owners = Vec<Arc<Shelf>>;

impl Gateway {
    pub(super) async fn read_resource(
        &self,
        asked: &Arc<Asked>,
        params: Option<&RawValue>,
    ) -> Reply {
        self.ask_owner(asked, "resources/read", params).await
    }

    /// Puts a request about one resource or skill to the server that owns it.
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
        let found = self.resource_at(asked, &shown).await;
        let kind = match method {
            "skills/get" => FeatureKind::Skill,
            _ => FeatureKind::Resource,
        };
        let address = match found {
            Ok(address) => address,
            Err(reply) => {
                let reply = for_method(method, reply);
                return self
                    .refuse_unknown(asked, &members, (kind, method), &shown, reply)
                    .await;
            }
        };
        let check = |result: String| {
            self.checked_resource(asked, &members, method, (&address, &shown), result)
        };
        if let Some(state) = members
            .text("requestState")
            .filter(|it| Parking::is_ours(it))
        {
            let is_same = |parked: &Parked| parked.is_to(&address.shelf);
            let request = (method, params);
            return self.resumed(asked, request, &state, is_same, check).await;
        }
        let used = address.used(kind, method);
        let open = match self.permit(asked, &members, &used, no_arguments()).await {
            Ok(open) => open,
            Err(refusal) => {
                let era = asked.agent.era;
                let unknown = || for_method(method, unknown_resource(&shown, era));
                return refusal.into_reply(unknown);
            }
        };
        let change = (*address.uri != *shown).then_some(("uri", &*address.uri));
        let params = forwarded(params, change).map(Cow::into_owned);
        let to = (&address.shelf, method);
        self.ask_permitted(asked, to, params, open, check).await
    }

    /// Records that an agent asked for an address that no server has, and gives the answer.
    pub(super) async fn refuse_unknown(
        &self,
        asked: &Arc<Asked>,
        params: &Members<'_>,
        (kind, method): (FeatureKind, &str),
        shown: &str,
        reply: Reply,
    ) -> Reply {
        let used = Used::new(kind, method, shown);
        let permitted = self.permit(asked, params, &used, no_arguments()).await;
        // What no server has is never permitted; the record is all that is wanted.
        drop(permitted.map(|open| open.failed_soon(&"no server has it")));
        reply
    }

    /// What an agent gets of the result of a server: the file its skill lists, by the address the agent
    /// knows, and of a folder what it sees.
    fn checked_resource(
        &self,
        asked: &Arc<Asked>,
        params: &Members<'_>,
        method: &str,
        (address, shown): (&Address, &str),
        result: String,
    ) -> Result<String, Reply> {
        if method == "resources/read" && !has_digest(&result, address.belonging.digest.as_deref()) {
            let text = format!(
                "the file `{shown}` is not the one its skill lists: its digest is another, so it is withheld"
            );
            return Err(Reply::error(INTERNAL_ERROR, text));
        }
        if method == FOLDER {
            return self.seen_entries(asked, params, address, result);
        }
        if *address.uri != *shown {
            return Ok(with_shown_uris(result, &address.uri, shown));
        }
        Ok(result)
    }

    /// The entries of a folder that an agent may read.
    fn seen_entries(
        &self,
        asked: &Arc<Asked>,
        params: &Members<'_>,
        address: &Address,
        result: String,
    ) -> Result<String, Reply> {
        let unreadable = || {
            let text = "the server's folder was withheld: its `resources` cannot be read as a list";
            Reply::error(INTERNAL_ERROR, text)
        };
        let members = serde_json::from_str::<Members<'_>>(&result);
        let mut members = members.map_err(|_| unreadable())?;
        let entries = members.get("resources").unwrap_or("[]");
        let entries = serde_json::from_str::<Vec<Box<RawValue>>>(entries);
        let entries = entries.map_err(|_| unreadable())?;
        let used: Vec<Used<'_>> = entries
            .iter()
            .map(|entry| {
                let uri = Members::of_optional(Some(entry));
                let uri = uri.text("uri").unwrap_or_default();
                address.entry(&uri).used(FeatureKind::Resource, FOLDER)
            })
            .collect();
        let seen = self.seen(asked, params, &used)?;
        if seen.iter().all(|it| *it) {
            return Ok(result);
        }
        let kept = entries.iter().zip(seen).filter(|(_, seen)| *seen);
        let kept: Vec<&str> = kept.map(|(entry, _)| entry.get()).collect();
        members.set("resources", format!("[{}]", kept.join(",")));
        Ok(members.to_string())
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
        if own.len() > LONGEST_ADDRESS {
            let text = format!("params.uri is longer than {LONGEST_ADDRESS} bytes");
            return Err(Reply::error(INVALID_PARAMS, text));
        }
        if is_ambiguous_address(own) {
            let text = "params.uri can be read as several addresses; write it without control characters, \
                        encoded `?` or `#`, and empty segments beside `..`";
            return Err(Reply::error(INVALID_PARAMS, text));
        }
        let skills = self.skill_files(asked).await;
        let found = |skills: SkillFiles, shelf: Arc<Shelf>| Address {
            belonging: skills.belonging(&shelf, own),
            uri: own.to_owned(),
            shelf,
            skills,
        };
        if let Some(only) = self.transparent() {
            return Ok(found(skills, only));
        }
        let meant = match server {
            None => None,
            Some(server) => {
                let shelf = self.shelf(server).filter(|shelf| !shelf.is_blocked());
                Some(shelf.ok_or_else(|| unknown_resource(shown, asked.agent.era))?)
            }
        };
        // An address that names its server is no way to what the server does not offer.
        let is_meant = |it: &Arc<Shelf>| meant.as_ref().is_none_or(|meant| Arc::ptr_eq(meant, it));
        let of_meant = |owners: Owners| owners.into_iter().filter(is_meant).collect::<Owners>();
        let mut owners = of_meant(self.listing(asked, Kind::Resources, own).await);
        if owners.is_empty() {
            owners = of_meant(skills.owners(own));
        }
        if owners.is_empty() {
            owners = self.fitting_templates(asked, own, is_meant).await;
        }
        if owners.is_empty() {
            owners = of_meant(self.referring_tools(asked, own).await?);
        }
        // An answer may refer to what no list has, and says which one is meant of several.
        let referred = self.referred_owner(asked, own).filter(is_meant);
        let is_owner = |it: &Arc<Shelf>| owners.iter().any(|owner| Arc::ptr_eq(owner, it));
        let referred = referred.filter(|it| owners.is_empty() || is_owner(it));
        if let Some(referred) = referred {
            owners = vec![referred];
        }
        match owners.as_slice() {
            [] => Err(unknown_resource(shown, asked.agent.era)),
            [owner] => Ok(found(skills, Arc::clone(owner))),
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
                belonging: Belonging::default(),
                skills: SkillFiles::default(),
            }),
            _ => self.resource_at(asked, shown).await,
        }
    }

    /// The server whose answer referred to an address in this conversation.
    fn referred_owner(&self, asked: &Asked, uri: &str) -> Option<Arc<Shelf>> {
        let server = asked.conversation.referred(uri)?;
        self.shelf(&server).filter(|shelf| !shelf.is_blocked())
    }

    /// The servers that list something under an address, served or withheld.
    async fn listing(&self, asked: &Arc<Asked>, kind: Kind, uri: &str) -> Owners {
        let lists = self.others_for(asked, kind).await;
        let having = |entries: fn(&List) -> &Vec<Item>| -> Owners {
            let has = |list: &List| entries(list).iter().any(|item| *item.key == *uri);
            let owners = lists.iter().filter(|(_, list)| has(list));
            owners.map(|(shelf, _)| Arc::clone(shelf)).collect()
        };
        let served = having(|list| &list.items);
        // What is withheld takes no address from what is served.
        match served.is_empty() {
            true => having(|list| &list.withheld),
            false => served,
        }
    }

    /// The servers with a template that an address fits. Where several have one, the template that says
    /// most of the address counts.
    async fn fitting_templates(
        &self,
        asked: &Arc<Asked>,
        uri: &str,
        is_meant: impl Fn(&Arc<Shelf>) -> bool,
    ) -> Owners {
        let lists = self.others_for(asked, Kind::Templates).await;
        let lists = lists.iter().filter(|(shelf, _)| is_meant(shelf));
        let fitting = lists.filter_map(|(shelf, list)| {
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

impl Address {
    /// An entry of the folder at this address.
    fn entry(&self, uri: &str) -> Self {
        Self {
            shelf: Arc::clone(&self.shelf),
            uri: uri.to_owned(),
            belonging: self.skills.belonging(&self.shelf, uri),
            skills: SkillFiles::default(),
        }
    }

    /// The resource or skill, as the guard decides it.
    pub(super) fn used<'u>(&self, kind: FeatureKind, method: &'u str) -> Used<'u> {
        let lists = [Kind::Resources, Kind::Templates];
        let used = Used::new(kind, method, &self.uri).listed(&self.shelf, &lists, &self.uri);
        let skills = self.belonging.skills.iter();
        // A skill is its own file, and is decided once.
        let others = skills.filter(|it| kind != FeatureKind::Skill || ***it != *self.uri);
        Used {
            withheld: self.belonging.withheld().or(used.withheld),
            skills: others.cloned().collect(),
            ..used
        }
    }
}

/// Methods of extensions know one code for whatever is wrong with their parameters.
fn for_method(method: &str, reply: Reply) -> Reply {
    match reply {
        Reply::Error(error) if method != "resources/read" => Reply::Error(RpcError {
            code: INVALID_PARAMS,
            ..error
        }),
        reply => reply,
    }
}

/// The arguments of what takes none.
pub(super) fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
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

pub(super) fn qualified_parts(shown: &str) -> Option<(&str, &str)> {
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
