//! Whether an answer means that a message arrived. Chats answer with status 200 and say in the body
//! what went wrong.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::error::DeliveryError;
use super::mask::Mask;
use crate::settings::AlertChannel;

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// When to come back, as it says.
    pub(super) after: Option<Duration>,
    /// The body, as far as it was read.
    pub(super) body: String,
}

/// How a service says in a body that it took a message.
enum Sign {
    /// It need not: the status tells.
    None,
    /// With a word.
    Word(&'static str),
    /// With the code zero under one of these keys; the text of others is under one of those; these
    /// codes pass.
    Code(
        &'static [&'static str],
        &'static [&'static str],
        &'static [i64],
    ),
}

const fn sign(channel: &AlertChannel) -> Sign {
    match channel {
        AlertChannel::Webhook { .. } | AlertChannel::Smtp { .. } => Sign::None,
        AlertChannel::Slack { .. } => Sign::Word("ok"),
        // Too many requests of a robot, and of an application.
        AlertChannel::Feishu { .. } => Sign::Code(
            &["code", "StatusCode"],
            &["msg", "StatusMessage"],
            &[11_232, 99_991_400],
        ),
        // The service is busy; more than twenty in a minute.
        AlertChannel::DingTalk { .. } => {
            Sign::Code(&["errcode"], &["errmsg"], &[-1, 130_101, 410_100])
        }
        // The service is busy; too often; too many at once.
        AlertChannel::WeCom { .. } => Sign::Code(&["errcode"], &["errmsg"], &[-1, 45_009, 45_033]),
    }
}

/// Judges an answer.
pub(super) fn judge(
    channel: &AlertChannel,
    host: &str,
    mask: &Mask,
    answer: &Answer,
) -> Result<(), DeliveryError> {
    let sign = sign(channel);
    let host = host.to_owned();
    if !(200..300).contains(&answer.status) {
        let code = match sign {
            Sign::Code(keys, ..) => code(&answer.body, keys),
            Sign::None | Sign::Word(_) => None,
        };
        let passing = match sign {
            Sign::Code(_, _, passing) => passing,
            Sign::None | Sign::Word(_) => &[],
        };
        return Err(DeliveryError::Status {
            host,
            status: answer.status,
            excerpt: mask.excerpt(&answer.body),
            after: answer.after,
            throttled: code.is_some_and(|code| passing.contains(&code)),
        });
    }
    let unexpected = |host| DeliveryError::Unexpected {
        host,
        excerpt: mask.excerpt(&answer.body),
    };
    match sign {
        Sign::None => Ok(()),
        Sign::Word(word) if answer.body.trim() == word => Ok(()),
        Sign::Word(_) => Err(unexpected(host)),
        Sign::Code(keys, texts, passing) => match code(&answer.body, keys) {
            Some(0) => Ok(()),
            Some(code) => Err(DeliveryError::Code {
                host,
                code,
                message: mask.excerpt(&text(&answer.body, texts)),
                throttled: passing.contains(&code),
            }),
            None => Err(unexpected(host)),
        },
    }
}

/// How long to wait, as the header `Retry-After` says: seconds, or a date.
pub(super) fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

fn code(body: &str, keys: &[&str]) -> Option<i64> {
    let body: Value = serde_json::from_str(body).ok()?;
    keys.iter().find_map(|key| body.get(*key)?.as_i64())
}

fn text(body: &str, keys: &[&str]) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let found = keys.iter().find_map(|key| body.get(*key)?.as_str());
    found.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(channel: &AlertChannel, status: u16, body: &str) -> Result<(), String> {
        let answer = Answer {
            status,
            after: None,
            body: body.to_owned(),
        };
        let judged = judge(channel, "chat.example", &Mask::of(channel), &answer);
        judged.map_err(|error| format!("{error} [{}]", error.is_passing()))
    }

    #[test]
    fn arrival_is_told_by_the_body() {
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
                Err("chat.example did not answer like such a service does: <html> [false]"),
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
                Err("chat.example did not answer like such a service does: {} [false]"),
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
            assert_eq!(judged(channel, *status, body), expected, "{body}");
        }
    }

    #[test]
    fn pauses_are_asked_for_in_seconds_or_as_a_date() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        for (text, seconds) in [
            ("7", Some(7)),
            (" 0 ", Some(0)),
            ("Mon, 16 Nov 2026 10:00:30 GMT", Some(30)),
            ("Mon, 16 Nov 2026 09:00:00 GMT", Some(0)),
            ("soon", None),
            ("-3", None),
        ] {
            let found = retry_after(text, now).map(|it| it.as_secs());
            assert_eq!(found, seconds, "{text}");
        }
    }
}
