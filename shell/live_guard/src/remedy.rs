//! What an operator or a client can change so that a tool becomes visible, in exact terms: following a
//! remedy must work.

use toolwarden_guard::{DEFAULT_GROUP, Denial, EVERY_GROUP, Guard, ReasonCode, Request, ToolFacts};
use toolwarden_model::GroupName;

/// What a remedy must know about the client.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemedyClient {
    /// Whether its session has left the state it started in.
    pub(super) has_left_initial_state: bool,
    /// Whether it names the groups it requests.
    pub(super) names_groups: bool,
}

/// The remedy for the denial of one tool to one principal.
pub(super) fn remedy(
    guard: &Guard,
    request: &Request<'_>,
    tool: &str,
    denial: &Denial,
    client: RemedyClient,
) -> String {
    let Some(facts) = guard.facts(request.principal, tool) else {
        return denial.remedy().to_owned();
    };
    let case = RemedyContext {
        guard,
        request,
        tool,
        facts,
        client,
    };
    match denial.code {
        ReasonCode::FilteredByGroup | ReasonCode::GroupsNotGranted => case.group_remedy(),
        ReasonCode::FilteredByState => case.state_remedy(),
        ReasonCode::MissingPermissions => case.permission_remedy(),
        ReasonCode::Allowed
        | ReasonCode::UnknownTool
        | ReasonCode::NotOffered
        | ReasonCode::MalformedName
        | ReasonCode::Quarantined
        | ReasonCode::GroupsBeyondSession
        | ReasonCode::UnknownGroup
        | ReasonCode::GroupOff
        | ReasonCode::DeniedByRule
        | ReasonCode::StateUsed
        | ReasonCode::RateLimited
        | ReasonCode::RateCapacity
        | ReasonCode::InvalidInput
        | ReasonCode::NumberOutOfRange
        | ReasonCode::KeyCase
        | ReasonCode::ApprovalMismatch
        | ReasonCode::BrokenSchema
        | ReasonCode::TooManySessions
        | ReasonCode::AuditUnavailable => denial.remedy().to_owned(),
    }
}

struct RemedyContext<'c> {
    guard: &'c Guard,
    request: &'c Request<'c>,
    tool: &'c str,
    facts: ToolFacts,
    client: RemedyClient,
}

impl RemedyContext<'_> {
    fn group_remedy(&self) -> String {
        let (guard, principal) = (self.guard, self.request.principal);
        let kept = self.request.groups.names();
        // Groups without tools are left out: under `strict_groups` the request would be denied.
        let kept = kept.filter(|it| **it == EVERY_GROUP || guard.has_tools_in_group(it));
        let kept: Vec<&GroupName> = kept.filter(|it| guard.may_request(principal, it)).collect();
        let Some(own) = self.facts.groups.first() else {
            return self.ungrouped_remedy();
        };
        if let Some(granted) = &self.facts.granted_group {
            return self.group_request_hint(&with_group(&kept, granted));
        }
        let entry = format!("principals.{principal}");
        let grants = with_group(&guard.granted_groups(principal), own);
        let mut text = format!(
            "Grant group '{own}': set `{entry}.groups: [{}]` in the policy.",
            joined(&grants)
        );
        if !guard.lists_principal(principal) {
            text.push_str(
                " The policy does not name this principal yet: its own entry replaces the grants of \
                 `*`, so repeat those it needs.",
            );
        }
        let asks_for_all = !self.client.names_groups
            && !guard.has_default_groups(principal)
            && !grants.contains(&&DEFAULT_GROUP);
        if !asks_for_all {
            text = format!(
                "{text} {}",
                self.group_request_hint(&with_group(&kept, own))
            );
        }
        text
    }

    /// How a client requests these groups.
    fn group_request_hint(&self, groups: &[&GroupName]) -> String {
        let quoted: Vec<String> = groups.iter().map(|it| format!("\"{it}\"")).collect();
        let means = format!(
            "Let the client ask for it: by the header `Toolwarden-Groups: {}`, by \
             `_meta[\"toolwarden/groups\"]: [{}]`",
            joined(groups),
            quoted.join(", "),
        );
        let path = groups.iter().all(|it| !it.as_str().contains('/'));
        let path = match path {
            true => format!(", or by the path `/mcp/g/{}`", joined_by(groups, ",")),
            false => String::new(),
        };
        let policy = match self.client.names_groups {
            false => format!(
                ". For clients that name no groups, set `principals.{}.default_groups: [{}]` in the \
                 policy",
                self.request.principal,
                joined(groups)
            ),
            true => String::new(),
        };
        format!("{means}{path}{policy}.")
    }

    /// The remedy for a tool that only a request for every group reaches.
    fn ungrouped_remedy(&self) -> String {
        let (guard, principal) = (self.guard, self.request.principal);
        if guard.grants_every_group(principal) {
            return self.group_request_hint(&[&EVERY_GROUP]);
        }
        let mut asked = self.request.groups.names();
        let group = asked.find(|it| guard.may_request(principal, it));
        format!(
            "The tool is in no group: set `tools.{}.group: [{}]` in the policy.",
            self.tool,
            group.unwrap_or(&DEFAULT_GROUP)
        )
    }

    fn state_remedy(&self) -> String {
        let (guard, request) = (self.guard, self.request);
        let states = self.facts.states.as_deref().unwrap_or_default();
        let Some(first) = states.first() else {
            return format!(
                "The tool is available in no state: name states in \
                 `tools.{}.available_in_states`, or remove the key.",
                self.tool
            );
        };
        let leads = guard
            .admit(request, self.tool)
            .err()
            .map(|it| it.next_tools);
        let leads: Vec<String> = leads.iter().flatten().map(|it| format!("`{it}`")).collect();
        let mut ways = Vec::new();
        if !leads.is_empty() {
            ways.push(format!(
                "Call {} successfully first in this session",
                leads.join(" or ")
            ));
        }
        let allowed = &guard.sessions().initial_states;
        let session = if self.client.has_left_initial_state {
            "a new session"
        } else {
            "the session"
        };
        match states.iter().find(|it| allowed.contains(it.as_str())) {
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

    fn permission_remedy(&self) -> String {
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

fn with_group<'g>(groups: &[&'g GroupName], more: &'g GroupName) -> Vec<&'g GroupName> {
    let mut groups = groups.to_vec();
    if !groups.contains(&more) {
        groups.push(more);
    }
    groups
}

fn joined(groups: &[&GroupName]) -> String {
    joined_by(groups, ", ")
}

fn joined_by(groups: &[&GroupName], separator: &str) -> String {
    let names: Vec<&str> = groups.iter().map(|it| it.as_str()).collect();
    names.join(separator)
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}
