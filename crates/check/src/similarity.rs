//! Similarity of an output and a reference text.
//!
//! - `token_f1`: the F1 score of SQuAD (Rajpurkar et al. 2016, `evaluate-v1.1.py`): lower case, no
//!   ASCII punctuation, no English articles, then words as a bag.
//! - `bleu`: sentence-level BLEU (Papineni et al. 2002) up to 4-grams with the brevity penalty and,
//!   from bigrams on, one added to the matches and to the total (Lin & Och 2004, "ORANGE").
//! - `rouge_l`: the F-measure (β = 1) of the longest common subsequence (Lin 2004, "ROUGE").
//!
//! For BLEU and ROUGE-L, words are runs of letters and digits in lower case, as in the package
//! `rouge-score`, but of any script.

use std::collections::HashMap;

/// Maximum number of words in either text for BLEU and ROUGE-L.
pub const MAX_SIMILARITY_WORDS: usize = 20_000;

/// A similarity metric with values from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// F1 over words.
    TokenF1,
    /// Sentence BLEU.
    Bleu,
    /// ROUGE-L.
    RougeL,
}

impl Metric {
    /// Names in suite files.
    pub(crate) const NAMES: &'static [&'static str] = &["token_f1", "bleu", "rouge_l"];

    pub(crate) fn parse(name: &str) -> Option<Metric> {
        match name {
            "token_f1" => Some(Metric::TokenF1),
            "bleu" => Some(Metric::Bleu),
            "rouge_l" => Some(Metric::RougeL),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Metric::TokenF1 => "token_f1",
            Metric::Bleu => "bleu",
            Metric::RougeL => "rouge_l",
        }
    }

    /// Computes the similarity; the error states why that is impossible.
    pub(crate) fn measure(self, output: &str, reference: &str) -> Result<f64, String> {
        if self == Metric::TokenF1 {
            return Ok(token_f1(output, reference));
        }
        let (output, reference) = (tokens(output), tokens(reference));
        for (name, words) in [("output", output.len()), ("reference", reference.len())] {
            if words > MAX_SIMILARITY_WORDS {
                return Err(format!(
                    "{} compares at most {MAX_SIMILARITY_WORDS} words; the {name} has {words}",
                    self.name()
                ));
            }
        }
        let mut numbers = HashMap::new();
        let (output, reference) = (intern(&output, &mut numbers), intern(&reference, &mut numbers));
        Ok(match self {
            Metric::Bleu => bleu(&output, &reference),
            _ => rouge_l(&output, &reference),
        })
    }
}

fn tokens(text: &str) -> Vec<String> {
    let runs = text.split(|letter: char| !letter.is_alphanumeric());
    runs.filter(|run| !run.is_empty()).map(str::to_lowercase).collect()
}

/// Maps equal words to equal numbers.
fn intern<'t>(tokens: &'t [String], numbers: &mut HashMap<&'t str, usize>) -> Vec<usize> {
    let mut numbered = Vec::with_capacity(tokens.len());
    for token in tokens {
        let next = numbers.len();
        numbered.push(*numbers.entry(token).or_insert(next));
    }
    numbered
}

fn count<T: std::hash::Hash + Eq>(items: impl Iterator<Item = T>) -> HashMap<T, usize> {
    let mut counts = HashMap::new();
    items.for_each(|item| *counts.entry(item).or_default() += 1);
    counts
}

/// Returns the size of the multiset intersection.
fn common<T: std::hash::Hash + Eq>(one: &HashMap<T, usize>, other: &HashMap<T, usize>) -> usize {
    one.iter().map(|(item, count)| *count.min(other.get(item).unwrap_or(&0))).sum()
}

/// Returns the harmonic mean of precision and recall; two empty texts are equal.
fn f_measure(common: usize, one: usize, other: usize) -> f64 {
    match one + other {
        0 => 1.0,
        both => 2.0 * common as f64 / both as f64,
    }
}

fn token_f1(output: &str, reference: &str) -> f64 {
    let words = |text: &str| -> Vec<String> {
        let text = text.to_lowercase().replace(|letter: char| letter.is_ascii_punctuation(), "");
        let words = text.split_whitespace().filter(|word| !["a", "an", "the"].contains(word));
        words.map(str::to_owned).collect()
    };
    let (output, reference) = (words(output), words(reference));
    let shared = common(&count(output.iter()), &count(reference.iter()));
    f_measure(shared, output.len(), reference.len())
}

fn bleu(output: &[usize], reference: &[usize]) -> f64 {
    const ORDERS: usize = 4;
    if output.is_empty() || reference.is_empty() {
        return f_measure(0, output.len(), reference.len());
    }
    let mut logarithms = 0.0;
    for order in 1..=ORDERS {
        let ngrams = count(output.windows(order));
        let matches = common(&ngrams, &count(reference.windows(order)));
        let total = output.len().saturating_sub(order - 1);
        let added = usize::from(order > 1);
        if matches + added == 0 {
            return 0.0;
        }
        logarithms += ((matches + added) as f64 / (total + added) as f64).ln();
    }
    let brevity = 1.0 - reference.len() as f64 / output.len() as f64;
    (brevity.min(0.0) + logarithms / ORDERS as f64).exp()
}

fn rouge_l(output: &[usize], reference: &[usize]) -> f64 {
    f_measure(common_subsequence(output, reference), output.len(), reference.len())
}

/// Returns the length of the longest common subsequence, 64 columns at a time (Hyyrö 2004, "Bit-parallel
/// LCS-length computation revisited").
fn common_subsequence(one: &[usize], other: &[usize]) -> usize {
    let mut positions: HashMap<usize, Vec<usize>> = HashMap::new();
    for (position, item) in one.iter().enumerate() {
        positions.entry(*item).or_default().push(position);
    }
    let mut open = vec![u64::MAX; one.len().div_ceil(64)];
    let mut matches = vec![0_u64; open.len()];
    for item in other {
        let Some(positions) = positions.get(item) else { continue };
        positions.iter().for_each(|position| matches[position / 64] |= 1 << (position % 64));
        let mut carry = false;
        for (word, matched) in open.iter_mut().zip(&mut matches) {
            let taken = *word & *matched;
            let (sum, over) = word.overflowing_add(taken);
            let (sum, over_again) = sum.overflowing_add(u64::from(carry));
            carry = over || over_again;
            *word = sum | (*word - taken);
            *matched = 0;
        }
    }
    let taken = |position: &usize| open[position / 64] & (1 << (position % 64)) == 0;
    (0..one.len()).filter(taken).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Values from SQuAD's `evaluate-v1.1.py`, sacrebleu 2.6.0 (`smooth_method="add-k"`,
    /// `smooth_value=1`, `effective_order=True`, `tokenize="none"` over the words of rouge-score)
    /// and rouge-score 0.1.2 (`rougeL`, no stemmer).
    const REFERENCE: &[(&str, &str, f64, f64, f64)] = &[
        ("the cat is on the mat", "the cat sat on the mat", 0.75, 0.485491771707, 0.833333333333),
        (
            "It is a guide to action which ensures that the military always obeys the commands of the party",
            "It is a guide to action that ensures that the military will forever heed Party commands",
            0.714285714286,
            0.455087043756,
            0.647058823529,
        ),
        ("Paris", "Paris", 1.0, 1.0, 1.0),
        ("Rome", "Paris", 0.0, 0.0, 0.0),
        (
            "The capital of France is Paris.",
            "Paris is the capital of France",
            1.0,
            0.668740304976,
            0.666666666667,
        ),
        (
            "the the the the the the the",
            "the cat is on the mat",
            0.0,
            0.192056126375,
            0.307692307692,
        ),
        ("police killed the gunman", "the gunman police killed", 1.0, 0.594603557501, 0.5),
        ("a b c", "a b c d e f g h", 0.444444444444, 0.188875602838, 0.545454545455),
        ("x a y b z c", "a b c", 0.571428571429, 0.254066374077, 0.666666666667),
    ];

    #[test]
    fn metrics_match_reference_values() {
        for (output, reference, f1, bleu, rouge) in REFERENCE {
            for (metric, expected) in
                [(Metric::TokenF1, f1), (Metric::Bleu, bleu), (Metric::RougeL, rouge)]
            {
                let found = metric.measure(output, reference).unwrap();
                assert!((found - expected).abs() < 1e-9, "{metric:?} {output}: {found}");
            }
        }
    }

    #[test]
    fn empty_texts_and_other_scripts_are_compared() {
        for metric in [Metric::TokenF1, Metric::Bleu, Metric::RougeL] {
            assert_eq!(metric.measure("", ""), Ok(1.0), "{metric:?}");
            assert_eq!(metric.measure("", "x"), Ok(0.0), "{metric:?}");
            assert_eq!(metric.measure("x", ""), Ok(0.0), "{metric:?}");
            assert_eq!(metric.measure("Привет, МИР", "привет мир"), Ok(1.0), "{metric:?}");
        }
    }

    #[test]
    fn texts_beyond_the_limit_are_rejected() {
        let longest: String = (0..MAX_SIMILARITY_WORDS).map(|n| format!("w{n} ")).collect();
        assert_eq!(Metric::RougeL.measure(&longest, &longest), Ok(1.0));
        assert!((Metric::Bleu.measure(&longest, &longest).unwrap() - 1.0).abs() < 1e-9);
        let more = longest.clone() + "one";
        for metric in [Metric::Bleu, Metric::RougeL] {
            assert!(metric.measure(&more, &longest).unwrap_err().contains("the output has 20001"));
            assert!(
                metric.measure(&longest, &more).unwrap_err().contains("the reference has 20001")
            );
        }
        assert!(Metric::TokenF1.measure(&more, &longest).unwrap() > 0.99);
    }

    /// Textbook dynamic programming.
    fn dynamic_programming(one: &[usize], other: &[usize]) -> usize {
        let mut row = vec![0; other.len() + 1];
        for a in one {
            let mut corner = 0;
            for (j, b) in other.iter().enumerate() {
                let diagonal = corner + usize::from(a == b);
                corner = row[j + 1];
                row[j + 1] = diagonal.max(row[j]).max(row[j + 1]);
            }
        }
        row[other.len()]
    }

    proptest! {
        #[test]
        fn bit_parallel_length_equals_dynamic_programming(
            // Few distinct words make long subsequences; many leave whole bit vectors untouched.
            one in prop_oneof![vec(0..6_usize, 0..200), vec(0..150_usize, 0..300)],
            other in prop_oneof![vec(0..6_usize, 0..200), vec(0..150_usize, 0..300)],
        ) {
            let length = common_subsequence(&one, &other);
            prop_assert_eq!(length, dynamic_programming(&one, &other));
            prop_assert_eq!(length, common_subsequence(&other, &one));
        }

        #[test]
        fn metrics_are_between_0_and_1_and_1_for_equal_texts(
            one in "[a-d ]{0,40}",
            other in "[a-d ]{0,40}",
        ) {
            for metric in [Metric::TokenF1, Metric::Bleu, Metric::RougeL] {
                let value = metric.measure(&one, &other).unwrap();
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value), "{:?} {}", metric, value);
                prop_assert!((metric.measure(&one, &one).unwrap() - 1.0).abs() < 1e-12);
                if metric != Metric::Bleu {
                    prop_assert_eq!(value, metric.measure(&other, &one).unwrap());
                }
            }
        }
    }
}
