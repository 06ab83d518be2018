use std::time::Duration;

use rusqlite::Connection;
use toolwarden_notify::{Notifier, NotifierOptions, NotifyError};
use toolwarden_store::{Delivery, DeliveryStatus};

use super::webhook_receiver::{WebhookReceiver, answer};
use super::{deliveries, notice, now, options, wait_until_idle, webhook};

fn row(target: &str, status: DeliveryStatus, tries: u32, error: Option<String>) -> Delivery {
    Delivery {
        target: target.to_owned(),
        notice: "n-1".to_owned(),
        status,
        tries,
        error,
        at: now(),
    }
}

#[tokio::test]
async fn what_was_not_delivered_is_resumed_and_what_was_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let ok = WebhookReceiver::start(&[answer(200, "")]).await;
    let late = WebhookReceiver::start(&[answer(503, "later"), answer(200, "")]).await;
    let with = |targets: &[_]| {
        let mut options = options(targets);
        options.store = Some(store.clone());
        options.retry.first = Duration::from_secs(600);
        options.retry.max_delay = Duration::from_secs(600);
        options
    };
    let (ops, slow, gone) = (
        webhook("ops", &ok.url),
        webhook("slow", &late.url),
        webhook("gone", "http://127.0.0.1:1"),
    );

    let first = Notifier::open(with(&[ops.clone(), slow.clone(), gone])).unwrap();
    first.send(notice("n-1"));
    while late.received().is_empty() || ok.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    first.close(Duration::from_millis(300)).await;
    assert_eq!((ok.received().len(), late.received().len()), (1, 1));

    let second = Notifier::open(with(&[ops.clone(), slow.clone()])).unwrap();
    while late.received().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    second.send(notice("n-1"));
    let status = second.status().await.unwrap();
    assert_eq!(status.repeated, 2);
    second.close(Duration::from_secs(10)).await;

    // A third run knows it from the store alone.
    let third = Notifier::open(with(&[ops, slow])).unwrap();
    third.send(notice("n-1"));
    let status = third.status().await.unwrap();
    assert_eq!(status.repeated, 2);
    let last: Vec<_> = status.targets.iter().map(|it| it.last_success).collect();
    assert_eq!(last, [Some(now()), Some(now())]);
    let later = format!("{} answered with HTTP status 503: later", late.host());
    let unconfigured = "the target is no longer configured".to_owned();
    let expected = [
        row("slow", DeliveryStatus::Delivered, 2, Some(later)),
        row("ops", DeliveryStatus::Delivered, 1, None),
        row("gone", DeliveryStatus::Failed, 1, Some(unconfigured)),
    ];
    assert_eq!(deliveries(&third).await, expected);
    third.close(Duration::from_secs(10)).await;
    assert_eq!((ok.received().len(), late.received().len()), (1, 2));
    assert_eq!(ok.received()[0].body, late.received()[1].body);
}

#[tokio::test]
async fn a_store_that_fails_does_not_silence_alerts() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let sink = WebhookReceiver::start(&[answer(200, "")]).await;
    let mut options = options(&[webhook("ops", &sink.url)]);
    options.store = Some(store.clone());
    let notifier = Notifier::open(options).unwrap();
    assert_eq!(notifier.status().await.unwrap().store_error, None);
    Connection::open(&store)
        .unwrap()
        .execute_batch("DROP TABLE delivery")
        .unwrap();
    notifier.send(notice("n-1"));
    notifier.send(notice("n-1"));
    let status = wait_until_idle(&notifier).await;
    assert_eq!((status.targets[0].delivered, status.repeated), (1, 1));
    let error = status.store_error.unwrap();
    assert!(error.contains("no such table: delivery"), "{error}");
    assert_eq!(sink.received().len(), 1);
    assert!(matches!(
        notifier
            .deliveries(toolwarden_store::DeliveryFilter::default())
            .await,
        Err(NotifyError::Store(_))
    ));
}

#[test]
fn a_runtime_is_needed() {
    let opened = Notifier::open(NotifierOptions::default());
    assert!(matches!(opened, Err(NotifyError::NoRuntime)));
}
