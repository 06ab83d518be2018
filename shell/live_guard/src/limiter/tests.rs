use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use toolwarden_guard::{Limit, Window};

use super::rate_key::RateKeyHash;
use super::{
    Limiter, RateKey, RateLimitExceeded, RateLimitState, check_rate_limit, check_rate_limit_with,
};

fn limiter() -> Limiter {
    Limiter::new().unwrap()
}

fn limit(max: u32, window: u64) -> Limit {
    Limit {
        max: NonZeroU32::new(max).unwrap(),
        window: Duration::from_nanos(window),
    }
}

fn reached(which: usize, wait: u64) -> RateLimitExceeded {
    RateLimitExceeded::Limit {
        which,
        retry_after: Duration::from_nanos(wait),
    }
}

/// Checks a call and drops the proof, because no test here refunds it.
fn call(
    limiter: &Limiter,
    now: u64,
    key: RateKey<'_>,
    limit: Limit,
) -> Result<(), RateLimitExceeded> {
    limiter.check(now, key, limit).map(drop)
}

const T: RateKey<'_> = RateKey::of_tool("t");
const A: RateKey<'_> = RateKey::of_agent("t", "a");

#[test]
fn the_module_level_check_is_that_of_the_document() {
    let own = limiter();
    let with = |_| check_rate_limit_with(&own, "openai-chat:agent-1", 60, 3);
    assert_eq!([0; 5].map(with), [true, true, true, false, false]);
    let shared = |_| check_rate_limit("openai-chat:agent-1", 60, 3);
    assert_eq!([0; 5].map(shared), [true, true, true, false, false]);
    assert!(!check_rate_limit_with(&own, "nothing", 60, 0));
}

#[test]
fn the_state_is_exhausted_at_the_limit() {
    let limiter = limiter();
    for now in 0..59 {
        call(&limiter, now, T, limit(60, 100)).unwrap();
    }
    let state = limiter.state(140, "t", limit(60, 100));
    let expected = RateLimitState {
        connector_name: "t",
        window_start: 40,
        request_count: 19,
        limit: NonZeroU32::new(60).unwrap(),
    };
    assert_eq!(state, expected);
    assert!(!limiter.state(59, "t", limit(60, 100)).is_exhausted());
    call(&limiter, 59, T, limit(60, 100)).unwrap();
    assert!(limiter.state(59, "t", limit(60, 100)).is_exhausted());
    assert!(!limiter.state(59, "other", limit(1, 100)).is_exhausted());
}

#[test]
fn keys_do_not_run_into_each_other() {
    let names = [
        None,
        Some(""),
        Some("a"),
        Some("a:b"),
        Some("b:c"),
        Some("c"),
    ];
    let more = [Some("ab"), Some("bc"), Some("b"), Some("abc"), Some("\0")];
    let names: Vec<_> = names.into_iter().chain(more).collect();
    let limiter = limiter();
    for &tool in &names {
        for &principal in &names {
            let key = RateKey { tool, principal };
            assert_eq!(call(&limiter, 0, key, limit(1, 9)), Ok(()), "{key:?}");
            assert_eq!(call(&limiter, 0, key, limit(1, 9)), Err(reached(0, 10)));
        }
    }
    assert_eq!(limiter.len(), names.len() * names.len());
}

#[test]
fn a_refund_takes_back_exactly_the_call() {
    let limiter = limiter();
    let first = limiter.check(0, T, limit(2, 60)).unwrap();
    call(&limiter, 10, T, limit(2, 60)).unwrap();
    limiter.refund(first);
    call(&limiter, 20, T, limit(2, 60)).unwrap();
    assert_eq!(call(&limiter, 30, T, limit(2, 60)), Err(reached(0, 41)));
}

#[test]
fn a_refund_of_the_only_call_forgets_the_key() {
    let limiter = limiter();
    let both = limiter.check_both(0, (A, limit(1, 60)), (T, limit(1, 60)));
    assert_eq!(limiter.len(), 2);
    limiter.refund(both.unwrap());
    assert!(limiter.is_empty());
}

#[test]
fn a_refund_after_a_reset_is_none() {
    let limiter = limiter();
    limiter.reset(T);
    let before = limiter.check(0, T, limit(1, 60)).unwrap();
    limiter.reset(T);
    call(&limiter, 5, T, limit(1, 60)).unwrap();
    limiter.refund(before);
    assert_eq!(limiter.count(5, T, Duration::from_nanos(60)), 1);
}

#[test]
fn two_limits_record_in_both_or_none() {
    let limiter = limiter();
    let counts = |now| [A, T].map(|key| limiter.count(now, key, Duration::from_nanos(60)));
    let both = |now, agent, tool| {
        let (agent, tool) = ((A, limit(agent, 60)), (T, limit(tool, 60)));
        limiter.check_both(now, agent, tool).map(drop)
    };
    assert_eq!(both(0, 1, 2), Ok(()));
    assert_eq!((both(1, 1, 2), counts(1)), (Err(reached(0, 60)), [1, 1]));
    call(&limiter, 9, T, limit(2, 60)).unwrap();
    assert_eq!((both(10, 2, 2), counts(10)), (Err(reached(1, 51)), [1, 2]));
    // If both are reached, the longer wait is reported.
    assert_eq!((both(10, 1, 1), counts(10)), (Err(reached(1, 60)), [1, 2]));
    assert_eq!((both(61, 1, 2), counts(61)), (Ok(()), [1, 2]));
}

#[test]
fn the_same_key_twice_is_one_key_with_two_limits() {
    let limiter = limiter();
    let both = |now| {
        let checked = limiter.check_both(now, (T, limit(1, 10)), (T, limit(2, 60)));
        checked.map(drop)
    };
    assert_eq!(both(0), Ok(()));
    assert_eq!(both(5), Err(reached(0, 6)));
    assert_eq!(both(20), Ok(()));
    assert_eq!(both(40), Err(reached(1, 21)));
    assert_eq!(limiter.count(40, T, Duration::from_nanos(60)), 2);
}

#[test]
fn a_full_limiter_refuses_new_keys_and_keeps_live_ones() {
    let limiter = Limiter::with_max_keys(3).unwrap();
    for (now, name) in ["a", "b", "c"].into_iter().enumerate() {
        call(&limiter, now as u64, RateKey::of_tool(name), limit(2, 512)).unwrap();
    }
    let full = |wait| RateLimitExceeded::Full {
        retry_after: Duration::from_nanos(wait),
    };
    let new = || RateKey::of_tool("new");
    assert_eq!(call(&limiter, 3, new(), limit(2, 512)), Err(full(510)));
    assert_eq!(call(&limiter, 512, new(), limit(2, 512)), Err(full(1)));
    for name in ["a", "b", "c"] {
        let live = RateKey::of_tool(name);
        assert_eq!(limiter.count(512, live, Duration::from_nanos(512)), 1);
    }
    call(&limiter, 512, RateKey::of_tool("b"), limit(2, 512)).unwrap();
    assert_eq!(call(&limiter, 513, new(), limit(2, 512)), Ok(()));
    assert_eq!(limiter.len(), 3);
}

#[test]
fn a_full_limiter_is_not_searched_for_every_new_key() {
    let limiter = Limiter::with_max_keys(2).unwrap();
    let new = |now, name, window| call(&limiter, now, RateKey::of_tool(name), limit(1, window));
    new(0, "short", 1_000).unwrap();
    new(0, "long", 256_000).unwrap();
    new(1_001, "shorter", 10).unwrap();
    // "shorter" is idle by now, but the last search is less than 1/256 of the longest wait ago.
    let retry_after = Duration::from_nanos(984);
    let refused = Err(RateLimitExceeded::Full { retry_after });
    assert_eq!(new(1_013, "next", 10), refused);
    assert_eq!(new(1_013 + 984, "next", 10), Ok(()));
}

#[test]
fn a_full_limiter_does_not_record_half_a_call() {
    let limiter = Limiter::with_max_keys(1).unwrap();
    let both = limiter.check_both(0, (A, limit(1, 60)), (T, limit(1, 60)));
    let retry_after = Duration::from_nanos(61);
    assert_eq!(both.map(drop), Err(RateLimitExceeded::Full { retry_after }));
    assert!(limiter.is_empty());
}

#[test]
fn idle_keys_go_without_a_sweep() {
    let limiter = Limiter::with_max_keys(100_000).unwrap();
    let mut most = 0;
    for now in 0..200_000u64 {
        let name = now.to_string();
        call(&limiter, now, RateKey::of_tool(&name), limit(1, 1_000)).unwrap();
        if now % 1_000 == 0 {
            most = most.max(limiter.len());
        }
    }
    assert!(most < 4_000, "{most}");
}

#[test]
fn a_sweep_drops_idle_keys_and_their_memory() {
    let limiter = Limiter::with_max_keys(4_096).unwrap();
    for index in 0..4_000u64 {
        let name = index.to_string();
        call(&limiter, index, RateKey::of_tool(&name), limit(1, 10_000)).unwrap();
    }
    let capacity = || limiter.lock(0).capacity();
    limiter.sweep(9_999);
    let before = (limiter.len(), capacity());
    limiter.sweep(13_990);
    assert_eq!(limiter.len(), 10);
    assert!(before.0 == 4_000 && before.1 >= 4_000 && capacity() < 64);
    assert_eq!(
        call(&limiter, 13_990, RateKey::of_tool("3999"), limit(1, 10_000)),
        Err(reached(0, 10))
    );
}

/// The bound that the documentation states.
#[test]
fn ten_million_keys_with_one_call_take_560_megabytes() {
    const PLACE: usize = size_of::<(RateKeyHash, Window)>() + 1;
    let limiter = Limiter::new().unwrap();
    for index in 0..10_000_000_u64 {
        let name = index.to_string();
        call(&limiter, index, RateKey::of_tool(&name), limit(1, u64::MAX)).unwrap();
    }
    assert_eq!(limiter.len(), 10_000_000);
    // The standard library fills a table up to seven eighths.
    let places = |index| (limiter.lock(index).capacity() * 8 / 7).next_power_of_two();
    let places: usize = (0..limiter.shards.len()).map(places).sum();
    assert!(places * PLACE <= 560_000_000, "{places} places");
    let full =
        Limiter::MAX_SHARDS * (Limiter::MAX_KEYS / Limiter::MAX_SHARDS * 8 / 7).next_power_of_two();
    assert!(
        full * PLACE <= 560_000_000,
        "{full} places where it is full"
    );
}

#[test]
fn a_poisoned_lock_still_limits() {
    let limiter = Limiter::with_max_keys(10).unwrap();
    call(&limiter, 0, T, limit(1, 60)).unwrap();
    thread::scope(|scope| {
        let poisoner = scope.spawn(|| {
            let _held = limiter.lock(0);
            panic!("poisons the lock");
        });
        assert!(poisoner.join().is_err());
    });
    assert!(limiter.shards[0].0.is_poisoned());
    assert_eq!(call(&limiter, 0, T, limit(1, 60)), Err(reached(0, 61)));
    assert_eq!(call(&limiter, 61, T, limit(1, 60)), Ok(()));
}

const THREADS: u64 = 4;
const CALLS: u64 = 20_000;

/// Each shard logs, under its lock, what it decided and when. A plain list that gets the same calls in the
/// same order must decide the same, and no period may hold too many records.
#[test]
fn concurrent_checks_are_linearizable() {
    let limiter = limiter();
    let limit = limit(7, 50);
    let clock = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for index in 0..CALLS {
                    let now = clock.fetch_add(1, Ordering::Relaxed);
                    let name = ["a", "b", "c"][(index % 3) as usize];
                    drop(limiter.check(now, RateKey::of_tool(name), limit));
                }
            });
        }
    });
    let mut by_key: BTreeMap<usize, Vec<(u64, Option<u64>)>> = BTreeMap::new();
    let ids = ["a", "b", "c"].map(|name| limiter.hasher.id(RateKey::of_tool(name)));
    for index in 0..limiter.shards.len() {
        for &(id, now, recorded) in &limiter.lock(index).decided {
            let key = ids.iter().position(|known| *known == id).unwrap();
            by_key.entry(key).or_default().push((now, recorded));
        }
    }
    let decided: usize = by_key.values().map(Vec::len).sum();
    assert_eq!(decided as u64, THREADS * CALLS);
    for decided in by_key.values() {
        let mut calls: Vec<u64> = Vec::new();
        for &(now, recorded) in decided {
            let time = calls.last().map_or(now, |last| now.max(*last));
            let counting = calls.iter().rev().take_while(|&&at| at + 50 >= time);
            let expected = (counting.count() < 7).then_some(time);
            assert_eq!(recorded, expected);
            calls.extend(recorded);
        }
        assert!(calls.len() > 100);
        assert!(calls.windows(8).all(|eight| eight[7] - eight[0] > 50));
    }
}

#[test]
fn threads_record_pairs_atomically_without_deadlock() {
    let limiter = limiter();
    let agents = ["a", "b", "c", "d"].map(|name| RateKey::of_agent("t", name));
    let (tool, agent) = (limit(5_000, 1_000_000), limit(2_000, 1_000_000));
    let allowed = AtomicU64::new(0);
    thread::scope(|scope| {
        for index in 0..2 * agents.len() {
            let key = agents[index / 2];
            let (limiter, allowed) = (&limiter, &allowed);
            scope.spawn(move || {
                for call in 0..CALLS {
                    let (own, all) = ((key, agent), (T, tool));
                    let pair = if index % 2 == 0 {
                        (own, all)
                    } else {
                        (all, own)
                    };
                    let Ok(metered) = limiter.check_both(1, pair.0, pair.1) else {
                        continue;
                    };
                    if call % 3 == 0 {
                        limiter.refund(metered);
                    } else {
                        allowed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let count = |key| limiter.count(1, key, tool.window) as u64;
    assert_eq!(allowed.into_inner(), 5_000);
    assert_eq!(count(T), 5_000);
    assert_eq!(agents.map(count).iter().sum::<u64>(), 5_000);
    assert!(agents.map(count).iter().all(|&calls| calls <= 2_000));
}

proptest! {
    #[test]
    fn pairs_agree_with_plain_lists(
        steps in prop::collection::vec((0..12u64, 0..3usize, 0..3usize), 1..200),
    ) {
        let limiter = limiter();
        let keys = [T, A, RateKey::of_agent("t", "b")];
        let limits = [limit(5, 40), limit(2, 60), limit(3, 20)];
        let mut lists: [Vec<u64>; 3] = Default::default();
        let mut now = 0;
        for (tick, one, two) in steps {
            now += tick;
            let room = |key: usize| {
                let window = u64::try_from(limits[key].window.as_nanos()).unwrap();
                let counting = lists[key].iter().filter(|&&at| at + window >= now).count();
                counting < limits[key].max.get() as usize
            };
            let expected = room(one) && room(two);
            let checked =
                limiter.check_both(now, (keys[one], limits[one]), (keys[two], limits[two]));
            prop_assert_eq!(checked.is_ok(), expected);
            if expected {
                lists[one].push(now);
                if one != two {
                    lists[two].push(now);
                }
            } else if let Err(RateLimitExceeded::Limit { retry_after, .. }) = checked {
                let then = now + u64::try_from(retry_after.as_nanos()).unwrap();
                let again = |now| {
                    let pair = ((keys[one], limits[one]), (keys[two], limits[two]));
                    limiter.check_both(now, pair.0, pair.1).map(|metered| limiter.refund(metered))
                };
                prop_assert!(again(then - 1).is_err());
            }
        }
    }
}
