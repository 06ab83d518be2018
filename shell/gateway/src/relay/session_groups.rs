//! The groups of a request, within those that its session was opened with.

use toolwarden_guard::{EVERY, RequestedGroups, group_and_parents};
use toolwarden_mcp::Members;
use toolwarden_warden::guard::Call;
use toolwarden_warden::settings::DenialForm;

use super::asked::Asked;
use super::denial::denied;
use super::{Gateway, Reply};

impl Gateway {
    /// The groups a request asks for. What the session asked for when it was opened bounds every later
    /// request: it may ask for less, not for more.
    pub(super) fn session_groups(
        &self,
        asked: &Asked,
        meta: Option<&Members<'_>>,
        call: &Call<'_>,
        form: DenialForm,
    ) -> Result<Option<RequestedGroups>, Reply> {
        let groups = asked.groups(meta)?;
        let (Some(opened), Some(wanted)) = (&asked.conversation.groups, &groups) else {
            return Ok(groups);
        };
        let beyond = beyond(opened, wanted);
        let guard = &self.shared.guard;
        if beyond.is_empty() || guard.refuses_groups(call, &beyond) {
            return Ok(groups);
        }
        let denial = guard.refuse_groups(call, &beyond);
        Err(denied(&denial, form))
    }
}

/// The groups that are not within those a session was opened with.
fn beyond<'g>(opened: &RequestedGroups, wanted: &'g RequestedGroups) -> Vec<&'g str> {
    let within = |name: &str| {
        let mut around = group_and_parents(name);
        opened.names().any(|it| it == EVERY) || around.any(|it| opened.names().any(|own| own == it))
    };
    wanted.names().filter(|name| !within(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_may_narrow_and_not_widen() {
        let groups = |names: &[&str]| names.iter().copied().collect::<RequestedGroups>();
        for (opened, wanted, over) in [
            (&["read"][..], &["read"][..], &[][..]),
            (&["read"], &[], &[]),
            (&["read"], &["read/files"], &[]),
            (&["read/files"], &["read"], &["read"]),
            (&["read"], &["read", "write", "*"], &["write", "*"]),
            (&["*"], &["write", "*"], &[]),
            (&[], &["read"], &["read"]),
        ] {
            assert_eq!(beyond(&groups(opened), &groups(wanted)), over, "{opened:?}");
        }
    }
}
