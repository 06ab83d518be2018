//! Programs measured by turns, so that what else the machine does meets all of them.

use std::sync::Arc;
use std::time::Duration;

use super::load::{ClientPool, LoadCalls, LoadResult};
use super::part::Part;

/// How long and how often something is measured.
#[derive(Clone, Copy)]
pub(crate) struct LoadProfile {
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
    /// How long all clients call before anything is measured.
    pub(crate) warm: Duration,
}

/// A program and its clients.
pub(crate) struct Subject<'a> {
    pub(crate) name: &'static str,
    pub(crate) part: &'a Part,
    pub(crate) crowd: ClientPool,
    pub(crate) calls: Arc<LoadCalls>,
}

/// The results for a program: medians over the rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurements {
    /// Calls in a second.
    pub(crate) rate: f64,
    /// Milliseconds within which half of the calls are answered.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Microseconds of processor time for a call, of the program alone.
    pub(crate) cpu: f64,
}

/// Measures programs by turns.
pub(crate) async fn by_turns(subjects: &mut [Subject<'_>], pace: LoadProfile) -> Vec<Measurements> {
    for subject in subjects.iter_mut() {
        subject.crowd.until_ready(&subject.calls).await;
        if !pace.warm.is_zero() {
            subject.crowd.run(&subject.calls, pace.warm).await;
        }
    }
    let mut rounds: Vec<Vec<Measurements>> = subjects.iter().map(|_| Vec::new()).collect();
    for _ in 0..pace.rounds {
        for (subject, rounds) in subjects.iter_mut().zip(&mut rounds) {
            let before = subject.part.cpu_at_rest().await;
            let ran = subject.crowd.run(&subject.calls, pace.time).await;
            let used = subject.part.cpu_at_rest().await - before;
            rounds.push(figures(&ran, used));
        }
    }
    rounds.iter().map(|rounds| medians(rounds)).collect()
}

fn figures(ran: &LoadResult, used: Duration) -> Measurements {
    Measurements {
        rate: ran.calls() / ran.took.as_secs_f64(),
        p50: ran.within(0.5),
        p99: ran.within(0.99),
        cpu: used.as_secs_f64() * 1e6 / ran.calls(),
    }
}

fn medians(rounds: &[Measurements]) -> Measurements {
    let of = |figure: fn(&Measurements) -> f64| median(rounds.iter().map(figure).collect());
    Measurements {
        rate: of(|it| it.rate),
        p50: of(|it| it.p50),
        p99: of(|it| it.p99),
        cpu: of(|it| it.cpu),
    }
}

/// The middle of some figures.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}
