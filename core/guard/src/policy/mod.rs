//! What a policy says, in types. Reading checks every word; nothing is decided here.

mod defaults;
mod discovered;
mod feature;
mod name_pattern;
mod pattern_tree;
mod permission;
mod problem;
mod read;
mod read_feature;
mod read_state;
mod read_tool;
mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use crate::condition::Condition;
use crate::window::Limit;

pub(crate) use name_pattern::{NamePattern, normalized};
pub use name_pattern::{is_ambiguous_address, normalized_address};
pub(crate) use pattern_tree::PatternTree;

pub use feature::FeatureKind;
pub use permission::{InvalidPermission, Permission, PermissionPattern};
pub use problem::{PolicyError, Problem};

/// The group of a tool that names none. A request that names none asks for it where it is granted and
/// the policy gives the principal no `default_groups`.
pub const DEFAULT_GROUP: &str = "default";

/// The state in which sessions start, unless the policy gives the principal another `initial_state`.
pub const INITIAL_STATE: &str = "undefined";

/// In a request: every group. In a list of states: every state. In grants: every group.
pub const EVERY: &str = "*";

/// The rules of one file.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The tools, in written order.
    pub tools: Vec<ToolPolicy>,
    /// The rules for resources, prompts, skills and methods of extensions, in written order.
    pub features: Vec<ToolPolicy>,
    /// What is said about groups, by name.
    pub groups: BTreeMap<String, GroupPolicy>,
    /// Named bundles of grants.
    pub roles: BTreeMap<String, Grants>,
    /// Who is granted what.
    pub principals: BTreeMap<String, PrincipalPolicy>,
    /// What everybody else is granted.
    pub anyone: Grants,
    /// Tools that may not be called until somebody lets them.
    pub quarantine: BTreeSet<String>,
    /// How requests for groups are taken.
    pub requests: RequestRules,
    /// Where a client may start.
    pub sessions: SessionRules,
    /// What is said about states, by name.
    pub states: BTreeMap<String, StatePolicy>,
    /// Whether calls with invalid input use up the rate limit.
    pub count_invalid: bool,
    /// What becomes of tools that are not named here.
    pub unlisted: Unlisted,
    /// What is recorded, and how.
    pub audit: AuditRules,
    /// The zone of times in conditions.
    pub zone: TimeZone,
}

/// The rules of one tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPolicy {
    /// What the rules are for.
    pub kind: FeatureKind,
    /// The name calls use; of other kinds a name, an address or a pattern of them.
    pub name: String,
    /// The one server the rules are for; none is any. Tools have the name of their server in their own.
    pub server: Option<String>,
    /// The name people read.
    pub title: Option<String>,
    /// Its groups; none means that only a request for every group reaches it.
    pub groups: Vec<String>,
    /// The state a successful call leads to.
    pub next_state: Option<String>,
    /// Where it is available.
    pub states: States,
    /// The arguments of a successful call that calls in the next state must repeat.
    pub binds: Vec<Pointer>,
    /// Whether a call uses up a single-use state that the tool names, and must repeat what is bound there.
    pub uses_state: bool,
    /// Whether callers make the calls themselves: no server behind a gateway has the tool.
    pub outside: bool,
    /// What a principal has to hold.
    pub permissions: Vec<Permission>,
    /// How often it may be called.
    pub limits: Limits,
    /// What its arguments have to satisfy; an empty schema is not checked.
    pub input_schema: Value,
    /// What its results should satisfy.
    pub output_schema: Value,
    /// What happens to a result that does not.
    pub output_mode: OutputMode,
    /// A definition elsewhere that has the schemas.
    pub definition: Option<DefinitionRef>,
    /// Its version.
    pub version: Option<String>,
    /// Where the tool stands in the policy.
    pub pointer: Pointer,
}

/// What is said about a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatePolicy {
    /// Whether one call uses it up.
    pub single_use: bool,
}

/// In which states a tool is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum States {
    /// In all.
    Every,
    /// In these; none means never.
    Only(BTreeSet<String>),
}

/// A definition in a file, read by canon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionRef {
    /// The file, relative to the policy.
    pub file: String,
    /// The tool's name in it.
    pub tool: String,
    /// Where the reference stands in the policy.
    pub pointer: Pointer,
}

/// What happens to a result that does not satisfy the output schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputMode {
    /// Nothing; it is not looked at.
    Off,
    /// It is recorded.
    #[default]
    Warn,
    /// The call counts as failed.
    Enforce,
}

/// The limits of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// For each principal.
    pub agent: Option<Limit>,
    /// For all principals together.
    pub tool: Option<Limit>,
}

/// What is said about a group.
#[derive(Clone, Debug, Default)]
pub struct GroupPolicy {
    /// What it is for.
    pub description: Option<String>,
    /// When it is on; without a condition it always is.
    pub when: Option<Condition>,
}

/// What a principal or a role may do.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    /// Roles whose grants are taken over.
    pub roles: Vec<String>,
    /// Groups that may be requested; nothing said and an empty list differ.
    pub groups: Option<Vec<String>>,
    /// The groups a request without groups asks for.
    pub default_groups: Option<Vec<String>>,
    /// The state in which sessions start.
    pub initial_state: Option<String>,
    /// Rights.
    pub permissions: Vec<PermissionPattern>,
    /// What is refused whatever is granted.
    pub deny: Denies,
    /// Where the grants stand in the policy.
    pub pointer: Pointer,
}

/// What is refused whatever is granted.
#[derive(Clone, Debug, Default)]
pub struct Denies {
    /// Every tool of these groups.
    pub groups: Vec<String>,
    /// These rights.
    pub permissions: Vec<PermissionPattern>,
    /// These tools.
    pub tools: Vec<String>,
    /// What these patterns of names and addresses match, by kind.
    pub features: Vec<(FeatureKind, String)>,
}

/// Who somebody is and what they may do.
#[derive(Clone, Debug, Default)]
pub struct PrincipalPolicy {
    /// Whether it is a person, an agent or a service.
    pub kind: PrincipalKind,
    /// What it may do.
    pub grants: Grants,
}

/// What kind of principal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrincipalKind {
    /// A program that decides for itself.
    #[default]
    Agent,
    /// A person.
    User,
    /// A program that does as it is told.
    Service,
}

/// How requests for groups are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestRules {
    /// Whether a group no tool is in is refused.
    pub strict_groups: bool,
    /// What becomes of a request for more than is granted.
    pub excess: Excess,
}

/// What becomes of a request for more groups than are granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Excess {
    /// It is refused as a whole.
    #[default]
    Reject,
    /// The groups that are granted are given.
    Narrow,
}

/// What becomes of tools that are learned from servers and that the policy does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unlisted {
    /// They can be called as whoever learned of them says.
    #[default]
    Serve,
    /// They are unknown.
    Hide,
}

/// Where a client may start, and when a session is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRules {
    /// The states in which a client may start a session, besides the principal's own initial state.
    pub initial_states: States,
    /// How long a session nobody uses is kept.
    pub idle: Duration,
}

/// What is recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRules {
    /// When a decision counts as recorded.
    pub durability: Durability,
    /// Whether calls are refused while nothing can be recorded.
    pub on_failure: OnFailure,
    /// How arguments are kept.
    pub arguments: Arguments,
    /// Places that are never kept.
    pub redact_pointers: Vec<Pointer>,
    /// Member names that are never kept, `*` standing for any text; case, `_` and `-` do not matter.
    pub redact_keys: Vec<String>,
    /// The most bytes of one record; what is longer is recorded as a digest.
    pub record_bytes: usize,
    /// How many denials of one principal have a record of their own; the rest are summed up.
    pub denials: Limit,
}

/// When a decision counts as recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When its own transaction is on disk.
    Sync,
    /// When the transaction it shares with others is on disk.
    #[default]
    Group,
    /// When it waits in memory to be written.
    Async,
}

impl Durability {
    /// The word of a policy.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Group => "group",
            Self::Async => "async",
        }
    }
}

/// What a log that cannot be written means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Calls are refused.
    #[default]
    Deny,
    /// Calls go on unrecorded.
    Allow,
}

/// How arguments are kept in records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arguments {
    /// As they are.
    Full,
    /// Without what is to be redacted.
    #[default]
    Redacted,
    /// As a digest only.
    Digest,
}

/// Something in a policy that is legal and surprising.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyWarning {
    /// The place as a pointer.
    pub pointer: Pointer,
    /// What to know about it.
    pub message: String,
}

/// A policy that was read, with what is surprising in it.
#[derive(Clone, Debug)]
pub struct ReadPolicy {
    /// The policy.
    pub policy: Policy,
    /// What is legal and surprising.
    pub warnings: Vec<PolicyWarning>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            features: Vec::new(),
            groups: BTreeMap::new(),
            roles: BTreeMap::new(),
            principals: BTreeMap::new(),
            anyone: Grants::default(),
            quarantine: BTreeSet::new(),
            requests: RequestRules::default(),
            sessions: SessionRules::default(),
            states: BTreeMap::new(),
            count_invalid: true,
            unlisted: Unlisted::default(),
            audit: AuditRules::default(),
            zone: TimeZone::UTC,
        }
    }
}

impl ToolPolicy {
    /// A tool of which only the name is known: in the default group, in every state, for everybody,
    /// 60 calls a minute for each principal.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            kind: FeatureKind::Tool,
            name: name.to_owned(),
            server: None,
            title: None,
            groups: vec![DEFAULT_GROUP.to_owned()],
            next_state: None,
            states: States::Every,
            binds: Vec::new(),
            uses_state: true,
            outside: false,
            permissions: Vec::new(),
            limits: Limits {
                agent: Some(Limit::default()),
                tool: None,
            },
            input_schema: Value::Object(Object::new()),
            output_schema: Value::Object(Object::new()),
            output_mode: OutputMode::default(),
            definition: None,
            version: None,
            pointer: Pointer::of(["tools", name]),
        }
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self {
            max: const { NonZeroU32::new(60).unwrap() },
            window: Duration::from_secs(60),
        }
    }
}

impl Default for SessionRules {
    fn default() -> Self {
        Self {
            initial_states: States::Only(BTreeSet::new()),
            idle: Duration::from_secs(24 * 3600),
        }
    }
}

impl Default for AuditRules {
    fn default() -> Self {
        let secret = [
            "*password*",
            "*passwd*",
            "pwd",
            "pass",
            "*passcode*",
            "pin",
            "otp",
            "cvv",
            "jwt",
            "*bearer*",
            "*sshkey*",
            "*signingkey*",
            "*encryptionkey*",
            "*connectionstring*",
            "*passphrase*",
            "*secret*",
            "*token*",
            "*apikey*",
            "*accesskey*",
            "*privatekey*",
            "*authorization*",
            "*credential*",
            "*cookie*",
        ];
        Self {
            durability: Durability::default(),
            on_failure: OnFailure::default(),
            arguments: Arguments::default(),
            redact_pointers: Vec::new(),
            redact_keys: secret.map(str::to_owned).to_vec(),
            record_bytes: 64 << 10,
            denials: Limit {
                max: const { NonZeroU32::new(600).unwrap() },
                window: Duration::from_secs(60),
            },
        }
    }
}

impl Policy {
    /// The rules of tools, then those of everything else.
    pub(crate) fn all_rules(&self) -> impl Iterator<Item = &ToolPolicy> {
        self.tools.iter().chain(&self.features)
    }
}

impl States {
    /// These states and some more.
    #[must_use]
    pub(crate) fn with<'s>(&self, more: impl IntoIterator<Item = &'s str>) -> Self {
        match self {
            Self::Every => Self::Every,
            Self::Only(states) => {
                let more = more.into_iter().map(str::to_owned);
                Self::Only(states.iter().cloned().chain(more).collect())
            }
        }
    }

    /// Whether a state is among them.
    #[must_use]
    pub fn contain(&self, state: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Only(states) => states.contains(state),
        }
    }
}

/// The longest name of a group, and the most levels it can have.
const MAX_GROUP: (usize, usize) = (256, 16);

/// Whether a group can be called so: looking up every group around a name must stay cheap.
#[must_use]
pub(crate) fn is_group_name(name: &str) -> bool {
    let (length, levels) = MAX_GROUP;
    name.len() <= length && name.bytes().filter(|byte| *byte == b'/').count() < levels
}

/// A group and every group it is within, itself first: `a/b/c`, `a/b`, `a`.
pub fn group_and_parents(group: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(group), |group| {
        group.rsplit_once('/').map(|(parent, _)| parent)
    })
    .filter(|group| !group.is_empty())
}
