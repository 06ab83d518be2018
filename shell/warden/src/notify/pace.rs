use std::time::Duration;

/// How deliveries are tried, and tried again.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The most tries of one notice at one target.
    pub tries: u32,
    /// How long one try may take.
    pub timeout: Duration,
    /// The pause after the first try.
    pub first: Duration,
    /// How much longer each further pause is.
    pub factor: u32,
    /// The longest pause we choose ourselves.
    pub most: Duration,
    /// The longest pause a target can ask for.
    pub most_asked: Duration,
    /// A number between 0 and 1, so that many who failed at once do not come back at once.
    pub luck: fn() -> f64,
}

impl Default for Pace {
    /// Six tries in some six minutes.
    fn default() -> Self {
        Self {
            tries: 6,
            timeout: Duration::from_secs(10),
            first: Duration::from_secs(1),
            factor: 4,
            most: Duration::from_secs(300),
            most_asked: Duration::from_secs(3600),
            luck,
        }
    }
}

impl Pace {
    /// How long to wait after a number of tries: as long as the target says, else longer each time.
    pub(super) fn pause(&self, tries: u32, asked: Option<Duration>) -> Duration {
        if let Some(asked) = asked {
            return asked.min(self.most_asked);
        }
        let longer = self.factor.saturating_pow(tries.saturating_sub(1));
        let full = self.first.saturating_mul(longer).min(self.most);
        full.mul_f64(0.5 + (self.luck)().clamp(0.0, 1.0) / 2.0)
    }
}

fn luck() -> f64 {
    // Without randomness everybody waits the longest.
    let drawn = getrandom::u32().unwrap_or(u32::MAX);
    f64::from(drawn) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let pace = |luck| Pace {
            luck,
            ..Pace::default()
        };
        let late = pace(|| 1.0);
        let pauses = [1, 2, 3, 4, 5, 6, 99].map(|tries| late.pause(tries, None).as_secs());
        assert_eq!(pauses, [1, 4, 16, 64, 256, 300, 300]);
        assert_eq!(pace(|| 0.0).pause(2, None), Duration::from_secs(2));
        let asked = |seconds| late.pause(3, Some(Duration::from_secs(seconds))).as_secs();
        assert_eq!([asked(0), asked(7), asked(90_000)], [0, 7, 3600]);
        assert!((0.0..=1.0).contains(&luck()));
    }
}
