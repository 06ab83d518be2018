//! The types of a policy. Reading checks every word; nothing is decided here.

mod defaults;
mod discovered_tool;
mod feature;
mod name_pattern;
mod pattern_tree;
mod permission;
mod policy_error;
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
use toolwarden_model::{GroupName, StateName};

use crate::condition::Condition;
use crate::window::Limit;

pub(crate) use name_pattern::{NamePattern, normalize_name};
pub use name_pattern::{is_ambiguous_address, normalize_address};
pub(crate) use pattern_tree::PatternTree;

pub use feature::FeatureKind;
pub use permission::{InvalidPermission, Permission, PermissionPattern};
pub use policy_error::{PolicyError, PolicyProblem};

/// The group of a tool that names none. A request without groups asks for it if it is granted and the
/// policy gives the principal no `default_groups`.
pub static DEFAULT_GROUP: GroupName = GroupName::from_static("default");

/// The state in which sessions start, unless the policy gives the principal another `initial_state`.
pub static INITIAL_STATE: StateName = StateName::from_static("undefined");

/// In a request: every group. In a list of states: every state. In grants: every group.
pub const EVERY: &str = "*";

/// Every group, in a request or in grants.
pub static EVERY_GROUP: GroupName = GroupName::from_static(EVERY);

/// The rules of one file.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The tools, in written order.
    pub tools: Vec<ToolPolicy>,
    /// The rules for resources, prompts, skills and methods of extensions, in written order.
    pub features: Vec<ToolPolicy>,
    /// The settings of groups, by name.
    pub groups: BTreeMap<GroupName, GroupPolicy>,
    /// Named bundles of grants.
    pub roles: BTreeMap<String, Grants>,
    /// The grants of principals, by name.
    pub principals: BTreeMap<String, PrincipalPolicy>,
    /// The grants of all other principals.
    pub anyone: Grants,
    /// Tools that may not be called until an administrator releases them.
    pub quarantine: BTreeSet<String>,
    /// How requests for groups are handled.
    pub requests: RequestRules,
    /// The initial states of sessions, and when an idle session expires.
    pub sessions: SessionRules,
    /// The settings of states, by name.
    pub states: BTreeMap<StateName, StatePolicy>,
    /// Whether calls with invalid input use up the rate limit.
    pub count_invalid: bool,
    /// How tools that the policy does not name are handled.
    pub unlisted: UnlistedTools,
    /// The audit rules.
    pub audit: AuditRules,
    /// The time zone for conditions.
    pub zone: TimeZone,
}

/// The rules of one tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPolicy {
    /// The kind of feature that the rules apply to.
    pub kind: FeatureKind,
    /// The name in calls; for other kinds a name, an address or a pattern of them.
    pub name: String,
    /// The only server that the rules apply to; `None` is any server. The names of tools include their
    /// server.
    pub server: Option<String>,
    /// The display name.
    pub title: Option<String>,
    /// Its groups; if the list is empty, only a request for every group reaches the tool.
    pub groups: Vec<GroupName>,
    /// The state a successful call leads to.
    pub next_state: Option<StateName>,
    /// The states it is available in.
    pub states: StateSet,
    /// The arguments of a successful call that calls in the next state must repeat.
    pub binds: Vec<Pointer>,
    /// Whether a call uses up a single-use state that the tool names, and must repeat the values bound
    /// there.
    pub uses_state: bool,
    /// Whether callers make the calls themselves: no server behind a gateway has the tool.
    pub outside: bool,
    /// The permissions that a principal must hold.
    pub permissions: Vec<Permission>,
    /// Its rate limits.
    pub limits: ToolLimits,
    /// The schema of its arguments; an empty schema is not checked.
    pub input_schema: Value,
    /// The schema of its results.
    pub output_schema: Value,
    /// How a result that does not satisfy the output schema is handled.
    pub output_mode: OutputMode,
    /// A definition in another file that contains the schemas.
    pub definition: Option<DefinitionRef>,
    /// Its version.
    pub version: Option<String>,
    /// The place of the tool in the policy.
    pub pointer: Pointer,
}

/// The settings of a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatePolicy {
    /// Whether a single call uses it up.
    pub single_use: bool,
}

/// In which states a tool is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateSet {
    /// In all states.
    Every,
    /// In these states; an empty set means never.
    Only(BTreeSet<StateName>),
}

/// A definition in a file, read by canon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionRef {
    /// The file, relative to the policy.
    pub file: String,
    /// The tool's name in it.
    pub tool: String,
    /// The place of the reference in the policy.
    pub pointer: Pointer,
}

/// How a result that does not satisfy the output schema is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputMode {
    /// The result is not checked.
    Off,
    /// The fault is recorded.
    #[default]
    Warn,
    /// The call counts as failed.
    Enforce,
}

/// The limits of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolLimits {
    /// For each principal.
    pub agent: Option<Limit>,
    /// For all principals together.
    pub tool: Option<Limit>,
}

/// The settings of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupPolicy {
    /// Its purpose.
    pub description: Option<String>,
    /// When it is active; without a condition it always is.
    pub when: Option<Condition>,
}

/// The grants of a principal or role.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    /// Roles whose grants are included.
    pub roles: Vec<String>,
    /// Groups that may be requested; `None` and an empty list differ.
    pub groups: Option<Vec<GroupName>>,
    /// The groups a request without groups asks for.
    pub default_groups: Option<Vec<GroupName>>,
    /// The state in which sessions start.
    pub initial_state: Option<StateName>,
    /// Permissions.
    pub permissions: Vec<PermissionPattern>,
    /// What is denied even if it is granted.
    pub deny: DenyRules,
    /// The place of the grants in the policy.
    pub pointer: Pointer,
}

/// What is denied even if it is granted.
#[derive(Clone, Debug, Default)]
pub struct DenyRules {
    /// Every tool of these groups.
    pub groups: Vec<GroupName>,
    /// These permissions.
    pub permissions: Vec<PermissionPattern>,
    /// These tools.
    pub tools: Vec<String>,
    /// Features that these patterns of names and addresses match, by kind.
    pub features: Vec<(FeatureKind, String)>,
}

/// A principal: its kind and its grants.
#[derive(Clone, Debug, Default)]
pub struct PrincipalPolicy {
    /// Whether it is a person, an agent or a service.
    pub kind: PrincipalKind,
    /// Its grants.
    pub grants: Grants,
}

/// The kind of a principal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrincipalKind {
    /// A program that makes its own decisions.
    #[default]
    Agent,
    /// A person.
    User,
    /// A program that follows fixed instructions.
    Service,
}

/// How requests for groups are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestRules {
    /// Whether a request for a group without tools is denied.
    pub strict_groups: bool,
    /// How a request for more groups than are granted is handled.
    pub excess: ExcessGroups,
}

/// How a request for more groups than are granted is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExcessGroups {
    /// The request is denied as a whole.
    #[default]
    Reject,
    /// The request gets the groups that are granted.
    Narrow,
}

/// How tools that are learned from servers and that the policy does not name are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnlistedTools {
    /// They can be called under the defaults that their discoverer sets.
    #[default]
    Serve,
    /// They are hidden, as if they did not exist.
    Hide,
}

/// The initial states of sessions, and when an idle session expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRules {
    /// The states in which a client may start a session, besides the principal's own initial state.
    pub initial_states: StateSet,
    /// How long an idle session is kept.
    pub idle: Duration,
}

/// The audit rules: what is recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRules {
    /// When a decision counts as recorded.
    pub durability: Durability,
    /// Whether calls are denied while the log cannot be written.
    pub on_failure: AuditFailureMode,
    /// How arguments are stored.
    pub arguments: ArgumentRecording,
    /// Places whose values are never stored.
    pub redact_pointers: Vec<Pointer>,
    /// Member names whose values are never stored; `*` stands for any text, and case, `_` and `-` are
    /// ignored.
    pub redact_keys: Vec<String>,
    /// The maximum size of one record in bytes; longer content is recorded as a digest.
    pub record_bytes: usize,
    /// How many denials of one principal get their own record; the rest are summarized.
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
    /// When it is queued in memory.
    Async,
}

impl Durability {
    /// The word used in a policy.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Group => "group",
            Self::Async => "async",
        }
    }
}

/// What happens when the log cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditFailureMode {
    /// Calls are denied.
    #[default]
    Deny,
    /// Calls continue unrecorded.
    Allow,
}

/// How arguments are stored in records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArgumentRecording {
    /// Unchanged.
    Full,
    /// Redacted.
    #[default]
    Redacted,
    /// As a digest only.
    Digest,
}

/// A part of a policy that is legal but surprising.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyWarning {
    /// Its place.
    pub pointer: Pointer,
    /// The message.
    pub message: String,
}

/// A policy, with warnings about surprising parts.
#[derive(Clone, Debug)]
pub struct PolicyWithWarnings {
    /// The policy.
    pub policy: Policy,
    /// The warnings.
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
            unlisted: UnlistedTools::default(),
            audit: AuditRules::default(),
            zone: TimeZone::UTC,
        }
    }
}

impl ToolPolicy {
    /// A tool of which only the name is known: in the default group, in every state, for every principal,
    /// with 60 calls a minute for each principal.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            kind: FeatureKind::Tool,
            name: name.to_owned(),
            server: None,
            title: None,
            groups: vec![DEFAULT_GROUP.clone()],
            next_state: None,
            states: StateSet::Every,
            binds: Vec::new(),
            uses_state: true,
            outside: false,
            permissions: Vec::new(),
            limits: ToolLimits {
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
            initial_states: StateSet::Only(BTreeSet::new()),
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
            on_failure: AuditFailureMode::default(),
            arguments: ArgumentRecording::default(),
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
    /// The rules of tools, then those of all other features.
    pub(crate) fn all_rules(&self) -> impl Iterator<Item = &ToolPolicy> {
        self.tools.iter().chain(&self.features)
    }
}

impl StateSet {
    /// These states and the given ones.
    #[must_use]
    pub(crate) fn with<'s>(&self, more: impl IntoIterator<Item = &'s StateName>) -> Self {
        match self {
            Self::Every => Self::Every,
            Self::Only(states) => {
                let more = more.into_iter().cloned();
                Self::Only(states.iter().cloned().chain(more).collect())
            }
        }
    }

    /// Whether a state is among them.
    #[must_use]
    pub fn contains(&self, state: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Only(states) => states.contains(state),
        }
    }
}

/// The maximum length of a group name, and its maximum number of levels.
const MAX_GROUP: (usize, usize) = (256, 16);

/// Whether this is a valid group name; the limits keep the lookup of all parent groups cheap.
#[must_use]
pub(crate) fn is_group_name(name: &str) -> bool {
    let (length, levels) = MAX_GROUP;
    name.len() <= length && name.bytes().filter(|byte| *byte == b'/').count() < levels
}

/// A group and all its parent groups, itself first: `a/b/c`, `a/b`, `a`.
pub fn group_and_parents(group: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(group), |group| {
        group.rsplit_once('/').map(|(parent, _)| parent)
    })
    .filter(|group| !group.is_empty())
}
