//! Requests that wait for input: a handshake-era server asks the agent while it works, and a stateless agent
//! has to retry its request with the input.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use toolwarden_live_guard::{CallParams, OpenCall};
use toolwarden_mcp::RawObject;
use toolwarden_mcp::error_codes::INVALID_PARAMS;
use toolwarden_model::{Fingerprint, OwnName};

use super::forward::{ForwardOutcome, OutgoingRequest};
use super::server_messages::{RequestMessageHandler, respond_to_server};
use super::{Gateway, RpcReply};
use crate::catalog::ServerCatalog;
use crate::pending_inputs::{ForwardResult, MAX_PENDING, PendingInput, STATE_PREFIX, TaskGuard};
use crate::request_context::RequestContext;

/// How long further questions of a server are waited for, so that they go out together.
const BATCH_WINDOW: Duration = Duration::from_millis(20);

/// A request that went on after its agent was asked.
pub(super) struct ResumedRequest {
    catalog: Arc<ServerCatalog>,
    tool: OwnName,
    pub(super) open: Option<OpenCall>,
    pub(super) outcome: ForwardOutcome,
}

impl Gateway {
    /// Sends a request whose server may ask the agent meanwhile.
    pub(super) async fn forward_with_pending_input(
        &self,
        context: &Arc<RequestContext>,
        outgoing: OutgoingRequest,
        open: Option<OpenCall>,
    ) -> (Option<OpenCall>, ForwardOutcome) {
        let (asks_in, asks) = mpsc::channel(64);
        let (outcome_in, outcome) = oneshot::channel();
        let params = outgoing.request.params();
        let named = RawObject::parse_optional(params);
        let tool = OwnName::new(named.text("name").as_deref().unwrap_or_default());
        let bound = request_binding(context, outgoing.request.method(), params);
        let (catalog, key) = (Arc::clone(&outgoing.catalog), outgoing.view.key.clone());
        let (gateway, for_work) = (self.clone(), Arc::clone(context));
        let aside = Arc::new(
            RequestMessageHandler::new(self, &outgoing, context).with_question_sender(asks_in),
        );
        let hears = Arc::clone(&aside);
        let work = tokio::spawn(async move {
            let answered = gateway
                .forward_with_handler(&for_work, outgoing, &hears)
                .await;
            // The receiver is gone if the agent left.
            drop(outcome_in.send((open, answered)));
        });
        let parked = PendingInput {
            binding: bound,
            catalog,
            key,
            tool,
            handler: aside,
            outcome,
            questions: asks,
            pending_questions: Vec::new(),
            next: 1,
            _task: TaskGuard(work.abort_handle()),
            since: Instant::now(),
        };
        self.wait_for_input(parked).await
    }

    /// Goes on with a call for which the agent was asked.
    pub(super) async fn resume_call(
        &self,
        context: &Arc<RequestContext>,
        call_params: &CallParams<'_>,
        state: &str,
    ) -> RpcReply {
        // The name is not part of what the state is bound to, for the server has its own.
        let named = self.named(call_params.name());
        let is_same = |parked: &PendingInput| {
            let catalog = named
                .as_ref()
                .and_then(|it| self.server_catalog(it.server.as_str()));
            let named = catalog.zip(named.as_ref());
            named.is_some_and(|(catalog, it)| parked.is_for_item(&catalog, &it.name))
        };
        let resumed = self.resume(
            context,
            "tools/call",
            Some(call_params.text()),
            state,
            is_same,
        );
        match resumed.await {
            Err(reply) => reply,
            Ok(ResumedRequest {
                catalog,
                tool,
                open: Some(open),
                outcome: exchanged,
            }) => {
                self.finish_call(context, &catalog, &tool, open, exchanged)
                    .await
            }
            Ok(ResumedRequest {
                outcome: ForwardOutcome::InputRequired(reply),
                ..
            }) => reply,
            Ok(_) => RpcReply::NoReply,
        }
    }

    /// Goes on with a request for which the agent was asked.
    pub(super) async fn resume(
        &self,
        context: &Arc<RequestContext>,
        method: &str,
        params: Option<&RawValue>,
        state: &str,
        is_same: impl Fn(&PendingInput) -> bool,
    ) -> Result<ResumedRequest, RpcReply> {
        let unknown = || {
            let text = "requestState is unknown, used up or expired; start the request again";
            RpcReply::error(INVALID_PARAMS, text)
        };
        let bound = request_binding(context, method, params);
        let mut parked = {
            let mut waiting = self.shared.pending_inputs.lock();
            let found = waiting
                .get(state)
                .is_some_and(|it| it.binding == bound && is_same(it));
            let taken = if found { waiting.remove(state) } else { None };
            taken.ok_or_else(unknown)?
        };
        parked.handler.attach(context, params);
        let members = RawObject::parse_optional(params);
        let responses = members.object("inputResponses").unwrap_or_default();
        let mut left = Vec::new();
        for (name, ask) in std::mem::take(&mut parked.pending_questions) {
            match responses.get(&name) {
                Some(response) => {
                    let response = RawValue::from_string(response.to_owned());
                    let response = response.map_err(|_| unknown())?;
                    let upstream = &parked.catalog.upstream;
                    respond_to_server(upstream, &parked.key, &ask.id, Ok(response)).await;
                }
                None => left.push((name, ask)),
            }
        }
        parked.pending_questions = left;
        let (catalog, tool) = (Arc::clone(&parked.catalog), parked.tool.clone());
        let (open, exchanged) = self.wait_for_input(parked).await;
        Ok(ResumedRequest {
            catalog,
            tool,
            open,
            outcome: exchanged,
        })
    }

    /// Waits until the server answers or asks.
    async fn wait_for_input(&self, mut parked: PendingInput) -> (Option<OpenCall>, ForwardOutcome) {
        if parked.pending_questions.is_empty() {
            tokio::select! {
                biased;
                outcome = &mut parked.outcome => return finish_forward(outcome),
                ask = parked.questions.recv() => match ask {
                    Some(ask) => parked.add_question(ask),
                    None => {
                        let outcome = (&mut parked.outcome).await;
                        return finish_forward(outcome);
                    }
                },
            }
            let more = async {
                while let Some(ask) = parked.questions.recv().await {
                    let name = parked.next.to_string();
                    parked.next += 1;
                    parked.pending_questions.push((name, ask));
                }
            };
            // What comes later is asked for in the next round.
            drop(tokio::time::timeout(BATCH_WINDOW, more).await);
        }
        (
            None,
            ForwardOutcome::InputRequired(self.request_input(parked)),
        )
    }

    fn request_input(&self, mut parked: PendingInput) -> RpcReply {
        let requests: serde_json::Map<String, Value> = parked
            .pending_questions
            .iter()
            .map(|(name, ask)| {
                let params = ask.params.as_ref();
                let params = params.and_then(|it| serde_json::from_str::<Value>(it.get()).ok());
                let request = json!({"method": ask.method, "params": params.unwrap_or(json!({}))});
                (name.clone(), request)
            })
            .collect();
        let mut bytes = [0_u8; 16];
        if let Err(error) = getrandom::fill(&mut bytes) {
            return RpcReply::error(
                toolwarden_mcp::error_codes::INTERNAL_ERROR,
                error.to_string(),
            );
        }
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let state = format!("{STATE_PREFIX}{token}");
        parked.since = Instant::now();
        let mut waiting = self.shared.pending_inputs.lock();
        if waiting.len() >= MAX_PENDING {
            let text = "too many requests wait for their agents; try again later";
            return RpcReply::error(toolwarden_mcp::error_codes::INTERNAL_ERROR, text);
        }
        waiting.insert(state.clone(), parked);
        let result = json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": state,
        });
        RpcReply::Result(result.to_string())
    }
}

fn finish_forward(
    outcome: Result<ForwardResult, oneshot::error::RecvError>,
) -> (Option<OpenCall>, ForwardOutcome) {
    match outcome {
        Ok((open, Ok(answered))) => (open, ForwardOutcome::Response(answered)),
        Ok((open, Err(error))) => (open, ForwardOutcome::Failed(error)),
        Err(_dropped) => {
            let text = "the request ended without an answer";
            let reply = RpcReply::error(toolwarden_mcp::error_codes::INTERNAL_ERROR, text);
            (None, ForwardOutcome::InputRequired(reply))
        }
    }
}

/// What names a request whatever its agent says in answer to it.
fn request_binding(
    context: &RequestContext,
    method: &str,
    params: Option<&RawValue>,
) -> Fingerprint {
    let mut members = RawObject::parse_optional(params);
    for key in ["inputResponses", "requestState", "_meta", "name"] {
        members.remove(key);
    }
    let conversation = &context.conversation;
    Fingerprint::tagged(
        "toolwarden/parked",
        [&*conversation.id, method, &members.to_string()],
    )
}
