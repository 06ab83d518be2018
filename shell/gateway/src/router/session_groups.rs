//! The groups of a request, within those that its session was opened with.

use toolwarden_guard::Denial;
use toolwarden_live_guard::Call;
use toolwarden_mcp::RawObject;

use super::{Gateway, RpcReply};
use crate::request_context::RequestContext;

impl Gateway {
    /// Gives a call the groups that its request asks for. The groups requested when the session was opened bound
    /// every later request: it may ask for fewer groups, not for more.
    pub(super) fn apply_groups(
        &self,
        context: &RequestContext,
        meta: Option<&RawObject<'_>>,
        call: &mut Call<'_>,
        refused: impl FnOnce(&Denial) -> RpcReply,
    ) -> Result<(), RpcReply> {
        call.groups = context.groups(meta).map_err(RpcReply::Error)?;
        let opened = context.conversation.groups.as_ref();
        let within = self.shared.guard.check_session_groups(call, opened);
        within.map_err(|denial| refused(&denial))
    }
}
