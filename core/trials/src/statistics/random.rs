/// A deterministic random generator: xoshiro256++, seeded by SplitMix64. The same seed gives the same
/// numbers everywhere.
#[derive(Clone, Debug)]
pub(crate) struct SeededRandom([u64; 4]);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        let mut at = seed;
        Self(std::array::from_fn(|_| {
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = at;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }))
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        let out = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.0 = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        out
    }

    /// A number below a bound, uniform except for a bias of less than one part in 2³².
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        let product = u128::from(self.next()) * u128::from(bound);
        usize::try_from(product >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the reference implementation for the state 1, 2, 3, 4.
    #[test]
    fn the_numbers_are_those_of_xoshiro() {
        let mut random = SeededRandom([1, 2, 3, 4]);
        let numbers: Vec<u64> = (0..4).map(|_| random.next()).collect();
        assert_eq!(
            numbers,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn draws_are_even() {
        let mut random = SeededRandom::new(7);
        let mut counts = [0_u32; 5];
        for _ in 0..50_000 {
            counts[random.below(5)] += 1;
        }
        assert!(
            counts.iter().all(|it| (9_700..10_300).contains(it)),
            "{counts:?}"
        );
    }
}
