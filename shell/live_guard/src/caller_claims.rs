//! What the credential of a caller says about it.

use std::sync::Arc;

/// The claims of a caller's credential, besides its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallerClaims {
    /// The issuer of its token, which vouches for the name.
    pub issuer: Option<Arc<str>>,
    /// The roles of the policy that its token gives it, sorted. If there are none, the policy alone decides
    /// what the caller may do.
    pub roles: Arc<[Box<str>]>,
}
