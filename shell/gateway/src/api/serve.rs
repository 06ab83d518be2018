//! Serves a request: authenticates the caller, checks the parameters and calls the handler.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::Value;
use toolwarden_model::json::parse;

use super::Api;
use super::error::{ApiError, ApiErrorKind, convert_refusal};
use super::field::ApiField;
use super::request::ApiRequest;
use super::request_params::RequestParams;
use super::route::{ApiRoute, RouteAccess};
use super::routes::ROUTES;
use crate::http::{RequestBodyError, receive_body};
use crate::identity::Principal;

/// Serves a request.
pub(super) async fn serve(route: &'static ApiRoute, api: Arc<Api>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let principal = match authorize(route, &api, &parts).await {
        Ok(principal) => principal,
        Err(refused) => return refused,
    };
    let given = match read_params(route, &api, &mut parts, body).await {
        Ok(given) => given,
        Err(error) => return error.response(),
    };
    let api_request = ApiRequest {
        api,
        principal,
        params: given,
    };
    match (route.handler)(api_request).await {
        Ok(answer) => answer.response(),
        Err(error) => error.response(),
    }
}

/// The response for an unknown endpoint.
pub(super) async fn unknown_endpoint(request: Request) -> Response {
    let path = request.uri().path();
    let known = ROUTES.iter().map(|route| route.path);
    let suggestion = toolwarden_model::did_you_mean(path, known);
    let shown: String = path.chars().take(128).collect();
    ApiError::not_found(
        format!("there is no endpoint `{shown}`{suggestion}"),
        "`GET /api/v1/openapi.json` lists the endpoints.",
    )
    .response()
}

async fn authorize(
    route: &ApiRoute,
    api: &Api,
    parts: &Parts,
) -> Result<Option<Principal>, Response> {
    if route.access == RouteAccess::Open {
        return Ok(None);
    }
    let principal = match api.frontend.authenticate(parts).await {
        Ok(principal) => principal,
        Err(refused) => return Err(convert_refusal(refused).await),
    };
    if route.access == RouteAccess::Admin && !principal.admin {
        let guard = api.frontend.gateway.guard();
        guard.record_admin_refusal(&principal.name, route.path);
        return Err(ApiError::admins_only("ask this").response());
    }
    Ok(Some(principal))
}

async fn read_params(
    route: &'static ApiRoute,
    api: &Api,
    parts: &mut Parts,
    body: Body,
) -> Result<RequestParams, ApiError> {
    let mut given = RequestParams::default();
    if !route.path_params.is_empty() {
        let named = Path::<Vec<(String, String)>>::from_request_parts(parts, &()).await;
        let Path(named) = named.map_err(|error| ApiError::invalid(error.body_text()))?;
        given.add_path(route.path_params, named)?;
    }
    let query = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
    let Query(query) = query.map_err(|error| ApiError::invalid(error.body_text()))?;
    given.add_query(route.query, query)?;
    if let Some(fields) = route.body {
        let body = read_body(api, parts, body, fields).await?;
        given.add_body(fields, body)?;
    }
    Ok(given)
}

async fn read_body(
    api: &Api,
    parts: &Parts,
    body: Body,
    fields: &[ApiField],
) -> Result<Value, ApiError> {
    let settings = api.frontend.gateway.settings();
    let bytes = receive_body(body, &settings.listen)
        .await
        .map_err(|fault| match fault {
            RequestBodyError::TooLarge { limit } => ApiError::new(
                ApiErrorKind::TooLarge,
                format!("the body is larger than {limit} bytes"),
                "Send less, or raise `listen.max_body`.",
            ),
            RequestBodyError::Timeout { .. } | RequestBodyError::Incomplete => {
                ApiError::invalid(fault.to_string())
            }
        })?;
    if bytes.is_empty() && fields.iter().all(|field| !field.required) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let media_type = parts.headers.get(CONTENT_TYPE);
    let media_type = media_type
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    // A page of another site can send a form, but not JSON.
    if !media_type.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::new(
            ApiErrorKind::MediaType,
            "the body is not declared as JSON",
            "Send it as `Content-Type: application/json`.",
        ));
    }
    let text =
        std::str::from_utf8(&bytes).map_err(|_| ApiError::invalid("the body is not UTF-8 text"))?;
    let parsed = parse(text)
        .map_err(|error| ApiError::invalid(format!("the body cannot be read: {error}")))?;
    match parsed.duplicates.first() {
        // A reader that takes the other value would do something else than what was decided.
        Some(twice) => {
            let place = &twice.pointer;
            Err(ApiError::invalid(format!(
                "`{place}` of the body is written twice"
            )))
        }
        None => Ok(parsed.value),
    }
}
