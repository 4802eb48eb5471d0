//! Generated sentences.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

const SUBJECTS: [&str; 8] = [
    "The first batch",
    "A patient baker",
    "The dough",
    "This recipe",
    "The oven",
    "A pinch of salt",
    "The crust",
    "Every loaf",
];
const VERBS: [&str; 8] = [
    "rests on",
    "improves",
    "depends on",
    "forgives",
    "rewards",
    "asks for",
    "outlasts",
    "begins with",
];
const OBJECTS: [&str; 8] = [
    "a slow rise",
    "careful measuring",
    "the right heat",
    "an early start",
    "good flour",
    "a steady hand",
    "one more fold",
    "a little patience",
];

/// Generates two to four sentences with a quality mark at the end.
pub(crate) fn text(rng: &mut ChaCha8Rng, quality: f64) -> String {
    let sentences = rng.random_range(2..=4);
    let mut text: String = (0..sentences).map(|_| sentence(rng) + " ").collect();
    text.push_str(&format!("[quality {quality:.2}]"));
    text
}

/// Generates the thinking of a model.
pub(crate) fn thought(rng: &mut ChaCha8Rng) -> String {
    format!("Let me think. {}", sentence(rng))
}

fn sentence(rng: &mut ChaCha8Rng) -> String {
    let mut pick = |words: &[&'static str; 8]| words[rng.random_range(0..words.len())];
    format!("{} {} {}.", pick(&SUBJECTS), pick(&VERBS), pick(&OBJECTS))
}

/// Returns the quality of a model name, in hundredths from 0 to 1. It does not depend on the seed, so
/// the order of models is the same in every run.
pub(crate) fn quality(name: &str) -> f64 {
    let [a, b, c, d, ..] = *blake3::hash(name.as_bytes()).as_bytes();
    f64::from(u32::from_le_bytes([a, b, c, d]) % 101) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SeedKey;

    #[test]
    fn text_ends_with_its_quality() {
        let text = text(&mut SeedKey::event(1, 1).rng("answer"), 0.7);
        assert!(text.ends_with(". [quality 0.70]"), "{text}");
        assert!((2..=4).contains(&text.matches(". ").count()), "{text}");
    }

    #[test]
    fn qualities_differ_between_names() {
        let mut qualities: Vec<f64> = (0..50).map(|n| quality(&format!("m{n}"))).collect();
        assert!(qualities.iter().all(|quality| (0.0..=1.0).contains(quality)));
        qualities.sort_by(f64::total_cmp);
        qualities.dedup();
        assert!(qualities.len() > 30);
        assert_eq!(quality("m1"), quality("m1"));
    }
}
