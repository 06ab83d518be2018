//! From a request to its answer: who asks, what is said, what answers.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::Value;
use toolwarden_model::json::parse;

use super::Api;
use super::asking::Asking;
use super::error::{ApiError, ErrorKind, refusal};
use super::field::Field;
use super::given::Given;
use super::route::{Access, Route};
use super::routes::ROUTES;
use crate::http::{Unreceived, receive};
use crate::identity::Principal;

/// Answers a request.
pub(super) async fn serve(route: &'static Route, api: Arc<Api>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let principal = match admit(route, &api, &parts).await {
        Ok(principal) => principal,
        Err(refused) => return refused,
    };
    let given = match read(route, &api, &mut parts, body).await {
        Ok(given) => given,
        Err(error) => return error.response(),
    };
    let asking = Asking {
        api,
        principal,
        given,
    };
    match (route.handler)(asking).await {
        Ok(answer) => answer.response(),
        Err(error) => error.response(),
    }
}

/// The answer where there is no endpoint.
pub(super) async fn nowhere(request: Request) -> Response {
    let path = request.uri().path();
    let known = ROUTES.iter().map(|route| route.path);
    let suggestion = toolwarden_model::closest(path, known);
    let shown: String = path.chars().take(128).collect();
    ApiError::not_found(
        format!("there is no endpoint `{shown}`{suggestion}"),
        "`GET /api/v1/openapi.json` lists the endpoints.",
    )
    .response()
}

async fn admit(route: &Route, api: &Api, parts: &Parts) -> Result<Option<Principal>, Response> {
    if route.access == Access::Open {
        return Ok(None);
    }
    let principal = match api.front.admit(parts).await {
        Ok(principal) => principal,
        Err(refused) => return Err(refusal(refused).await),
    };
    if route.access == Access::Admin && !principal.admin {
        let guard = api.front.gateway.guard();
        guard.note_not_admin(&principal.name, route.path);
        return Err(ApiError::admins_only("ask this").response());
    }
    Ok(Some(principal))
}

async fn read(
    route: &'static Route,
    api: &Api,
    parts: &mut Parts,
    body: Body,
) -> Result<Given, ApiError> {
    let mut given = Given::default();
    if !route.named.is_empty() {
        let named = Path::<Vec<(String, String)>>::from_request_parts(parts, &()).await;
        let Path(named) = named.map_err(|error| ApiError::invalid(error.body_text()))?;
        given.take_named(route.named, named)?;
    }
    let query = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
    let Query(query) = query.map_err(|error| ApiError::invalid(error.body_text()))?;
    given.take_query(route.query, query)?;
    if let Some(fields) = route.body {
        let body = read_body(api, parts, body, fields).await?;
        given.take_body(fields, body)?;
    }
    Ok(given)
}

async fn read_body(
    api: &Api,
    parts: &Parts,
    body: Body,
    fields: &[Field],
) -> Result<Value, ApiError> {
    let settings = api.front.gateway.settings();
    let bytes = receive(body, &settings.listen)
        .await
        .map_err(|fault| match fault {
            Unreceived::TooLarge { limit } => ApiError::new(
                ErrorKind::TooLarge,
                format!("the body is larger than {limit} bytes"),
                "Send less, or raise `listen.max_body`.",
            ),
            Unreceived::Slow { .. } | Unreceived::Broken => ApiError::invalid(fault.to_string()),
        })?;
    if bytes.is_empty() && fields.iter().all(|field| !field.required) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let media_type = parts.headers.get(CONTENT_TYPE);
    let media_type = media_type
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    // A page of another site can send a form, but not this.
    if !media_type.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::new(
            ErrorKind::MediaType,
            "the body does not say that it is JSON",
            "Send it as `Content-Type: application/json`.",
        ));
    }
    let text =
        std::str::from_utf8(&bytes).map_err(|_| ApiError::invalid("the body is no UTF-8 text"))?;
    let parsed = parse(text)
        .map_err(|error| ApiError::invalid(format!("the body cannot be read: {error}")))?;
    match parsed.duplicates.first() {
        // Whoever reads the other one would do something else than what was decided.
        Some(twice) => {
            let place = &twice.pointer;
            Err(ApiError::invalid(format!(
                "`{place}` of the body is written twice"
            )))
        }
        None => Ok(parsed.value),
    }
}
