//! Compaction of a judge's material to its context window.
//!
//! The prior conversation is ancillary and the responses are the subject of the decision, so the prior
//! conversation is compacted first. Both go through the same three tiers, and the size is checked after each
//! tier. Sizes are counted in units of a quarter of a token, which is one character of English, and texts are cut
//! between characters.

use bakeoff_core::{UNITS_PER_TOKEN, character_units, token_units};

/// Lines at the end that tier 1 keeps.
const TAIL_LINES: usize = 80;

/// Units that tier 3 keeps at least.
const MIN_UNITS: u64 = 200;

/// Marks omitted text.
const GAP: &str = "...";

/// The material that the judge sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompactedView {
    pub(super) prior: String,
    pub(super) responses: Vec<String>,
    /// Last tier that was applied to the prior conversation; 0 if none.
    pub(super) prior_tier: u8,
    /// Last tier that was applied to the responses; 0 if none.
    pub(super) responses_tier: u8,
    /// Estimated tokens of the material.
    pub(super) tokens: u64,
    /// Token budget of the material.
    pub(super) budget: u64,
}

impl CompactedView {
    /// Returns whether the material is within the budget.
    pub(super) fn fits(&self) -> bool {
        self.tokens <= self.budget
    }

    /// Describes what was cut; `None` if the material is complete.
    pub(super) fn describe(&self) -> Option<String> {
        let part = |name: &str, tier: u8| match tier {
            0 => None,
            1 => Some(format!("{name} cut to the last {TAIL_LINES} lines")),
            2 => Some(format!("{name} cut to the first and the last paragraph")),
            _ => Some(format!("{name} cut to a number of characters")),
        };
        let prior = part("the prior conversation", self.prior_tier);
        let responses = part("the responses", self.responses_tier);
        let parts: Vec<String> = prior.into_iter().chain(responses).collect();
        (!parts.is_empty()).then(|| format!("for the judge, {}", parts.join(" and ")))
    }
}

/// Compacts the material to 80 % of a context window, or as far as the tiers allow. Without a window nothing
/// is cut.
pub(super) fn compact(prior: &str, responses: &[String], window: Option<u64>) -> CompactedView {
    let budget = window.map_or(u64::MAX, |window| window - window.div_ceil(5));
    let max_units = budget.saturating_mul(UNITS_PER_TOKEN);
    let mut view = CompactedView {
        prior: prior.to_owned(),
        responses: responses.to_vec(),
        prior_tier: 0,
        responses_tier: 0,
        tokens: 0,
        budget,
    };
    let responses_size =
        |view: &CompactedView| view.responses.iter().map(|text| token_units(text)).sum::<u64>();
    let fits = |view: &CompactedView| {
        token_units(&view.prior).saturating_add(responses_size(view)) <= max_units
    };
    let rest = max_units.saturating_sub(responses_size(&view));
    for tier in 1..=3 {
        if fits(&view) || view.prior.is_empty() {
            break;
        }
        view.prior = apply_tier(&view.prior, tier, rest);
        view.prior_tier = tier;
    }
    let count = u64::try_from(view.responses.len()).unwrap_or(u64::MAX).max(1);
    let share = max_units.saturating_sub(token_units(&view.prior)) / count;
    for tier in 1..=3 {
        if fits(&view) || view.responses.is_empty() {
            break;
        }
        for response in &mut view.responses {
            *response = apply_tier(response, tier, share);
        }
        view.responses_tier = tier;
    }
    let units = token_units(&view.prior).saturating_add(responses_size(&view));
    view.tokens = units.div_ceil(UNITS_PER_TOKEN);
    view
}

/// Applies one tier. The last one cuts the text to its share of the budget.
fn apply_tier(text: &str, tier: u8, share: u64) -> String {
    match tier {
        1 => last_lines(text),
        2 => first_and_last_paragraph(text),
        _ => cut(text, share.max(MIN_UNITS)),
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.len().checked_sub(TAIL_LINES) {
        Some(omitted) if omitted > 0 => lines.get(omitted..).unwrap_or_default().join("\n"),
        _ => text.to_owned(),
    }
}

/// Keeps the first and the last paragraph. Paragraphs are separated by blank lines. With only two, nothing is
/// omitted.
fn first_and_last_paragraph(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let paragraphs: Vec<&[&str]> = lines
        .split(|line| line.trim().is_empty())
        .filter(|paragraph| !paragraph.is_empty())
        .collect();
    match paragraphs[..] {
        [first, _, .., last] => format!("{}\n{GAP}\n{}", first.join("\n"), last.join("\n")),
        _ => text.to_owned(),
    }
}

/// Keeps at most `max` units from the start, including the gap mark.
fn cut(text: &str, max: u64) -> String {
    if token_units(text) <= max {
        return text.to_owned();
    }
    let mut left = max.saturating_sub(token_units(GAP));
    let is_beyond = |letter: char| {
        let units = character_units(letter);
        let is_beyond = units > left;
        left = left.saturating_sub(units);
        is_beyond
    };
    let end = text.find(is_beyond).unwrap_or(text.len());
    let (kept, omitted) = text.split_at(end);
    format!("{}{GAP}", trim_torn_symbol(kept, omitted))
}

/// Removes the rest of a symbol of several characters that the cut split, such as an emoji with a skin tone
/// or a family. The search is limited because a hostile text may be one endless symbol.
fn trim_torn_symbol<'t>(kept: &'t str, omitted: &str) -> &'t str {
    const MAX_PARTS: usize = 16;
    let mut next = omitted.chars().next();
    let mut end = kept.len();
    for (position, letter) in kept.char_indices().rev().take(MAX_PARTS) {
        let is_torn = next.is_some_and(continues_symbol) || letter == ZERO_WIDTH_JOINER;
        if !is_torn {
            return kept.get(..end).unwrap_or(kept);
        }
        next = Some(letter);
        end = position;
    }
    // No boundary found: keep everything.
    if end == 0 || next.is_some_and(continues_symbol) {
        kept
    } else {
        kept.get(..end).unwrap_or(kept)
    }
}

const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Returns whether a character belongs to the symbol before it: joiners, variation selectors, skin tones,
/// accents.
fn continues_symbol(letter: char) -> bool {
    matches!(
        letter,
        ZERO_WIDTH_JOINER
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{1f3fb}'..='\u{1f3ff}'
            | '\u{300}'..='\u{36f}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{e0020}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_core::estimate_tokens;
    use proptest::prelude::*;

    fn lines(count: usize, word: &str) -> String {
        (1..=count).map(|number| format!("{word} {number}")).collect::<Vec<_>>().join("\n")
    }

    /// Returns a window whose budget is at least this many tokens.
    fn window_for(tokens: u64) -> Option<u64> {
        Some(tokens.div_ceil(4) * 5)
    }

    #[test]
    fn budget_is_four_fifths_of_the_window() {
        for (window, budget) in [(0, 0), (1, 0), (5, 4), (99, 79), (100, 80), (101, 80)] {
            assert_eq!(compact("", &[], Some(window)).budget, budget, "{window}");
        }
        assert_eq!(compact("", &[], Some(u64::MAX)).budget, u64::MAX / 5 * 4);
    }

    #[test]
    fn material_within_the_budget_is_unchanged() {
        let responses = ["x".repeat(40), "y".repeat(40)];
        let exact = compact(&"p".repeat(80), &responses, Some(50));
        assert_eq!((exact.tokens, exact.budget, exact.describe()), (40, 40, None));
        let one_more = compact(&"p".repeat(81), &responses, Some(50));
        assert_eq!((one_more.prior_tier, one_more.responses_tier), (3, 3));
        let unbounded = compact(&lines(9_999, "line"), &responses, None);
        assert_eq!((unbounded.prior_tier, unbounded.fits()), (0, true));
    }

    #[test]
    fn prior_conversation_is_compacted_first() {
        let long = lines(100, "word");
        let responses = [lines(100, "said")];
        let response_tokens = estimate_tokens(&responses[0]);
        let first = compact(&long, &responses, window_for(response_tokens + 180));
        assert_eq!((first.prior_tier, first.responses_tier), (1, 0));
        assert_eq!(first.prior.lines().count(), 80);
        assert!(first.prior.starts_with("word 21\n") && first.fits());

        let paragraphs = format!("begin\n\n{}\n \nmiddle\n\nend", lines(70, "long middle line"));
        let second = compact(&paragraphs, &responses, window_for(response_tokens + 10));
        assert_eq!((second.prior_tier, second.responses_tier), (2, 0));
        assert_eq!(second.prior, "begin\n...\nend");

        let third = compact(&long, &responses, window_for(response_tokens + 60));
        assert_eq!((third.prior_tier, third.responses_tier), (3, 0));
        assert!(third.prior.starts_with("word 21\n") && third.prior.ends_with(GAP));
        let left = (third.budget * 4).saturating_sub(token_units(&responses[0]));
        assert_eq!(token_units(&third.prior), left, "the budget that the responses leave");
        assert!(third.fits());
        assert_eq!(third.responses, responses, "responses are unchanged");
    }

    #[test]
    fn responses_are_compacted_second() {
        let prior = "p".repeat(1_000);
        let responses = vec![lines(100, "alpha"), lines(100, "beta")];
        let first = compact(&prior, &responses, window_for(400));
        assert_eq!((first.prior_tier, first.responses_tier), (3, 1));
        assert_eq!(token_units(&first.prior), MIN_UNITS);
        assert!(first.responses[1].starts_with("beta 21\n") && first.fits());

        let paragraphs =
            |word: &str| format!("{word} one\n\n{}\n\n{word} end", lines(60, "middle"));
        let second = compact(&prior, &[paragraphs("a"), paragraphs("b")], window_for(100));
        assert_eq!((second.prior_tier, second.responses_tier), (3, 2));
        assert_eq!(second.responses[1], "b one\n...\nb end");

        let third = compact(&prior, &["x".repeat(5_000), "y".repeat(10)], window_for(200));
        assert_eq!((third.prior_tier, third.responses_tier), (3, 3));
        assert_eq!(token_units(&third.responses[0]), (200 * 4 - 200) / 2);
        assert_eq!(third.responses[1], "y".repeat(10));
        assert!(third.fits());
    }

    #[test]
    fn material_beyond_the_budget_does_not_fit() {
        let view = compact(&"p".repeat(900), &["x".repeat(900), "y".repeat(900)], Some(100));
        assert_eq!((view.tokens, view.budget, view.fits()), (150, 80, false));
        assert_eq!(
            view.describe().unwrap(),
            "for the judge, the prior conversation cut to a number of characters and the responses cut to a number of characters"
        );
    }

    /// Han characters have about one token each, so a quarter of the characters of English fits.
    #[test]
    fn budget_depends_on_the_script() {
        let responses = ["漢".repeat(100), "字".repeat(100)];
        assert!(compact("", &responses, Some(250)).fits());
        assert_eq!(compact("", &responses, Some(250)).responses_tier, 0);
        let cut = compact("", &responses, Some(200));
        assert_eq!((cut.responses_tier, cut.tokens, cut.fits()), (3, 160, true));
        assert_eq!(cut.responses[0].chars().filter(|letter| *letter == '漢').count(), 79);
    }

    #[test]
    fn symbols_of_several_characters_are_not_split() {
        let family = "👩‍👩‍👧‍👦";
        let text = family.repeat(100);
        for max in 200..215 {
            let shortened = cut(&text, max);
            let kept = shortened.strip_suffix(GAP).unwrap();
            assert_eq!(kept.replace(family, ""), "", "{max}");
            assert!(token_units(&shortened) <= max && token_units(&shortened) > max - 40);
        }
        assert_eq!(token_units(&cut(&"e\u{301}".repeat(200), 200)), 199);
        // An endless symbol is cut nevertheless.
        assert_eq!(token_units(&cut(&"\u{301}".repeat(999), 200)), 200);
        assert_eq!(token_units(&cut(&"\u{200d}".repeat(999), 200)), 200);
    }

    proptest! {
        /// For any texts: no panic, no text longer than before except for the gap mark, and within the budget
        /// unless `fits` is false.
        #[test]
        fn view_fits_or_reports_that_it_does_not(
            prior in text(),
            responses in prop::collection::vec(text(), 0..6),
            window in prop::option::of(0_u64..3_000),
        ) {
            let view = compact(&prior, &responses, window);
            let all = token_units(&view.prior)
                + view.responses.iter().map(|text| token_units(text)).sum::<u64>();
            prop_assert_eq!(view.tokens, all.div_ceil(4));
            prop_assert_eq!(view.fits(), all <= view.budget.saturating_mul(4));
            prop_assert_eq!(view.responses.len(), responses.len());
            prop_assert!(token_units(&view.prior) <= token_units(&prior) + 5);
            if view.responses_tier == 0 {
                prop_assert_eq!(&view.responses, &responses);
            }
            let minimum = MIN_UNITS * (responses.len() as u64 + 1);
            if view.budget.saturating_mul(4) >= minimum {
                prop_assert!(view.fits(), "the budget covers the minimum of each text");
            }
        }
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            ".{0,40}",
            prop::collection::vec("[a-zа-я漢字👩‍👧\u{301} \n]{0,60}", 0..30)
                .prop_map(|parts| parts.join("\n\n")),
            (0_usize..300, ".{0,8}").prop_map(|(count, word)| lines(count, &word)),
        ]
    }
}
