use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use toolwarden_model::Severity;
use toolwarden_notify::{
    DeliveryError, FailedDelivery, LastDeliveryError, Notifier, NotifyError, SendOutcome,
    TargetStatus, TestDelivery,
};
use toolwarden_settings::{AlertChannel, SmtpSecurity};
use toolwarden_store::DeliveryStatus;

use super::webhook_receiver::{ScriptedReply, WebhookReceiver, answer};
use super::{notice, now, options, target, wait_until_idle, webhook};

/// An address where no process listens.
async fn closed_port() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn transient_errors_are_retried() {
    let sink =
        WebhookReceiver::start(&[answer(500, "oh"), answer(503, "no"), answer(200, "")]).await;
    let notifier = Notifier::open(options(&[webhook("ops", &sink.url)])).unwrap();
    notifier.send(notice("n-1"));
    let status = wait_until_idle(&notifier).await;
    let expected = TargetStatus {
        name: "ops".to_owned(),
        channel: "webhook",
        host: sink.host(),
        pending: 0,
        delivered: 1,
        failed: 0,
        last_success: Some(now()),
        last_error: Some(LastDeliveryError {
            at: now(),
            error: format!("{} answered with HTTP status 503: no", sink.host()),
        }),
        next_attempt: None,
    };
    assert_eq!(status.targets, [expected]);
    let ids: Vec<String> = sink
        .received()
        .iter()
        .map(|got| {
            got.headers["toolwarden-delivery"]
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(ids, ["n-1", "n-1", "n-1"]);
}

#[tokio::test]
async fn permanent_errors_fail_and_are_reported() {
    let broken = answer(500, "T0K3N-1 is broken");
    let missing = answer(404, "no_service");
    let moved = ScriptedReply {
        headers: vec![("location", "http://127.0.0.1:1/")],
        ..answer(307, "")
    };
    let wrong = answer(200, r#"{"code":19021,"msg":"sign match fail"}"#);
    let cases = [(broken, 6), (missing, 1), (moved, 1), (wrong, 1)];
    for (said, tries) in cases {
        let sink = WebhookReceiver::start(std::slice::from_ref(&said)).await;
        let told: Arc<Mutex<Vec<FailedDelivery>>> = Arc::default();
        let heard = Arc::clone(&told);
        let url = format!("{}/T0K3N-1", sink.url);
        let channel = AlertChannel::Feishu { url, secret: None };
        let mut options = options(&[target("ops", channel)]);
        options.on_failed_delivery =
            Some(Arc::new(move |it| heard.lock().unwrap().push(it.clone())));
        let notifier = Notifier::open(options).unwrap();
        notifier.send(notice("n-1"));
        let status = wait_until_idle(&notifier).await;
        assert_eq!(
            (status.targets[0].delivered, status.targets[0].failed),
            (0, 1)
        );
        assert_eq!(sink.received().len(), tries);
        let host = sink.host();
        let error = match said.status {
            200 => DeliveryError::Code {
                host,
                code: 19021,
                message: "sign match fail".to_owned(),
                throttled: false,
            },
            status => DeliveryError::Status {
                host,
                status,
                excerpt: said.body.replace("T0K3N-1", "***"),
                after: None,
                throttled: false,
            },
        };
        let expected = FailedDelivery {
            target: "ops".to_owned(),
            notice: "n-1".to_owned(),
            tries: u32::try_from(tries).unwrap(),
            error,
        };
        assert_eq!(*told.lock().unwrap(), [expected]);
        // The notice is sent again, and gets new attempts.
        notifier.send(notice("n-1"));
        notifier.close(Duration::from_secs(10)).await;
        assert_eq!(sink.received().len(), 2 * tries);
    }
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let throttled = ScriptedReply {
        headers: vec![("retry-after", "1")],
        ..answer(429, "")
    };
    let sink = WebhookReceiver::start(&[throttled, answer(200, "")]).await;
    let begun = Instant::now();
    let notifier = Notifier::open(options(&[webhook("ops", &sink.url)])).unwrap();
    notifier.send(notice("n-1"));
    while sink.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let waiting = notifier.status().await.unwrap().targets.remove(0);
    let due = now().checked_add(Duration::from_secs(1)).unwrap();
    assert_eq!((waiting.pending, waiting.next_attempt), (1, Some(due)));
    let status = wait_until_idle(&notifier).await;
    assert_eq!((status.targets[0].delivered, sink.received().len()), (1, 2));
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn each_target_gets_notices_of_its_severity_once() {
    let sink = WebhookReceiver::start(&[answer(200, "")]).await;
    let mut grave = webhook("grave", &format!("{}/grave", sink.url));
    grave.min_severity = Severity::Breaking;
    let all = webhook("all", &format!("{}/all", sink.url));
    let notifier = Notifier::open(options(&[grave, all])).unwrap();
    let mut light = notice("light");
    light.severity = Severity::Warning;
    for notice in [light, notice("heavy"), notice("heavy")] {
        assert_eq!(notifier.send(notice), SendOutcome::Queued);
    }
    let status = wait_until_idle(&notifier).await;
    assert_eq!(
        (status.repeated, status.dropped, status.overflowed),
        (2, 0, 0)
    );
    notifier.close(Duration::from_secs(10)).await;
    let mut got: Vec<(String, String)> = sink
        .received()
        .into_iter()
        .map(|got| {
            (
                got.uri,
                got.headers["toolwarden-delivery"]
                    .to_str()
                    .unwrap()
                    .to_owned(),
            )
        })
        .collect();
    got.sort();
    let pair = |uri: &str, id: &str| (uri.to_owned(), id.to_owned());
    assert_eq!(
        got,
        [
            pair("/all", "heavy"),
            pair("/all", "light"),
            pair("/grave", "heavy")
        ]
    );
    assert_eq!(notifier.send(notice("late")), SendOutcome::Dropped);
    assert!(matches!(notifier.status().await, Err(NotifyError::Closed)));
}

#[tokio::test]
async fn a_hanging_target_delays_no_other_and_its_queue_is_bounded() {
    // It accepts connections and sends nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hanging = webhook(
        "hanging",
        &format!("http://{}", silent.local_addr().unwrap()),
    );
    let sink = WebhookReceiver::start(&[answer(200, "")]).await;
    let mut options = options(&[hanging, webhook("ops", &sink.url)]);
    options.capacity = 20;
    let notifier = Notifier::open(options).unwrap();
    for round in 0..3 {
        for number in 0..10 {
            let sent = notifier.send(notice(&format!("n-{round}-{number}")));
            assert_eq!(sent, SendOutcome::Queued);
        }
        // Everything sent so far was handed over, and the fast target keeps up.
        while notifier.status().await.unwrap().targets[1].delivered < 10 * (round + 1) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let status = notifier.status().await.unwrap();
    assert_eq!(
        (status.targets[0].pending, status.targets[0].failed),
        (20, 10)
    );
    assert_eq!((status.overflowed, status.dropped), (10, 0));
    let error = status.targets[0].last_error.clone().unwrap().error;
    assert_eq!(error, "20 notices were already pending");

    // A burst that exceeds the queue is counted, and the sender does not wait.
    let begun = Instant::now();
    let sent = (0..1_000).map(|number| notifier.send(notice(&format!("burst-{number}"))));
    let dropped = sent.filter(|sent| *sent == SendOutcome::Dropped).count();
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(notifier.status().await.unwrap().dropped, dropped as u64);
    assert!(dropped > 0);
}

#[tokio::test]
async fn changing_targets_keeps_queued_notices() {
    let folder = tempfile::tempdir().unwrap();
    let sink = WebhookReceiver::start(&[answer(200, "")]).await;
    let closed = closed_port().await;
    let nowhere = format!("http://{closed}");
    let mut options = options(&[webhook("moves", &nowhere), webhook("goes", &nowhere)]);
    options.retry.first = Duration::from_secs(600);
    options.retry.max_delay = Duration::from_secs(600);
    options.store = Some(folder.path().join("store.db"));
    let notifier = Notifier::open(options).unwrap();
    notifier.send(notice("n-1"));
    while notifier.status().await.unwrap().targets[0]
        .next_attempt
        .is_none()
        || notifier.status().await.unwrap().targets[1]
            .next_attempt
            .is_none()
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let moved = webhook("moves", &sink.url);
    notifier.set_targets(vec![moved]).await.unwrap();
    let status = wait_until_idle(&notifier).await;
    assert_eq!((status.targets.len(), status.targets[0].delivered), (1, 1));
    let told: Vec<_> = super::deliveries(&notifier)
        .await
        .into_iter()
        .map(|it| (it.target, it.status, it.tries, it.error.unwrap_or_default()))
        .collect();
    let refused = format!("{closed} refused the connection");
    let unconfigured = "the target is no longer configured".to_owned();
    let expected = [
        ("moves".to_owned(), DeliveryStatus::Delivered, 2, refused),
        ("goes".to_owned(), DeliveryStatus::Failed, 1, unconfigured),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_test_tells_what_is_wrong_with_each_target_and_no_secret() {
    let sink = WebhookReceiver::start(&[answer(403, "token S3CR3T-1 is not allowed\u{7}")]).await;
    let unknown = answer(200, r#"{"errcode":300001,"errmsg":"token is not exist"}"#);
    let robot = WebhookReceiver::start(&[unknown]).await;
    let closed = closed_port().await;
    let works = WebhookReceiver::start(&[answer(200, "ok")]).await;
    let mail = |server: &str, security| AlertChannel::Smtp {
        server: server.to_owned(),
        security,
        credentials: Some(("me".to_owned(), "S3CR3T-1".to_owned())),
        from: "warden@example.com".to_owned(),
        to: vec!["ops@example.com".to_owned()],
    };
    let path = "robot/S3CR3T-1?access_token=S3CR3T-1";
    let targets = [
        target(
            "works",
            AlertChannel::Slack {
                url: format!("{}/{path}", works.url),
            },
        ),
        webhook("denied", &format!("{}/{path}", sink.url)),
        webhook("refused", &format!("http://{closed}/{path}")),
        webhook("no-address", "mailto:S3CR3T-1"),
        target(
            "robot",
            AlertChannel::DingTalk {
                url: format!("{}/{path}", robot.url),
                secret: Some("S3CR3T-1".to_owned()),
            },
        ),
        target("lost", mail("nowhere.invalid:587", SmtpSecurity::StartTls)),
        target("open", mail("mail.example.com:25", SmtpSecurity::None)),
        target("portless", mail("mail.example.com", SmtpSecurity::Tls)),
    ];
    let notifier = Notifier::open(options(&targets)).unwrap();
    let tested = notifier.test(None).await.unwrap();
    let told: Vec<(&str, String)> = tested
        .iter()
        .map(|it| {
            (
                it.target.as_str(),
                it.outcome
                    .as_ref()
                    .err()
                    .map_or_else(String::new, ToString::to_string),
            )
        })
        .collect();
    let expected = [
        ("works", String::new()),
        (
            "denied",
            format!(
                "{} answered with HTTP status 403: token *** is not allowed\\u{{7}}",
                sink.host()
            ),
        ),
        ("refused", format!("{closed} refused the connection")),
        (
            "no-address",
            "the address is not an http or https URL".to_owned(),
        ),
        (
            "robot",
            format!(
                "{} answered with error code 300001: token is not exist",
                robot.host()
            ),
        ),
        (
            "lost",
            "the name nowhere.invalid:587 cannot be resolved".to_owned(),
        ),
        (
            "open",
            "mail.example.com is not this machine, and mail to it would not be encrypted"
                .to_owned(),
        ),
        (
            "portless",
            "`mail.example.com` is not a mail server: a host and a port are needed".to_owned(),
        ),
    ];
    assert_eq!(told, expected);
    let everything = format!(
        "{tested:?} {notifier:?} {:?} {:?}",
        notifier.status().await,
        options(&targets)
    );
    assert!(!everything.contains("S3CR3T"), "{everything}");

    let one = notifier.test(Some("refused")).await.unwrap();
    let host = closed;
    let refused = TestDelivery {
        target: "refused".to_owned(),
        outcome: Err(DeliveryError::Refused { host }),
    };
    assert_eq!(one, [refused]);
    let nobody = notifier.test(Some("nobody")).await.unwrap_err();
    assert_eq!(nobody.to_string(), "there is no target `nobody`");
}

#[tokio::test]
async fn a_try_that_takes_too_long_is_ended() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = silent.local_addr().unwrap().to_string();
    let mut options = options(&[webhook("hanging", &format!("http://{host}"))]);
    options.retry.timeout = Duration::from_millis(200);
    let notifier = Notifier::open(options).unwrap();
    let tested = notifier.test(None).await.unwrap();
    assert_eq!(tested[0].outcome, Err(DeliveryError::Timeout { host }));
}
