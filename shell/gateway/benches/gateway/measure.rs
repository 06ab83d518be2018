//! Programs measured by turns, so that what else the machine does meets all of them.

use std::sync::Arc;
use std::time::Duration;

use super::load::{Calls, Crowd, Ran};
use super::part::Part;

/// How long and how often something is measured.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
    /// How long everybody calls before anything is measured.
    pub(crate) warm: Duration,
}

/// A program and those who call it.
pub(crate) struct Subject<'a> {
    pub(crate) name: &'static str,
    pub(crate) part: &'a Part,
    pub(crate) crowd: Crowd,
    pub(crate) calls: Arc<Calls>,
}

/// What was measured of a program: medians over the rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// Calls in a second.
    pub(crate) rate: f64,
    /// Milliseconds within which half of the calls are answered.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Microseconds of processor time for a call, of the program alone.
    pub(crate) cpu: f64,
}

/// Measures programs by turns.
pub(crate) async fn by_turns(subjects: &mut [Subject<'_>], pace: Pace) -> Vec<Figures> {
    for subject in subjects.iter_mut() {
        subject.crowd.until_ready(&subject.calls).await;
        if !pace.warm.is_zero() {
            subject.crowd.run(&subject.calls, pace.warm).await;
        }
    }
    let mut rounds: Vec<Vec<Figures>> = subjects.iter().map(|_| Vec::new()).collect();
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

fn figures(ran: &Ran, used: Duration) -> Figures {
    Figures {
        rate: ran.calls() / ran.took.as_secs_f64(),
        p50: ran.within(0.5),
        p99: ran.within(0.99),
        cpu: used.as_secs_f64() * 1e6 / ran.calls(),
    }
}

fn medians(rounds: &[Figures]) -> Figures {
    let of = |figure: fn(&Figures) -> f64| median(rounds.iter().map(figure).collect());
    Figures {
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
