//! A gateway that is killed under load loses no record of a call that was answered, and leaves no process
//! behind.

use std::time::{Duration, Instant};

use super::callers::{AnsweredCalls, POLICY, require_records};
use super::{ServedGateway, is_running, servers_of, shop_settings};
use crate::sandbox::Sandbox;

/// How many gateways run at a time, each with a store of its own.
const GATEWAYS: u64 = 2;

/// How often a gateway is killed; `TOOLWARDEN_KILLS` sets another number.
fn kills() -> u64 {
    let asked = std::env::var("TOOLWARDEN_KILLS").ok();
    asked.and_then(|it| it.parse().ok()).unwrap_or(500)
}

#[test]
fn no_answered_call_is_without_its_records() {
    let kills = kills();
    let begun = Instant::now();
    let answered: u64 = std::thread::scope(|scope| {
        let killed = (0..GATEWAYS).map(|number| {
            let share = kills / GATEWAYS + u64::from(number < kills % GATEWAYS);
            scope.spawn(move || killed_under_load(share))
        });
        let killed: Vec<_> = killed.collect();
        killed.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert!(answered > kills, "{answered}");
    let seconds = begun.elapsed().as_secs();
    println!("{kills} kills, {answered} answered calls, none without its records, {seconds} s");
}

/// Kills the gateway of one store so many times; gives the number of answered calls.
fn killed_under_load(times: u64) -> u64 {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &shop_settings(POLICY));
    let answered = AnsweredCalls::default();
    for round in 0..times {
        let mut served = ServedGateway::start(&sandbox, &[]);
        let children = servers_of(served.process.id());
        assert!(!children.is_empty(), "round {round}");
        answered.while_calling(&served, || {
            // Each time at another moment of what is going on.
            std::thread::sleep(Duration::from_millis(60 + round * 37 % 211));
            served.process.signal("-KILL");
        });
        served.process.end();
        gone(&children);
    }
    let answered = answered.so_far();
    require_records(&sandbox, "toolwarden.db", &answered);
    answered.len() as u64
}

/// Waits until programs are gone.
fn gone(children: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while children.iter().any(|id| is_running(*id)) {
        assert!(
            Instant::now() < deadline,
            "{children:?} outlived the gateway"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
