use toolwarden_store::{
    AlertFilter, AlertNovelty, AlertStatus, BaselineOrigin, NewAlert, NewSighting, ServerKey,
    Store, ToolwatchHashes,
};

use super::{approval, at, fresh, key, new, stored_definition};

#[test]
fn the_last_baseline_counts_and_all_are_remembered() {
    let (_folder, store) = fresh();
    let server = store.ensure_server(&key(), false, approval().at).unwrap();
    let approval = approval();
    for (tool, text, origin) in [
        ("click", r#"{"v":1}"#, BaselineOrigin::Pinned),
        ("wait", r#"{"v":1}"#, BaselineOrigin::Registered),
        ("click", r#"{"v":2}"#, BaselineOrigin::Approved),
        ("wait", r#"{"v":1}"#, BaselineOrigin::Retired),
    ] {
        store
            .add_baseline(server.id, &new(tool, text, origin, &approval))
            .unwrap();
    }
    let now = store.baselines(server.id).unwrap();
    assert_eq!(now.len(), 1, "a retired tool has no baseline");
    assert_eq!(now[0].tool, "click");
    assert_eq!(now[0].definition, Some(stored_definition(r#"{"v":2}"#)));
    assert_eq!(now[0].approval, approval);
    let history = store.history(server.id, "click").unwrap();
    let origins: Vec<BaselineOrigin> = history.iter().map(|it| it.origin).collect();
    assert_eq!(origins, [BaselineOrigin::Pinned, BaselineOrigin::Approved]);
    let first = history[0].definition.unwrap().fingerprint;
    assert_eq!(store.definition(first).unwrap(), r#"{"v":1}"#);
}

#[test]
fn servers_and_scopes_are_kept_apart_and_seals_hold() {
    let (_folder, store) = fresh();
    let other = ServerKey {
        scope: "admin".to_owned(),
        ..key()
    };
    let approval = approval();
    let first = store.ensure_server(&key(), true, approval.at).unwrap();
    let second = store.ensure_server(&other, false, approval.at).unwrap();
    assert_ne!(first.id, second.id);
    let again = store.ensure_server(&key(), false, approval.at).unwrap();
    assert_eq!((again.id, again.sealed), (first.id, true));
    let text = r#"{"name":"click"}"#;
    store
        .add_baseline(
            first.id,
            &new("click", text, BaselineOrigin::Pinned, &approval),
        )
        .unwrap();
    assert_eq!(store.baselines(second.id).unwrap(), []);
    assert_eq!(store.servers().unwrap(), [second, again]);
}

#[test]
fn what_fails_half_way_never_happened() {
    let (_folder, store) = fresh();
    let approval = approval();
    let server = store.ensure_server(&key(), false, approval.at).unwrap();
    let failed: Result<(), toolwarden_store::StoreError> = store.write_transaction(|store| {
        store.add_baseline(
            server.id,
            &new("click", "{}", BaselineOrigin::Pinned, &approval),
        )?;
        Err(toolwarden_store::StoreError::Busy {
            path: store.path().to_owned(),
        })
    });
    failed.unwrap_err();
    assert_eq!(store.baselines(server.id).unwrap(), []);
}

#[test]
fn the_same_drift_is_one_alert() {
    let (_folder, store) = fresh();
    let server = store.ensure_server(&key(), false, approval().at).unwrap();
    let alert = |id: &'static str, hour: &str| NewAlert {
        id,
        tool: "click",
        change_type: "schema_change",
        severity: "high",
        class: "breaking",
        at: at(&format!("2026-11-16T{hour}:00:00Z")),
        document: "{}",
        toolwatch_document: "{}",
    };
    let raise = |id, hour| store.raise_alert(server.id, &alert(id, hour)).unwrap();
    assert_eq!(raise("a", "10"), AlertNovelty::New);
    assert_eq!(raise("a", "11"), AlertNovelty::Known);
    assert_eq!(raise("b", "12"), AlertNovelty::New);
    assert_eq!(store.alerted_tools(server.id).unwrap(), ["click"]);
    let closed = store.settle_alerts(
        server.id,
        "click",
        "schema_change",
        AlertStatus::Closed,
        &["b".to_owned()],
    );
    assert_eq!(closed.unwrap(), 1);
    let all = store.alerts(&AlertFilter::default()).unwrap();
    let told: Vec<_> = all
        .iter()
        .map(|it| (it.id.as_str(), it.times, it.status))
        .collect();
    assert_eq!(
        told,
        [("a", 2, AlertStatus::Closed), ("b", 1, AlertStatus::Open)]
    );
    assert_eq!(
        raise("a", "13"),
        AlertNovelty::Known,
        "the alert is known and reopened"
    );
    let open = AlertFilter {
        status: Some(AlertStatus::Open),
        since: Some(at("2026-11-16T12:30:00Z")),
        ..AlertFilter::default()
    };
    let open: Vec<String> = store
        .alerts(&open)
        .unwrap()
        .into_iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(open, ["a"]);
}

#[test]
fn sightings_and_hourly_shapes_come_and_go() {
    let (_folder, store) = fresh();
    let server = store
        .ensure_server(&key(), false, approval().at)
        .unwrap()
        .id;
    let seen = |version: &'static str| NewSighting {
        tool: "click",
        definition: Some((stored_definition("{}"), "{}")),
        shape: None,
        response_hash: None,
        version,
        at: at("2026-11-16T10:00:00Z"),
    };
    store.save_sighting(server, &seen("2")).unwrap();
    store.save_sighting(server, &seen("3")).unwrap();
    let kept = store.sightings(server).unwrap();
    assert_eq!(
        kept.iter()
            .map(|it| it.version.as_str())
            .collect::<Vec<_>>(),
        ["3"]
    );
    store.delete_sighting(server, "click").unwrap();
    assert_eq!(store.sightings(server).unwrap(), []);

    let keep = |hour: &str, shape: &str, oldest: &str| {
        let (hour, oldest) = (
            at(&format!("2026-11-{hour}:30:00Z")),
            at(&format!("2026-11-{oldest}:00:00Z")),
        );
        store
            .save_observed_shape(server, "click", hour, shape, oldest)
            .unwrap();
    };
    keep("16T08", "a", "15T08");
    keep("16T09", "b", "15T08");
    keep("16T09", "c", "15T08");
    let since = |hour: &str| {
        store
            .observed_shapes(server, "click", at(&format!("2026-11-{hour}:00:00Z")))
            .unwrap()
    };
    assert_eq!(since("16T00"), ["a", "c"]);
    assert_eq!(since("16T09"), ["c"]);
    keep("17T09", "d", "16T09");
    assert_eq!(since("16T00"), ["c", "d"]);
}

#[test]
fn looks_are_counted_by_baseline() {
    let (_folder, store) = fresh();
    let approval = approval();
    let server = store.ensure_server(&key(), false, approval.at).unwrap().id;
    let mut row = new("click", "{}", BaselineOrigin::Pinned, &approval);
    row.old = ToolwatchHashes {
        schema: Some("abc".to_owned()),
        response: None,
    };
    let id = store.add_baseline(server, &row).unwrap();
    assert_eq!(store.count_comparison(id).unwrap(), 1);
    assert_eq!(store.count_comparison(id).unwrap(), 2);
    store
        .approve_change(id, "c0ffee", stored_definition("{}"), &approval)
        .unwrap();
    let approved = store.approved_changes(id).unwrap();
    assert_eq!(
        (approved[0].change.as_str(), &approved[0].approval),
        ("c0ffee", &approval)
    );
    assert_eq!(store.baselines(server).unwrap()[0].old, row.old);
}

#[test]
fn an_opened_store_is_the_same_store() {
    let (_folder, store) = fresh();
    let approval = approval();
    let server = store.ensure_server(&key(), true, approval.at).unwrap();
    store
        .add_baseline(
            server.id,
            &new("click", "{}", BaselineOrigin::Pinned, &approval),
        )
        .unwrap();
    let (path, secret) = (store.path().to_owned(), store.value_key().unwrap());
    let before = store.baselines(server.id).unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.value_key().unwrap(), secret);
    assert_eq!(store.baselines(server.id).unwrap(), before);
}

#[test]
fn a_server_is_open_until_it_is_sealed_again() {
    let (_folder, store) = fresh();
    let at = approval().at;
    let sealed = store.ensure_server(&key(), true, at).unwrap();
    assert!(sealed.sealed && !sealed.open);
    store.mark_unsealed(&key(), at).unwrap();
    let open = store.ensure_server(&key(), false, at).unwrap();
    assert!(open.open && !open.sealed, "keep_server does not seal it");
    let again = store.ensure_server(&key(), true, at).unwrap();
    assert!(again.sealed && !again.open);
}
