//! Wraps any callable with the guard.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;
use toolwarden_guard::{BindError, Decision, Denial, RequestedGroups, ValueFault, bind_arguments};
use toolwarden_model::json::Object;

use super::audit_log::AuditLog;
use super::call::Call;
use super::live_guard::LiveGuard;
use super::open_call::{OpenCall, OutputRejected};

/// Wraps callables so that they ask the guard before they run.
#[derive(Clone, Debug)]
pub struct Interceptor {
    guard: LiveGuard,
}

/// A callable behind the guard.
#[derive(Clone, Debug)]
pub struct GuardedCallable<F> {
    guard: LiveGuard,
    tool: String,
    principal: String,
    session: Option<String>,
    groups: Option<RequestedGroups>,
    attributes: BTreeMap<String, Value>,
    parameters: Option<Vec<String>>,
    callable: F,
}

/// Why a wrapped callable returned no result.
#[derive(Debug, Error)]
pub enum InterceptError<E> {
    /// The guard denied the call; the callable did not run.
    #[error("connection to '{tool}' denied: {denial}")]
    Denied {
        /// The tool.
        tool: String,
        /// Why.
        denial: Denial,
    },
    /// The call was made, and failed.
    #[error("the tool failed")]
    Failed(E),
    /// The call was made, and its result does not satisfy the output schema.
    #[error(transparent)]
    Output(OutputRejected),
}

/// Why arguments cannot be validated.
#[derive(Debug, Error)]
enum ArgumentsError {
    /// They cannot be serialized as JSON.
    #[error("the arguments are not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// They cannot be bound to names.
    #[error("{0}")]
    Unbindable(#[from] BindError),
}

/// A function that takes its arguments in a tuple.
pub trait Callable<A> {
    /// Its return type.
    type Output;

    /// Calls it.
    fn call(&self, arguments: A) -> Self::Output;
}

/// Positional arguments, in a tuple.
pub trait PositionalArguments {
    /// Each argument as JSON.
    ///
    /// # Errors
    /// An argument cannot be serialized as JSON.
    fn values(&self) -> Result<Vec<Value>, serde_json::Error>;
}

macro_rules! callables {
    ($(($($kind:ident $argument:ident),*))*) => {$(
        impl<Func, Out, $($kind),*> Callable<($($kind,)*)> for Func
        where
            Func: Fn($($kind),*) -> Out,
        {
            type Output = Out;

            fn call(&self, ($($argument,)*): ($($kind,)*)) -> Out {
                self($($argument),*)
            }
        }

        impl<$($kind: Serialize),*> PositionalArguments for ($($kind,)*) {
            fn values(&self) -> Result<Vec<Value>, serde_json::Error> {
                let ($($argument,)*) = self;
                Ok(vec![$(serde_json::to_value($argument)?),*])
            }
        }
    )*};
}
callables! {
    ()
    (A a)
    (A a, B b)
    (A a, B b, C c)
    (A a, B b, C c, D d)
    (A a, B b, C c, D d, E e)
    (A a, B b, C c, D d, E e, F f)
    (A a, B b, C c, D d, E e, F f, G g)
    (A a, B b, C c, D d, E e, F f, G g, H h)
}

impl Interceptor {
    /// An interceptor with a guard.
    #[must_use]
    pub const fn new(guard: LiveGuard) -> Self {
        Self { guard }
    }

    /// The log of the guard.
    #[must_use]
    pub fn audit_log(&self) -> &AuditLog {
        self.guard.log()
    }

    /// Wraps a callable as a tool that a principal calls.
    #[must_use]
    pub fn wrap<F>(&self, tool: &str, principal: &str, callable: F) -> GuardedCallable<F> {
        GuardedCallable {
            guard: self.guard.clone(),
            tool: tool.to_owned(),
            principal: principal.to_owned(),
            session: None,
            groups: None,
            attributes: BTreeMap::new(),
            parameters: None,
            callable,
        }
    }

    /// Decides a call and records the decision, without making the call.
    #[must_use]
    pub fn intercept(&self, call: &Call<'_>) -> Decision {
        self.guard.intercept(call)
    }
}

impl<F> GuardedCallable<F> {
    /// Sets the names of the parameters, so that positional arguments get names.
    #[must_use]
    pub fn parameters<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.parameters = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets another principal for the calls.
    #[must_use]
    pub fn principal(mut self, principal: &str) -> Self {
        principal.clone_into(&mut self.principal);
        self
    }

    /// Sets the session of the calls.
    #[must_use]
    pub fn session(mut self, session: &str) -> Self {
        self.session = Some(session.to_owned());
        self
    }

    /// Sets the groups that the calls request.
    #[must_use]
    pub fn groups<'g>(mut self, groups: impl IntoIterator<Item = &'g str>) -> Self {
        self.groups = Some(groups.into_iter().collect());
        self
    }

    /// Sets a request attribute, which conditions can read.
    #[must_use]
    pub fn attribute(mut self, name: &str, value: Value) -> Self {
        self.attributes.insert(name.to_owned(), value);
        self
    }

    /// The callable itself.
    #[must_use]
    pub const fn inner(&self) -> &F {
        &self.callable
    }

    /// Makes the call if the guard permits it, and reports the outcome to the guard.
    ///
    /// # Errors
    /// The call is denied, fails, or returns an invalid result.
    pub fn call<A, T, E>(&self, arguments: A) -> Result<T, InterceptError<E>>
    where
        A: PositionalArguments,
        F: Callable<A, Output = Result<T, E>>,
        T: Serialize,
        E: std::fmt::Display,
    {
        let open = self.decide(&arguments)?;
        let result = self.callable.call(arguments);
        report_outcome(open, result)
    }

    /// Like [`Self::call`], for a callable that returns a future.
    ///
    /// # Errors
    /// The call is denied, fails, or returns an invalid result.
    pub async fn call_async<A, U, T, E>(&self, arguments: A) -> Result<T, InterceptError<E>>
    where
        A: PositionalArguments,
        F: Callable<A, Output = U>,
        U: Future<Output = Result<T, E>>,
        T: Serialize,
        E: std::fmt::Display,
    {
        let open = self.decide(&arguments)?;
        let result = self.callable.call(arguments).await;
        report_outcome(open, result)
    }

    /// Like [`Self::call`], for a callable that takes one value whose members are the arguments.
    ///
    /// # Errors
    /// The call is denied, fails, or returns an invalid result.
    pub fn call_with<A, T, E>(&self, arguments: A) -> Result<T, InterceptError<E>>
    where
        A: Serialize,
        F: Callable<(A,), Output = Result<T, E>>,
        T: Serialize,
        E: std::fmt::Display,
    {
        let open = self.decide_value(&arguments)?;
        let result = self.callable.call((arguments,));
        report_outcome(open, result)
    }

    /// Like [`Self::call_with`], for a callable that returns a future.
    ///
    /// # Errors
    /// The call is denied, fails, or returns an invalid result.
    pub async fn call_async_with<A, U, T, E>(&self, arguments: A) -> Result<T, InterceptError<E>>
    where
        A: Serialize,
        F: Callable<(A,), Output = U>,
        U: Future<Output = Result<T, E>>,
        T: Serialize,
        E: std::fmt::Display,
    {
        let open = self.decide_value(&arguments)?;
        let result = self.callable.call((arguments,)).await;
        report_outcome(open, result)
    }

    fn decide_value<E>(&self, arguments: &impl Serialize) -> Result<OpenCall, InterceptError<E>> {
        let value = serde_json::to_value(arguments);
        self.decide_call(value.map_err(ArgumentsError::NotJson))
    }

    fn decide<E>(
        &self,
        arguments: &impl PositionalArguments,
    ) -> Result<OpenCall, InterceptError<E>> {
        let bound = arguments.values().map_err(ArgumentsError::NotJson);
        let bound = bound.and_then(|values| {
            let bound = bind_arguments(self.parameters.as_deref(), values, Object::new())?;
            Ok(Value::Object(bound))
        });
        self.decide_call(bound)
    }

    fn decide_call<E>(
        &self,
        arguments: Result<Value, ArgumentsError>,
    ) -> Result<OpenCall, InterceptError<E>> {
        let mut call = Call {
            tool: &self.tool,
            principal: &self.principal,
            session: self.session.as_deref(),
            groups: self.groups.clone(),
            attributes: self.attributes.clone(),
            ..Call::default()
        };
        let decided = match arguments {
            Ok(arguments) => {
                call.arguments = Arc::new(arguments);
                self.guard.decide(&call)
            }
            Err(problem) => Err(self
                .guard
                .record_refusal(&call, Denial::invalid_input(problem.to_string()))),
        };
        decided.map_err(|denial| InterceptError::Denied {
            tool: self.tool.clone(),
            denial,
        })
    }
}

fn report_outcome<T: Serialize, E: std::fmt::Display>(
    open: OpenCall,
    result: Result<T, E>,
) -> Result<T, InterceptError<E>> {
    match result {
        Err(error) => {
            open.report_failure(&error);
            Err(InterceptError::Failed(error))
        }
        Ok(result) => {
            if !open.checks_output() {
                open.report_success_unchecked();
                return Ok(result);
            }
            let settled = match serde_json::to_value(&result) {
                Ok(value) => open.report_success(&value),
                Err(error) => {
                    let message = format!("the result is not JSON: {error}");
                    open.finish_with_faults(vec![ValueFault::for_whole_value(message)])
                }
            };
            settled.map(|()| result).map_err(InterceptError::Output)
        }
    }
}
