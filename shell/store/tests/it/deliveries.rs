use toolwarden_store::{
    Delivery, DeliveryFilter, DeliveryStatus, LastDelivery, PendingDelivery, Store, StoredAttempt,
};

use super::{at, fresh};

const FIRST: &str = "2026-11-16T10:00:00.000Z";
const LATER: &str = "2026-11-16T10:00:05.000Z";

fn attempt<'t>(
    target: &'t str,
    notice: &'t str,
    status: DeliveryStatus,
    tries: u32,
    error: Option<&'t str>,
) -> StoredAttempt<'t> {
    StoredAttempt {
        target,
        notice,
        status,
        tries,
        error,
        at: at(LATER),
    }
}

fn queue(store: &Store, target: &str, notice: &str) -> bool {
    store
        .queue_delivery(target, notice, "{\"id\":1}", at(FIRST))
        .unwrap()
}

fn row(target: &str, notice: &str, status: DeliveryStatus, tries: u32, when: &str) -> Delivery {
    Delivery {
        target: target.to_owned(),
        notice: notice.to_owned(),
        status,
        tries,
        error: None,
        at: at(when),
    }
}

#[test]
fn a_notice_is_queued_once_for_each_target_until_it_is_given_up() {
    let (_folder, store) = fresh();
    assert!(queue(&store, "ops", "a"));
    assert!(!queue(&store, "ops", "a"), "pending");
    assert!(queue(&store, "mail", "a"));
    let delivered = attempt("ops", "a", DeliveryStatus::Delivered, 1, None);
    store.record_attempt(&delivered).unwrap();
    let failed = attempt("mail", "a", DeliveryStatus::Failed, 6, Some("refused"));
    store.record_attempt(&failed).unwrap();

    // Another process sees the same.
    let again = Store::open(store.path()).unwrap();
    assert!(!queue(&again, "ops", "a"), "delivered");
    assert!(queue(&again, "mail", "a"), "given up");
    let pending = again.pending_deliveries().unwrap();
    let expected = PendingDelivery {
        target: "mail".to_owned(),
        notice: "a".to_owned(),
        document: "{\"id\":1}".to_owned(),
        tries: 0,
    };
    assert_eq!(pending, [expected]);
}

#[test]
fn outcomes_are_listed_by_target_notice_and_status() {
    let (_folder, store) = fresh();
    for (target, notice) in [("ops", "a"), ("mail", "a"), ("ops", "b")] {
        queue(&store, target, notice);
    }
    let failing = attempt("ops", "a", DeliveryStatus::Pending, 2, Some("status 503"));
    store.record_attempt(&failing).unwrap();
    let delivered = attempt("mail", "a", DeliveryStatus::Delivered, 1, None);
    store.record_attempt(&delivered).unwrap();
    let unknown = attempt("missing", "a", DeliveryStatus::Delivered, 1, None);
    store.record_attempt(&unknown).unwrap();

    let mut first = row("ops", "a", DeliveryStatus::Pending, 2, LATER);
    first.error = Some("status 503".to_owned());
    let second = row("mail", "a", DeliveryStatus::Delivered, 1, LATER);
    let third = row("ops", "b", DeliveryStatus::Pending, 0, FIRST);
    let told = |filter: DeliveryFilter| store.deliveries(&filter).unwrap();
    let all = [third.clone(), second.clone(), first.clone()];
    assert_eq!(told(DeliveryFilter::default()), all);
    let of_notice = DeliveryFilter {
        notice: Some("a".to_owned()),
        ..DeliveryFilter::default()
    };
    assert_eq!(told(of_notice), [second, first]);
    let of_target = DeliveryFilter {
        target: Some("ops".to_owned()),
        status: Some(DeliveryStatus::Pending),
        limit: Some(1),
        ..DeliveryFilter::default()
    };
    assert_eq!(told(of_target), [third]);

    let last = |target: &str, success, failure| LastDelivery {
        target: target.to_owned(),
        success,
        failure,
    };
    let failure = Some((at(LATER), "status 503".to_owned()));
    let expected = [
        last("mail", Some(at(LATER)), None),
        last("ops", None, failure),
    ];
    assert_eq!(store.last_deliveries().unwrap(), expected);
}

#[test]
fn only_what_is_settled_is_pruned() {
    let (_folder, store) = fresh();
    queue(&store, "ops", "a");
    queue(&store, "ops", "b");
    let delivered = attempt("ops", "a", DeliveryStatus::Delivered, 1, None);
    store.record_attempt(&delivered).unwrap();
    assert_eq!(store.prune_deliveries(at(LATER)).unwrap(), 0);
    let after = at("2026-11-17T00:00:00Z");
    assert_eq!(store.prune_deliveries(after).unwrap(), 1);
    let left = store.deliveries(&DeliveryFilter::default()).unwrap();
    assert_eq!(left, [row("ops", "b", DeliveryStatus::Pending, 0, FIRST)]);
    assert!(queue(&store, "ops", "a"), "no longer known");
}
