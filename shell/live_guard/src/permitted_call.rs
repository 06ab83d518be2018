//! Permission to send one call of a tool to its server.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;
use toolwarden_guard::CallDestination;
use toolwarden_model::json::RawObject;
use toolwarden_model::json::parse;
use toolwarden_model::{ExposedName, OwnName, ServerName};

use super::open_call::OpenCall;

/// How often a server may ask for more input before it answers one call.
pub const MAX_INPUT_ROUNDS: usize = 16;

/// The parameters of a `tools/call` request, read once: the guard decides by the same text that is sent.
#[derive(Debug)]
pub struct CallParams<'p> {
    text: &'p RawValue,
    members: RawObject<'p>,
    meta: Option<RawObject<'p>>,
    name: ExposedName,
    arguments: Arc<Value>,
}

/// Why parameters are not those of a call.
#[derive(Debug, Error)]
pub enum CallParamsError {
    /// They are not an object.
    #[error("params is not an object: {0}")]
    NotAnObject(#[source] serde_json::Error),
    /// A member is written twice.
    #[error("params has `{0}` twice")]
    DuplicateMember(String),
    /// They do not name a tool.
    #[error("params.name is not a string")]
    NoName,
    /// The arguments are not JSON that can be read.
    #[error("params.arguments cannot be read: {0}")]
    Arguments(#[source] toolwarden_model::json::JsonError),
    /// A key is written twice: two readers could see different arguments.
    #[error("params.arguments{0} is written twice")]
    DuplicateKey(String),
}

impl<'p> CallParams<'p> {
    /// Reads parameters.
    ///
    /// # Errors
    /// They are not those of a call, or can be read in two ways.
    pub fn read(text: &'p RawValue) -> Result<Self, CallParamsError> {
        Self::read_checked(text, |_, _| Ok(()))
    }

    /// Reads parameters. A check of the caller's own sees the members, and `_meta` if it is an object, before they are
    /// understood.
    ///
    /// # Errors
    /// Like [`Self::read`], or the check fails.
    pub fn read_checked<E: From<CallParamsError>>(
        text: &'p RawValue,
        check: impl FnOnce(&RawObject<'p>, Option<&RawObject<'p>>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let members = RawObject::parse(text).map_err(CallParamsError::NotAnObject)?;
        if let Some(twice) = members.duplicate_key() {
            return Err(CallParamsError::DuplicateMember(twice.to_owned()).into());
        }
        let meta = members.received_object("_meta");
        check(&members, meta.as_ref())?;
        let name = members.text("name").ok_or(CallParamsError::NoName)?;
        let name = ExposedName::new(&*name);
        let arguments = match members.get("arguments") {
            None | Some("null") => Value::Object(serde_json::Map::new()),
            Some(text) => {
                let parsed = parse(text).map_err(CallParamsError::Arguments)?;
                if let Some(twice) = parsed.duplicates.first() {
                    let twice = twice.pointer.to_string();
                    return Err(CallParamsError::DuplicateKey(twice).into());
                }
                parsed.value
            }
        };
        Ok(Self {
            text,
            members,
            meta,
            name,
            arguments: Arc::new(arguments),
        })
    }

    /// The text as received.
    #[must_use]
    pub const fn text(&self) -> &'p RawValue {
        self.text
    }

    /// Its members.
    #[must_use]
    pub const fn members(&self) -> &RawObject<'p> {
        &self.members
    }

    /// Its `_meta`, if that is an object.
    #[must_use]
    pub const fn meta(&self) -> Option<&RawObject<'p>> {
        self.meta.as_ref()
    }

    /// The tool as the caller names it.
    #[must_use]
    pub const fn name(&self) -> &ExposedName {
        &self.name
    }

    /// The arguments that the guard decides by.
    #[must_use]
    pub const fn arguments(&self) -> &Arc<Value> {
        &self.arguments
    }

    /// The text of the arguments.
    #[must_use]
    pub fn raw_arguments(&self) -> Option<Box<RawValue>> {
        RawValue::from_string(self.members.get("arguments")?.to_owned()).ok()
    }
}

/// One call of one tool of one server with the parameters that the guard decided on.
///
/// Only [`OpenCall::permitted_call`] makes one, once for each permitted call:
///
/// ```compile_fail
/// use toolwarden_live_guard::PermittedCall;
/// use serde_json::value::RawValue;
/// let forged = PermittedCall { params: RawValue::NULL.to_owned(), wire: None, grant: panic!() };
/// ```
///
/// and it cannot be sent twice, for it cannot be copied:
///
/// ```compile_fail
/// fn twice(call: toolwarden_live_guard::PermittedCall) {
///     let first = call.clone();
///     drop((first, call));
/// }
/// ```
///
/// ```
/// fn once(call: toolwarden_live_guard::PermittedCall) -> toolwarden_live_guard::SentCall {
///     call.into_sent()
/// }
/// ```
#[derive(Debug)]
#[must_use = "a permit that is dropped cannot be had again"]
pub struct PermittedCall {
    params: Box<RawValue>,
    /// The parameters of one sending, such as with a progress token; later input rounds start from `params`.
    wire: Option<Box<RawValue>>,
    grant: Grant,
}

/// A permitted call that was handed to a transport. It turns back into a [`PermittedCall`] only where
/// the same call may be written once more.
#[derive(Debug)]
pub struct SentCall {
    params: Box<RawValue>,
    wire: Option<Box<RawValue>>,
    grant: Grant,
}

/// What a call may do, whatever its envelope looks like.
#[derive(Debug)]
struct Grant {
    /// Where the guard found the tool when it decided.
    destination: CallDestination,
    /// The tool as the caller names it.
    exposed_tool: ExposedName,
    /// Whether an approval allows exactly one call.
    is_single_use: bool,
    was_retried: bool,
    rounds: usize,
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PermitError {
    /// The call had its permit already.
    #[error("the permit of this call is used up")]
    UsedUp,
    /// No server behind the gateway has the tool.
    #[error("no server has this tool")]
    NoServer,
    /// The parameters are not those that were decided on.
    #[error("these are not the parameters that were permitted")]
    OtherCall,
}

impl OpenCall {
    /// The permission to send this call to the server of the tool that the guard decided on. It can be had once. Keys
    /// of `_meta` that begin with `private_meta` are for the gateway, and are not sent on.
    ///
    /// # Errors
    /// It was had before, no server has the tool, or the parameters are not those that the guard decided on.
    pub fn permitted_call(
        &mut self,
        params: &CallParams<'_>,
        private_meta: &str,
    ) -> Result<PermittedCall, PermitError> {
        // The same value in memory, so that no other parameters can pass for those that were decided on.
        let is_same = self.decided_arguments().as_ptr() == Arc::as_ptr(&params.arguments);
        if !is_same || *self.tool() != *params.name.as_str() {
            return Err(PermitError::OtherCall);
        }
        let destination = self.destination().ok_or(PermitError::NoServer)?.clone();
        if !self.use_permit() {
            return Err(PermitError::UsedUp);
        }
        let own = destination.tool.as_str();
        let renamed = (own != params.name.as_str()).then_some(("name", own));
        let meta = params.meta.as_ref();
        let text = params
            .members
            .forwarded(params.text, meta, private_meta, renamed);
        Ok(PermittedCall {
            params: text.into_owned(),
            wire: None,
            grant: Grant {
                destination,
                exposed_tool: params.name.clone(),
                is_single_use: self.uses_up_state(),
                was_retried: false,
                rounds: 0,
            },
        })
    }
}

impl PermittedCall {
    /// The tool as the caller names it.
    #[must_use]
    pub const fn exposed_tool(&self) -> &ExposedName {
        &self.grant.exposed_tool
    }

    /// The server that may get it, and only that one.
    #[must_use]
    pub const fn server(&self) -> &ServerName {
        &self.grant.destination.server
    }

    /// The tool as the server names it.
    #[must_use]
    pub const fn tool(&self) -> &OwnName {
        &self.grant.destination.tool
    }

    /// Whether it was sent before, over a session that had expired.
    #[must_use]
    pub const fn is_retry(&self) -> bool {
        self.grant.was_retried
    }

    /// The parameters as they are sent.
    #[must_use]
    pub fn params(&self) -> &RawValue {
        &self.params
    }

    /// Changes `_meta`; every other member must stay as it is.
    ///
    /// # Errors
    /// The change would send another call. The call is as before.
    pub fn rewrap(
        &mut self,
        rewrap: impl FnOnce(&RawValue) -> Cow<'_, RawValue>,
    ) -> Result<(), PermitError> {
        if let Cow::Owned(params) = rewrap(&self.params) {
            self.check_same_call(&params)?;
            self.params = params;
        }
        Ok(())
    }

    /// As [`Self::rewrap`], for this sending and its retry only.
    ///
    /// # Errors
    /// The change would send another call. The call is as before.
    pub fn stamp(
        &mut self,
        stamp: impl FnOnce(&RawValue) -> Cow<'_, RawValue>,
    ) -> Result<(), PermitError> {
        if let Cow::Owned(wire) = stamp(&self.params) {
            self.check_same_call(&wire)?;
            self.wire = Some(wire);
        }
        Ok(())
    }

    fn check_same_call(&self, params: &RawValue) -> Result<(), PermitError> {
        let old = RawObject::parse_optional(Some(&self.params));
        let new = RawObject::parse_optional(Some(params));
        // Everything but `_meta` is part of the call: servers act on further members, too.
        let is_call = |(key, _): &(&str, &str)| *key != "_meta";
        let is_same = old.iter().filter(is_call).eq(new.iter().filter(is_call));
        if is_same && new.duplicate_key().is_none() {
            Ok(())
        } else {
            Err(PermitError::OtherCall)
        }
    }

    /// Hands the call over to a transport, which writes [`SentCall::params`] once.
    #[must_use]
    pub fn into_sent(self) -> SentCall {
        SentCall {
            params: self.params,
            wire: self.wire,
            grant: self.grant,
        }
    }
}

impl SentCall {
    /// The parameters to write.
    #[must_use]
    pub fn params(&self) -> &RawValue {
        self.wire.as_deref().unwrap_or(&self.params)
    }

    /// The same call once more, where the server says that it did not read it. A server may say so of what it
    /// has acted upon, so a call under a single-use approval that may have arrived is not sent again.
    ///
    /// # Errors
    /// It may not be sent again.
    pub fn retry(mut self, may_have_arrived: bool) -> Result<PermittedCall, Self> {
        if self.grant.was_retried || (may_have_arrived && self.grant.is_single_use) {
            return Err(self);
        }
        self.grant.was_retried = true;
        Ok(PermittedCall {
            params: self.params,
            wire: self.wire,
            grant: self.grant,
        })
    }

    /// The same call with the input that its server asked for, both as JSON text. A server gets so many
    /// rounds and no more.
    #[must_use]
    pub fn with_input(
        mut self,
        responses: Option<&str>,
        request_state: Option<&str>,
    ) -> Option<PermittedCall> {
        self.grant.rounds += 1;
        if self.grant.rounds >= MAX_INPUT_ROUNDS {
            return None;
        }
        let params = with_input(Some(&self.params), responses, request_state);
        // Another request, which may be retried by itself.
        self.grant.was_retried = false;
        Some(PermittedCall {
            params,
            wire: None,
            grant: self.grant,
        })
    }
}

/// Parameters with the input that a server asked for.
#[must_use]
pub fn with_input(
    params: Option<&RawValue>,
    responses: Option<&str>,
    request_state: Option<&str>,
) -> Box<RawValue> {
    let mut members = RawObject::parse_optional(params);
    members.remove("inputResponses");
    members.remove("requestState");
    if let Some(responses) = responses {
        members.set("inputResponses", responses);
    }
    if let Some(state) = request_state {
        members.set("requestState", state);
    }
    members.to_raw()
}
