//! Decides whether a response means that a message was delivered. Chat services respond with status 200 and
//! report errors in the body.

use std::time::Duration;

use serde_json::Value;

use super::error::DeliveryError;
use super::redact::TargetSecrets;
use toolwarden_settings::AlertChannel;

/// The response.
#[derive(Debug)]
pub(super) struct WebhookResponse {
    pub(super) status: u16,
    /// The delay that the response asks for.
    pub(super) retry_after: Option<Duration>,
    /// The body, as far as it was read.
    pub(super) body: String,
}

/// How a service confirms a message in the body of its response.
enum SuccessMarker {
    /// Not at all: the status decides.
    None,
    /// With a word.
    Word(&'static str),
    /// With the code zero under one of the first keys; the second keys hold the error text; the listed
    /// codes are temporary errors.
    Code(
        &'static [&'static str],
        &'static [&'static str],
        &'static [i64],
    ),
}

const fn success_marker(channel: &AlertChannel) -> SuccessMarker {
    match channel {
        AlertChannel::Webhook { .. } | AlertChannel::Smtp { .. } => SuccessMarker::None,
        AlertChannel::Slack { .. } => SuccessMarker::Word("ok"),
        // Too many requests by a bot, and by an application.
        AlertChannel::Feishu { .. } => SuccessMarker::Code(
            &["code", "StatusCode"],
            &["msg", "StatusMessage"],
            &[11_232, 99_991_400],
        ),
        // The service is busy; more than twenty messages in a minute.
        AlertChannel::DingTalk { .. } => {
            SuccessMarker::Code(&["errcode"], &["errmsg"], &[-1, 130_101, 410_100])
        }
        // The service is busy; too many messages; too many concurrent messages.
        AlertChannel::WeCom { .. } => {
            SuccessMarker::Code(&["errcode"], &["errmsg"], &[-1, 45_009, 45_033])
        }
    }
}

/// Evaluates a response.
pub(super) fn check_response(
    channel: &AlertChannel,
    host: &str,
    mask: &TargetSecrets,
    answer: &WebhookResponse,
) -> Result<(), DeliveryError> {
    let sign = success_marker(channel);
    let host = host.to_owned();
    if !(200..300).contains(&answer.status) {
        let code = match sign {
            SuccessMarker::Code(keys, ..) => response_code(&answer.body, keys),
            SuccessMarker::None | SuccessMarker::Word(_) => None,
        };
        let passing = match sign {
            SuccessMarker::Code(_, _, passing) => passing,
            SuccessMarker::None | SuccessMarker::Word(_) => &[],
        };
        return Err(DeliveryError::Status {
            host,
            status: answer.status,
            excerpt: mask.redacted_excerpt(&answer.body),
            after: answer.retry_after,
            throttled: code.is_some_and(|code| passing.contains(&code)),
        });
    }
    let unexpected = |host| DeliveryError::Unexpected {
        host,
        excerpt: mask.redacted_excerpt(&answer.body),
    };
    match sign {
        SuccessMarker::None => Ok(()),
        SuccessMarker::Word(word) if answer.body.trim() == word => Ok(()),
        SuccessMarker::Word(_) => Err(unexpected(host)),
        SuccessMarker::Code(keys, texts, passing) => match response_code(&answer.body, keys) {
            Some(0) => Ok(()),
            Some(code) => Err(DeliveryError::Code {
                host,
                code,
                message: mask.redacted_excerpt(&response_message(&answer.body, texts)),
                throttled: passing.contains(&code),
            }),
            None => Err(unexpected(host)),
        },
    }
}

fn response_code(body: &str, keys: &[&str]) -> Option<i64> {
    let body: Value = serde_json::from_str(body).ok()?;
    keys.iter().find_map(|key| body.get(*key)?.as_i64())
}

fn response_message(body: &str, keys: &[&str]) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let found = keys.iter().find_map(|key| body.get(*key)?.as_str());
    found.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(channel: &AlertChannel, status: u16, body: &str) -> Result<(), String> {
        let answer = WebhookResponse {
            status,
            retry_after: None,
            body: body.to_owned(),
        };
        let judged = check_response(
            channel,
            "chat.example",
            &TargetSecrets::of(channel),
            &answer,
        );
        judged.map_err(|error| format!("{error} [{}]", error.is_transient()))
    }

    #[test]
    fn delivery_is_confirmed_by_the_body() {
        let url = "https://chat.example/hook/S3CR3T".to_owned();
        let slack = AlertChannel::Slack { url: url.clone() };
        let wecom = AlertChannel::WeCom { url: url.clone() };
        let secret = None;
        let feishu = AlertChannel::Feishu {
            url: url.clone(),
            secret: secret.clone(),
        };
        let dingtalk = AlertChannel::DingTalk {
            url: url.clone(),
            secret: secret.clone(),
        };
        let webhook = AlertChannel::Webhook { url, secret };
        let cases: &[(&AlertChannel, u16, &str, Result<(), &str>)] = &[
            (&webhook, 204, "", Ok(())),
            (
                &webhook,
                302,
                "",
                Err("chat.example answered with HTTP status 302 [false]"),
            ),
            (
                &webhook,
                500,
                "",
                Err("chat.example answered with HTTP status 500 [true]"),
            ),
            (&slack, 200, "ok", Ok(())),
            (
                &slack,
                200,
                "<html>",
                Err("unexpected response from chat.example: <html> [false]"),
            ),
            (
                &slack,
                404,
                "no_service",
                Err("chat.example answered with HTTP status 404: no_service [false]"),
            ),
            (
                &slack,
                429,
                "",
                Err("chat.example answered with HTTP status 429 [true]"),
            ),
            (
                &feishu,
                200,
                r#"{"code":0,"msg":"success","StatusCode":0}"#,
                Ok(()),
            ),
            (
                &feishu,
                200,
                r#"{"Extra":null,"StatusCode":0,"StatusMessage":"success"}"#,
                Ok(()),
            ),
            (
                &feishu,
                200,
                r#"{"code":19021,"msg":"sign match fail for S3CR3T"}"#,
                Err("chat.example answered with error code 19021: sign match fail for *** [false]"),
            ),
            (
                &feishu,
                200,
                r#"{"code":11232,"msg":"too many"}"#,
                Err("chat.example answered with error code 11232: too many [true]"),
            ),
            (
                &feishu,
                400,
                r#"{"code":99991400}"#,
                Err("chat.example answered with HTTP status 400: {\"code\":99991400} [true]"),
            ),
            (
                &feishu,
                200,
                "{}",
                Err("unexpected response from chat.example: {} [false]"),
            ),
            (&dingtalk, 200, r#"{"errcode":0,"errmsg":"ok"}"#, Ok(())),
            (
                &dingtalk,
                200,
                r#"{"errcode":310000,"errmsg":"sign not match"}"#,
                Err("chat.example answered with error code 310000: sign not match [false]"),
            ),
            (
                &dingtalk,
                200,
                r#"{"errcode":130101,"errmsg":"send too fast"}"#,
                Err("chat.example answered with error code 130101: send too fast [true]"),
            ),
            (&wecom, 200, r#"{"errcode":0,"errmsg":"ok"}"#, Ok(())),
            (
                &wecom,
                200,
                r#"{"errcode":93000}"#,
                Err("chat.example answered with error code 93000 [false]"),
            ),
            (
                &wecom,
                200,
                r#"{"errcode":45009,"errmsg":"freq"}"#,
                Err("chat.example answered with error code 45009: freq [true]"),
            ),
        ];
        for (channel, status, body, expected) in cases {
            let expected = expected.map_err(str::to_owned);
            assert_eq!(checked(channel, *status, body), expected, "{body}");
        }
    }
}
