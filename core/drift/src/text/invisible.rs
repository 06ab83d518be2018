use super::script::is_right_to_left;
use super::{bidi, hidden};

/// The number of further passes over the remaining text: a removed character may have justified its
/// neighbour.
const ROUNDS: usize = 4;

/// Marks the invisible characters of a text: those that [`scan`](super::scan) reports as hidden or as
/// reordering the text. Without them, it reports no such finding.
///
/// Joiners inside emoji and words that need them are not among them.
#[must_use]
pub fn find_invisible(chars: &[char]) -> Vec<bool> {
    let mut unseen = vec![false; chars.len()];
    let mut places: Vec<usize> = (0..chars.len()).collect();
    for round in 0..=ROUNDS {
        let left: Vec<char> = places
            .iter()
            .filter_map(|at| chars.get(*at).copied())
            .collect();
        let found = if round < ROUNDS {
            find_unexplained(&left)
        } else {
            // An author who needs this many rounds built the text to evade the check.
            left.iter().map(|c| hidden::is_hidden(*c)).collect()
        };
        if !found.contains(&true) {
            break;
        }
        let mut kept = Vec::with_capacity(places.len());
        for (at, is_unseen) in places.into_iter().zip(found) {
            match unseen.get_mut(at) {
                Some(mark) if is_unseen => *mark = true,
                _ => kept.push(at),
            }
        }
        places = kept;
    }
    unseen
}

fn find_unexplained(chars: &[char]) -> Vec<bool> {
    let right_to_left = chars.iter().any(|c| is_right_to_left(*c));
    let mut found = hidden::find_hidden(chars);
    for (c, mark) in chars.iter().zip(&mut found) {
        *mark |= bidi::is_control(*c) && !(bidi::is_mark(*c) && right_to_left);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let chars: Vec<char> = text.chars().collect();
        let marks = find_invisible(&chars);
        let kept = chars.iter().zip(marks).filter(|(_, unseen)| !unseen);
        kept.map(|(c, _)| c).collect()
    }

    #[test]
    fn what_nobody_sees_goes_and_what_spelling_needs_stays() {
        let cases = [
            ("plain", "plain"),
            ("a\u{200b}b", "ab"),
            ("a\u{e0041}\u{e0042}b", "ab"),
            ("a\u{202e}b\u{202c}", "ab"),
            ("a\u{200e}b", "ab"),
            // A family, a flag, a Devanagari conjunct, a mark beside Hebrew.
            ("\u{1f468}\u{200d}\u{1f469}", "\u{1f468}\u{200d}\u{1f469}"),
            (
                "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
                "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            ),
            (
                "\u{915}\u{94d}\u{200d}\u{937}",
                "\u{915}\u{94d}\u{200d}\u{937}",
            ),
            ("\u{5d0}\u{200e}1", "\u{5d0}\u{200e}1"),
            // The first is the reason for the second.
            ("a\u{17b4}\u{17b4}\u{17b5}", "a"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{}", text.escape_unicode());
        }
    }

    #[test]
    fn a_chain_of_reasons_ends() {
        let chain = "\u{17b4}".repeat(40);
        assert_eq!(shown(&format!("a{chain}")), "a");
    }
}
