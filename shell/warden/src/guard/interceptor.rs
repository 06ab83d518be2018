//! Puts the guard in front of any callable.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;
use toolwarden_guard::{Decision, Denial, Fault, RequestedGroups, Unbindable, bind};
use toolwarden_model::json::Object;

use super::live::{Call, LiveGuard};
use super::log::Log;
use super::open_call::{OpenCall, OutputRejected};

/// Makes callables that ask the guard before they do anything.
#[derive(Clone, Debug)]
pub struct Interceptor {
    guard: LiveGuard,
}

/// A callable behind the guard.
#[derive(Clone, Debug)]
pub struct Wrapped<F> {
    guard: LiveGuard,
    tool: String,
    principal: String,
    session: Option<String>,
    groups: Option<RequestedGroups>,
    attributes: BTreeMap<String, Value>,
    parameters: Option<Vec<String>>,
    callable: F,
}

/// Why a wrapped callable gave no result.
#[derive(Debug, Error)]
pub enum Intercepted<E> {
    /// The guard refused the call; nothing was done.
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
    /// The call was made, and its result is not what the tool promises.
    #[error(transparent)]
    Output(OutputRejected),
}

/// What is wrong with arguments before they can be looked at.
#[derive(Debug, Error)]
enum ArgumentsProblem {
    /// They cannot be written as JSON.
    #[error("the arguments are no JSON: {0}")]
    NoJson(#[from] serde_json::Error),
    /// They have no names.
    #[error("{0}")]
    Unbindable(#[from] Unbindable),
}

/// Something that takes arguments, all at once in a tuple.
pub trait Callable<A> {
    /// What it returns.
    type Output;

    /// Calls it.
    fn call(&self, arguments: A) -> Self::Output;
}

/// Arguments given by position, in a tuple.
pub trait Positional {
    /// Each as JSON.
    ///
    /// # Errors
    /// One cannot be written as JSON.
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

        impl<$($kind: Serialize),*> Positional for ($($kind,)*) {
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
    /// An interceptor in front of which a guard stands.
    #[must_use]
    pub const fn new(guard: LiveGuard) -> Self {
        Self { guard }
    }

    /// The log of the guard.
    #[must_use]
    pub fn audit_log(&self) -> &Log {
        self.guard.log()
    }

    /// Puts a callable behind the guard, as a tool called by a principal.
    #[must_use]
    pub fn wrap<F>(&self, tool: &str, principal: &str, callable: F) -> Wrapped<F> {
        Wrapped {
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

    /// Decides a call and puts the decision down, without making it.
    #[must_use]
    pub fn intercept(&self, call: &Call<'_>) -> Decision {
        self.guard.intercept(call)
    }
}

impl<F> Wrapped<F> {
    /// Names the parameters, so that arguments given by position are known by name.
    #[must_use]
    pub fn parameters<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.parameters = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The same callable, called by another principal.
    #[must_use]
    pub fn principal(mut self, principal: &str) -> Self {
        principal.clone_into(&mut self.principal);
        self
    }

    /// The same callable, called in a session.
    #[must_use]
    pub fn session(mut self, session: &str) -> Self {
        self.session = Some(session.to_owned());
        self
    }

    /// The same callable, asking for groups.
    #[must_use]
    pub fn groups<'g>(mut self, groups: impl IntoIterator<Item = &'g str>) -> Self {
        self.groups = Some(groups.into_iter().collect());
        self
    }

    /// The same callable, saying this of its request: what conditions may ask about.
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

    /// Makes the call if the guard permits it, and tells the guard how it ended.
    ///
    /// # Errors
    /// The call is refused, fails, or returns what it should not.
    pub fn call<A, T, E>(&self, arguments: A) -> Result<T, Intercepted<E>>
    where
        A: Positional,
        F: Callable<A, Output = Result<T, E>>,
        T: Serialize,
        E: std::fmt::Display,
    {
        let open = self.decide(&arguments)?;
        let result = self.callable.call(arguments);
        settle(open, result)
    }

    /// As [`Self::call`], for a callable that returns a future.
    ///
    /// # Errors
    /// The call is refused, fails, or returns what it should not.
    pub async fn call_async<A, U, T, E>(&self, arguments: A) -> Result<T, Intercepted<E>>
    where
        A: Positional,
        F: Callable<A, Output = U>,
        U: Future<Output = Result<T, E>>,
        T: Serialize,
        E: std::fmt::Display,
    {
        let open = self.decide(&arguments)?;
        let result = self.callable.call(arguments).await;
        settle(open, result)
    }

    /// As [`Self::call`], for a callable that takes one value whose members are the arguments.
    ///
    /// # Errors
    /// The call is refused, fails, or returns what it should not.
    pub fn call_with<A, T, E>(&self, arguments: A) -> Result<T, Intercepted<E>>
    where
        A: Serialize,
        F: Callable<(A,), Output = Result<T, E>>,
        T: Serialize,
        E: std::fmt::Display,
    {
        let open = self.decide_whole(&arguments)?;
        let result = self.callable.call((arguments,));
        settle(open, result)
    }

    /// As [`Self::call_with`], for a callable that returns a future.
    ///
    /// # Errors
    /// The call is refused, fails, or returns what it should not.
    pub async fn call_async_with<A, U, T, E>(&self, arguments: A) -> Result<T, Intercepted<E>>
    where
        A: Serialize,
        F: Callable<(A,), Output = U>,
        U: Future<Output = Result<T, E>>,
        T: Serialize,
        E: std::fmt::Display,
    {
        let open = self.decide_whole(&arguments)?;
        let result = self.callable.call((arguments,)).await;
        settle(open, result)
    }

    fn decide_whole<E>(&self, arguments: &impl Serialize) -> Result<OpenCall, Intercepted<E>> {
        let value = serde_json::to_value(arguments);
        self.ask(value.map_err(ArgumentsProblem::NoJson))
    }

    fn decide<E>(&self, arguments: &impl Positional) -> Result<OpenCall, Intercepted<E>> {
        let bound = arguments.values().map_err(ArgumentsProblem::NoJson);
        let bound = bound.and_then(|values| {
            let bound = bind(self.parameters.as_deref(), values, Object::new())?;
            Ok(Value::Object(bound))
        });
        self.ask(bound)
    }

    fn ask<E>(
        &self,
        arguments: Result<Value, ArgumentsProblem>,
    ) -> Result<OpenCall, Intercepted<E>> {
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
                .refuse(&call, Denial::of_input(problem.to_string()))),
        };
        decided.map_err(|denial| Intercepted::Denied {
            tool: self.tool.clone(),
            denial,
        })
    }
}

fn settle<T: Serialize, E: std::fmt::Display>(
    open: OpenCall,
    result: Result<T, E>,
) -> Result<T, Intercepted<E>> {
    match result {
        Err(error) => {
            open.failed(&error);
            Err(Intercepted::Failed(error))
        }
        Ok(result) => {
            if !open.checks_output() {
                open.succeeded_unseen();
                return Ok(result);
            }
            let settled = match serde_json::to_value(&result) {
                Ok(value) => open.succeeded(&value),
                Err(error) => {
                    let message = format!("the result is no JSON: {error}");
                    open.succeeded_with(vec![Fault::of_whole(message)])
                }
            };
            settled.map(|()| result).map_err(Intercepted::Output)
        }
    }
}
