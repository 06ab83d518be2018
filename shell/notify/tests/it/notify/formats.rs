//! The complete message for each kind of target. The signatures were computed with Python's `hmac` from the
//! descriptions of the services.

use serde_json::{Value, json};
use toolwarden_notify::{Notice, Notifier};
use toolwarden_settings::AlertChannel;

use super::webhook_receiver::{ReceivedPost, WebhookReceiver, answer};
use super::{notice, options, target, wait_until_idle};

/// Sends a notice to a service with this response, and returns the request.
async fn sent(
    notice: Notice,
    taken: &'static str,
    channel: impl FnOnce(String) -> AlertChannel,
) -> ReceivedPost {
    let sink = WebhookReceiver::start(&[answer(200, taken)]).await;
    let url = format!("{}/hook/T0K3N?key=S3CR3T", sink.url);
    let notifier = Notifier::open(options(&[target("it", channel(url))])).unwrap();
    assert_eq!(
        notifier.send(notice),
        toolwarden_notify::SendOutcome::Queued
    );
    let status = wait_until_idle(&notifier).await;
    assert_eq!(
        (status.targets[0].delivered, status.targets[0].failed),
        (1, 0)
    );
    let mut got = sink.received();
    assert_eq!(got.len(), 1);
    got.remove(0)
}

fn body(got: &ReceivedPost) -> Value {
    assert_eq!(
        got.headers["content-type"],
        "application/json; charset=utf-8"
    );
    serde_json::from_str(&got.body).unwrap()
}

#[tokio::test]
async fn a_webhook_gets_our_json_signed() {
    let got = sent(notice("n 1"), "anything", |url| AlertChannel::Webhook {
        url,
        secret: Some("shared".to_owned()),
    })
    .await;
    assert_eq!(got.uri, "/hook/T0K3N?key=S3CR3T");
    assert_eq!(
        got.body,
        r##"{"schema":"toolwarden/alert/v1","id":"n 1","kind":"drift","severity":"high","server":"browser","tool":"cl*ckRLO","title":"tool `click` <!channel> drifted","text":"Was: a & b\n# Now: [free](http://evil.example) <@all>\u001b","at":"2026-11-16T09:59:58.250Z","link":"https://warden.example/alerts?id=1&x=(2)","details":{"changes":[{"pointer":"/description"}]}}"##
            .replace("RLO", "\u{202e}")
    );
    assert_eq!(got.headers["toolwarden-delivery"], "n\\u{20}1");
    assert_eq!(
        got.headers["toolwarden-signature"],
        "t=1794823200,v1=5d81b6553d7189aa467fbef4e0282d91734c9a477a46b3da5d9724851beae90c"
    );
}

#[tokio::test]
async fn details_that_are_too_large_are_left_out() {
    let mut large = notice("n-1");
    large.details = json!("x".repeat(300_000));
    let got = sent(large, "", |url| AlertChannel::Webhook { url, secret: None }).await;
    let body = body(&got);
    assert_eq!(
        (&body["details"], &body["details_left_out"]),
        (&Value::Null, &json!(true))
    );
    assert!(got.headers.get("toolwarden-signature").is_none());
}

#[tokio::test]
async fn slack_gets_blocks_of_plain_text() {
    let got = sent(notice("n-1"), "ok", |url| AlertChannel::Slack { url }).await;
    let plain = |text: &str| json!({"type": "plain_text", "text": text, "emoji": false});
    let headline = "Toolwarden: tool `click` &lt;!channel&gt; drifted";
    let text = "Was: a &amp; b\n# Now: [free](http://evil.example) &lt;@all&gt;\\u{1b}";
    let expected = json!({
        "text": headline,
        "mrkdwn": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": [
            {"type": "header", "text": plain(headline)},
            {"type": "section", "fields": [
                plain("Severity: high"), plain("Kind: drift"), plain("Server: browser"),
                plain("Tool: cl*ck\\u{202e}"), plain("Time: 2026-11-16T09:59:58Z")]},
            {"type": "section", "text": plain(text)},
            {"type": "context", "elements": [{"type": "mrkdwn", "text":
                "<https://warden.example/alerts?id=1&amp;x=%282%29|Read on>"}]},
        ],
    });
    assert_eq!(body(&got), expected);
}

#[tokio::test]
async fn feishu_gets_a_signed_card() {
    let taken = r#"{"code":0,"data":{},"msg":"success"}"#;
    let got = sent(notice("n-1"), taken, |url| AlertChannel::Feishu {
        url,
        secret: Some("shared".to_owned()),
    })
    .await;
    let plain = |text: &str| json!({"tag": "plain_text", "content": text});
    let short = |text: &str| json!({"is_short": true, "text": plain(text)});
    let text = "Was: a & b\n# Now: [free](http://evil.example) <@all>\\u{1b}";
    let expected = json!({
        "msg_type": "interactive",
        "card": {
            "config": {"wide_screen_mode": true},
            "header": {
                "template": "red",
                "title": plain("Toolwarden: tool `click` <!channel> drifted")},
            "elements": [
                {"tag": "div", "fields": [
                    short("Severity: high"), short("Kind: drift"), short("Server: browser"),
                    short("Tool: cl*ck\\u{202e}"), short("Time: 2026-11-16T09:59:58Z")]},
                {"tag": "div", "text": plain(text)},
                {"tag": "action", "actions": [{
                    "tag": "button", "type": "default", "text": plain("Read on"),
                    "url": "https://warden.example/alerts?id=1&x=%282%29"}]},
            ],
        },
        "timestamp": "1794823200",
        "sign": "SwGfHTtW90LU7vAwL+beoasf8IpAhEUa4oAak7zeNSU=",
    });
    assert_eq!(body(&got), expected);
}

#[tokio::test]
async fn dingtalk_gets_markdown_at_a_signed_address() {
    let taken = r#"{"errcode":0,"errmsg":"ok"}"#;
    let got = sent(notice("n-1"), taken, |url| AlertChannel::DingTalk {
        url,
        secret: Some("SECshared".to_owned()),
    })
    .await;
    assert_eq!(
        got.uri,
        "/hook/T0K3N?key=S3CR3T&timestamp=1794823200000&sign=pD22mNuq%2BSgKUXRXLodAH0nm%2FG7bHi8r0mOql6jFACM%3D"
    );
    let text = [
        r"### Toolwarden: tool \`click\` &lt;\!channel&gt; drifted",
        "",
        "> **Severity:** high  ",
        "> **Kind:** drift  ",
        "> **Server:** browser  ",
        r"> **Tool:** cl\*ck\\u{202e}  ",
        "> **Time:** 2026-11-16T09:59:58Z",
        "",
        "Was: a &amp; b  ",
        r"\# Now: \[free\]\(http://evil.example\) &lt;@all&gt;\\u{1b}",
        "",
        "[Read on](https://warden.example/alerts?id=1&x=%282%29)",
    ];
    let expected = json!({"msgtype": "markdown", "markdown": {
        "title": "Toolwarden: tool `click` <!channel> drifted",
        "text": text.join("\n"),
    }});
    assert_eq!(body(&got), expected);
}

#[tokio::test]
async fn wecom_gets_markdown() {
    let taken = r#"{"errcode":0,"errmsg":"ok"}"#;
    let mut notice = notice("n-1");
    notice.tool = None;
    notice.link = Some("javascript:alert(1)".to_owned());
    let got = sent(notice, taken, |url| AlertChannel::WeCom { url }).await;
    assert_eq!(got.uri, "/hook/T0K3N?key=S3CR3T");
    let text = [
        r"### Toolwarden: tool \`click\` &lt;\!channel&gt; drifted",
        "",
        "> **Severity:** high",
        "> **Kind:** drift",
        "> **Server:** browser",
        "> **Time:** 2026-11-16T09:59:58Z",
        "",
        "Was: a &amp; b",
        r"\# Now: \[free\]\(http://evil.example\) &lt;@all&gt;\\u{1b}",
    ];
    let expected = json!({"msgtype": "markdown", "markdown": {"content": text.join("\n")}});
    assert_eq!(body(&got), expected);
}
