/// `, did you mean …?` for the known word nearest to a misspelled one, or an empty text.
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let limit = 1 + word.chars().count() / 4;
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        // A word without a common letter is not a misspelling, and an empty word is not a
        // suggestion.
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.chars().count())
        .min()
        .map_or_else(String::new, |(_, candidate)| {
            format!(", did you mean `{candidate}`?")
        })
}

/// The edit distance, with a transposition of neighbours counted once.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at =
                |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut cost = (at(&last, j) + usize::from(x != y))
                .min(at(&last, j + 1) + 1)
                .min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                cost = cost.min(at(&before_last, j - 1) + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        assert_eq!(
            did_you_mean("confidental", ["public", "confidential"]),
            ", did you mean `confidential`?"
        );
        assert_eq!(did_you_mean("cda", ["cad", "xyz"]), ", did you mean `cad`?");
        assert_eq!(did_you_mean("zebra", ["public", "internal"]), "");
        assert_eq!(did_you_mean("", ["public"]), "");
        assert_eq!(did_you_mean("x", ["", "y"]), "");
        assert_eq!(did_you_mean("a", ["ab"]), ", did you mean `ab`?");
    }
}
