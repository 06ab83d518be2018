//! The groups of a request, within those that its session was opened with.

use toolwarden_guard::Denial;
use toolwarden_mcp::Members;
use toolwarden_warden::guard::Call;

use super::asked::Asked;
use super::{Gateway, Reply};

impl Gateway {
    /// Gives a call the groups that its request asks for. What the session asked for when it was opened bounds
    /// every later request: it may ask for less, not for more.
    pub(super) fn ask_for_groups(
        &self,
        asked: &Asked,
        meta: Option<&Members<'_>>,
        call: &mut Call<'_>,
        refused: impl FnOnce(&Denial) -> Reply,
    ) -> Result<(), Reply> {
        call.groups = asked.groups(meta)?;
        let opened = asked.conversation.groups.as_ref();
        let within = self.shared.guard.within_session(call, opened);
        within.map_err(|denial| refused(&denial))
    }
}
