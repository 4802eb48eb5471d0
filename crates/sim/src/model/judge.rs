//! Judging by the hidden quality that candidates carry.

/// The number, from 1, of the best of the candidates that a text shows, by their marks
/// `[quality 0.73]` in order; the first of several equals, and 1 where there is no mark.
///
/// The bias is added to the first candidate's quality.
pub(crate) fn best(text: &str, bias: f64) -> i64 {
    let mut best = (1, f64::NEG_INFINITY);
    for (number, quality) in (1..).zip(qualities(text)) {
        let quality = if number == 1 { quality + bias } else { quality };
        if quality > best.1 {
            best = (number, quality);
        }
    }
    best.0
}

fn qualities(text: &str) -> impl Iterator<Item = f64> {
    text.split("[quality ").skip(1).filter_map(|rest| {
        let (number, _) = rest.split_once(']')?;
        number.trim().parse().ok().filter(|quality: &f64| quality.is_finite())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_the_best_mark() {
        let text = "1: a [quality 0.50]\n2: b [quality 0.73]\n3: c [quality 0.73]";
        assert_eq!(best(text, 0.0), 2);
        assert_eq!(best(text, 0.2), 2);
        assert_eq!(best(text, 0.3), 1);
        assert_eq!(best("[quality 0.9] [quality 0.8]", -0.2), 2);
        assert_eq!(best("nothing", 0.0), 1);
        assert_eq!(best("[quality x] [quality 0.1] [quality 0.2", 0.0), 1);
    }
}
