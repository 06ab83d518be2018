//! What a check of a limit costs in time, and a key in memory.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark measures time, prints it, and ends where it cannot go on"
)]

use std::fmt::Write;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use toolwarden_guard::{Limit, Window};
use toolwarden_live_guard::limiter::{Limiter, RateKey, monotonic_now};

// Short rounds, of which some are not interrupted by whatever else the machine does.
const ROUNDS: u64 = 300;
const CALLS: u64 = 20_000;
const SECOND: u64 = 1_000_000_000;

fn main() {
    if let Some((keys, calls)) = asked_for() {
        return memory(keys, calls);
    }
    println!("| check | ns |\n|---|---:|");
    row("window alone, allowed", window_allowed());
    row("hot key, allowed", hot(limit(1000, 1), 1_000_001));
    row("hot key, refused", hot(limit(3, 3600), 1));
    row("hot key, allowed, with the clock", with_clock());
    row("hot tool and principal, both scopes", both());
    row("10,000 keys", spread(10_000));
    row("1,000,000 keys", spread(1_000_000));
    row("2 threads, one hot key, per call and thread", threads(1));
    row("2 threads, a hot key each, per call and thread", threads(2));
    println!(
        "\n| keys | calls each | s to add | longest check | MB | bytes per key | s to sweep | MB then |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    memory_of_its_own(10_000_000, 1);
    memory_of_its_own(10_000_000, 3);
    memory_of_its_own(Limiter::MAX_KEYS as u64 / 100 * 97, 1);
}

fn asked_for() -> Option<(u64, u64)> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "memory");
    arguments.next()?;
    let mut number = || arguments.next()?.parse().ok();
    Some((number()?, number()?))
}

/// In a process of its own, so that nothing else is measured.
fn memory_of_its_own(keys: u64, calls: u64) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["memory", &keys.to_string(), &calls.to_string()]);
    assert!(command.status().unwrap().success());
}

fn row(name: &str, nanoseconds: f64) {
    println!("| {name} | {nanoseconds:.1} |");
}

fn limit(max: u32, seconds: u64) -> Limit {
    Limit {
        max: NonZeroU32::new(max).unwrap(),
        window: Duration::from_secs(seconds),
    }
}

/// The fastest of some rounds, in nanoseconds per call.
fn fastest(calls: u64, mut round: impl FnMut()) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed()
    });
    times.min().unwrap().as_nanos() as f64 / calls as f64
}

fn window_allowed() -> f64 {
    let (mut window, limit) = (Window::new(), limit(1000, 1));
    let mut now = 0;
    fastest(CALLS, || {
        for _ in 0..CALLS {
            now += 1_000_001;
            black_box(window.check(black_box(now), limit)).unwrap();
        }
    })
}

fn hot(limit: Limit, step: u64) -> f64 {
    let limiter = Limiter::new().unwrap();
    let mut now = 0;
    fastest(CALLS, || {
        for _ in 0..CALLS {
            now += step;
            let key = RateKey::of_agent(black_box("files:read_text"), black_box("agent-42"));
            drop(black_box(limiter.check(now, key, limit)));
        }
    })
}

fn with_clock() -> f64 {
    let (limiter, limit) = (Limiter::new().unwrap(), limit(u32::MAX, 0));
    fastest(CALLS, || {
        for _ in 0..CALLS {
            let key = RateKey::of_agent(black_box("files:read_text"), black_box("agent-42"));
            drop(black_box(limiter.check(monotonic_now(), key, limit)).unwrap());
        }
    })
}

fn both() -> f64 {
    let (limiter, limit) = (Limiter::new().unwrap(), limit(1000, 1));
    let mut now = 0;
    fastest(CALLS, || {
        for _ in 0..CALLS {
            now += 1_000_001;
            let agent = RateKey::of_agent(black_box("files:read_text"), black_box("agent-42"));
            let tool = RateKey::of_tool(black_box("files:read_text"));
            drop(black_box(limiter.check_both(now, (agent, limit), (tool, limit))).unwrap());
        }
    })
}

fn spread(keys: usize) -> f64 {
    let (limiter, limit) = (Limiter::new().unwrap(), limit(1000, 1));
    let names: Vec<String> = (0..keys).map(|index| format!("agent-{index}")).collect();
    let mut now = 0;
    let mut next = names.iter().cycle();
    fastest(CALLS, || {
        for name in next.by_ref().take(usize::try_from(CALLS).unwrap()) {
            now += 1000;
            let key = RateKey::of_agent("files:read_text", name);
            drop(black_box(limiter.check(now, key, limit)).unwrap());
        }
    })
}

fn threads(keys: usize) -> f64 {
    let (limiter, limit) = (Limiter::new().unwrap(), limit(1000, 1));
    let names = ["agent-1", "agent-2"];
    fastest(CALLS, || {
        thread::scope(|scope| {
            for thread in 0..2 {
                let (limiter, name) = (&limiter, names.get(thread % keys).unwrap());
                scope.spawn(move || {
                    for now in 0..CALLS {
                        let key = RateKey::of_agent(black_box("files:read_text"), name);
                        drop(black_box(limiter.check(now * 1_000_001, key, limit)));
                    }
                });
            }
        });
    })
}

fn memory(keys: u64, calls: u64) {
    let limiter = Limiter::new().unwrap();
    let limit = limit(1000, 60);
    let (mut name, mut longest) = (String::new(), Duration::ZERO);
    let before = resident();
    let start = Instant::now();
    for call in 0..calls {
        for index in 0..keys {
            name.clear();
            write!(name, "agent-{index}").unwrap();
            let key = RateKey::of_agent("files:read_text", &name);
            let begin = Instant::now();
            drop(black_box(limiter.check(call, key, limit)).unwrap());
            longest = longest.max(begin.elapsed());
        }
    }
    let adding = start.elapsed();
    let full = resident() - before;
    assert_eq!(limiter.len() as u64, keys);
    let start = Instant::now();
    limiter.sweep(120 * SECOND);
    let sweeping = start.elapsed();
    assert!(limiter.is_empty());
    println!(
        "| {keys} | {calls} | {:.2} | {longest:.1?} | {:.0} | {:.1} | {:.2} | {:.0} |",
        adding.as_secs_f64(),
        full / 1e6,
        full / keys as f64,
        sweeping.as_secs_f64(),
        (resident() - before) / 1e6,
    );
}

/// What of this process is in memory, in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<f64>().unwrap() * 1024.0
}
