//! What an operator or a client can change so that a tool becomes visible, named exactly: following a
//! remedy has to work.

use toolwarden_guard::{Code, DEFAULT_GROUP, Denial, EVERY, Guard, Request, ToolFacts};

/// What a remedy has to know of the client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    /// Whether its session has left the state it started in.
    pub(super) started: bool,
    /// Whether it names the groups it asks for.
    pub(super) names_groups: bool,
}

/// The remedy for the refusal of one tool to one principal.
pub(super) fn remedy(
    guard: &Guard,
    request: &Request<'_>,
    tool: &str,
    denial: &Denial,
    client: Client,
) -> String {
    let Some(facts) = guard.facts(request.principal, tool) else {
        return denial.remedy().to_owned();
    };
    let case = Case {
        guard,
        request,
        tool,
        facts,
        client,
    };
    match denial.code {
        Code::FilteredByGroup | Code::GroupsNotGranted => case.about_groups(),
        Code::FilteredByState => case.about_state(),
        Code::MissingPermissions => case.about_permissions(),
        Code::Allowed
        | Code::UnknownTool
        | Code::NotOffered
        | Code::MalformedName
        | Code::Quarantined
        | Code::GroupsBeyondSession
        | Code::UnknownGroup
        | Code::GroupOff
        | Code::DeniedByRule
        | Code::StateUsed
        | Code::RateLimited
        | Code::RateCapacity
        | Code::InvalidInput
        | Code::NumberOutOfRange
        | Code::KeyCase
        | Code::ApprovalMismatch
        | Code::BrokenSchema
        | Code::TooManySessions
        | Code::AuditUnavailable => denial.remedy().to_owned(),
    }
}

struct Case<'c> {
    guard: &'c Guard,
    request: &'c Request<'c>,
    tool: &'c str,
    facts: ToolFacts,
    client: Client,
}

impl Case<'_> {
    fn about_groups(&self) -> String {
        let (guard, principal) = (self.guard, self.request.principal);
        let kept = self.request.groups.names();
        // Groups without tools are left out: under `strict_groups` they would be refused.
        let kept = kept.filter(|it| *it == EVERY || guard.has_tools_in_group(it));
        let kept: Vec<&str> = kept.filter(|it| guard.may_request(principal, it)).collect();
        let Some(own) = self.facts.groups.first() else {
            return self.about_no_group();
        };
        if let Some(granted) = &self.facts.granted_group {
            return self.ask_for(&with(&kept, granted));
        }
        let entry = format!("principals.{principal}");
        let grants = with(&guard.granted_groups(principal), own);
        let mut text = format!(
            "Grant group '{own}': set `{entry}.groups: [{}]` in the policy.",
            grants.join(", ")
        );
        if !guard.names_principal(principal) {
            text.push_str(
                " The policy does not name this principal yet: its own entry replaces the grants of \
                 `*`, so repeat those it needs.",
            );
        }
        let asks_for_all = !self.client.names_groups
            && !guard.says_default_groups(principal)
            && !grants.contains(&DEFAULT_GROUP);
        if !asks_for_all {
            text = format!("{text} {}", self.ask_for(&with(&kept, own)));
        }
        text
    }

    /// How a client asks for these groups.
    fn ask_for(&self, groups: &[&str]) -> String {
        let quoted: Vec<String> = groups.iter().map(|it| format!("\"{it}\"")).collect();
        let means = format!(
            "Let the client ask for it: by the header `Toolwarden-Groups: {}`, by \
             `_meta[\"toolwarden/groups\"]: [{}]`",
            groups.join(", "),
            quoted.join(", "),
        );
        let path = groups.iter().all(|it| !it.contains('/'));
        let path = match path {
            true => format!(", or by the path `/mcp/g/{}`", groups.join(",")),
            false => String::new(),
        };
        let policy = match self.client.names_groups {
            false => format!(
                ". For clients that name no groups, set `principals.{}.default_groups: [{}]` in the \
                 policy",
                self.request.principal,
                groups.join(", ")
            ),
            true => String::new(),
        };
        format!("{means}{path}{policy}.")
    }

    /// Of a tool that only a request for every group reaches.
    fn about_no_group(&self) -> String {
        let (guard, principal) = (self.guard, self.request.principal);
        if guard.grants_every_group(principal) {
            return self.ask_for(&[EVERY]);
        }
        let mut asked = self.request.groups.names();
        let group = asked.find(|it| guard.may_request(principal, it));
        format!(
            "The tool is in no group: set `tools.{}.group: [{}]` in the policy.",
            self.tool,
            group.unwrap_or(DEFAULT_GROUP)
        )
    }

    fn about_state(&self) -> String {
        let (guard, request) = (self.guard, self.request);
        let states = self.facts.states.as_deref().unwrap_or_default();
        let Some(first) = states.first() else {
            return format!(
                "The tool is available in no state: name states in \
                 `tools.{}.available_in_states`, or remove the key.",
                self.tool
            );
        };
        let leads = guard.admit(request, self.tool).err().map(|it| it.leads);
        let leads: Vec<String> = leads.iter().flatten().map(|it| format!("`{it}`")).collect();
        let mut ways = Vec::new();
        if !leads.is_empty() {
            ways.push(format!(
                "Call {} successfully first in this session",
                leads.join(" or ")
            ));
        }
        let allowed = &guard.sessions().initial_states;
        let session = if self.client.started {
            "a new session"
        } else {
            "the session"
        };
        match states.iter().find(|it| allowed.contain(it)) {
            Some(state) => ways.push(format!(
                "start {session} in state '{state}' by `_meta[\"toolwarden/state\"]: \"{state}\"` in \
                 its requests up to the first call"
            )),
            None => ways.push(format!(
                "start {session} in state '{first}': set `principals.{}.initial_state: {first}` in \
                 the policy",
                request.principal
            )),
        }
        ways.push(format!(
            "add '{}' to `tools.{}.available_in_states`",
            request.state, self.tool
        ));
        capitalized(&format!("{}.", ways.join("; or ")))
    }

    fn about_permissions(&self) -> String {
        let names = self.facts.lacking.join(", ");
        let principal = self.request.principal;
        if self.facts.lacking_is_denied {
            return format!(
                "Remove what covers {names} from `deny.permissions` of `principals.{principal}` and \
                 its roles."
            );
        }
        format!("Add {names} to `principals.{principal}.permissions`, or to one of its roles.")
    }
}

fn with<'g>(groups: &[&'g str], more: &'g str) -> Vec<&'g str> {
    let mut groups = groups.to_vec();
    if !groups.contains(&more) {
        groups.push(more);
    }
    groups
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}
