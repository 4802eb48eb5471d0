//! What a judge is shown when its window is too small for all of it.
//!
//! The prior conversation is ancillary and the responses are what is decided about, so the first is
//! shortened before anything is taken from the others. Each kind goes through the same three tiers,
//! and after each it is looked whether everything fits now. Everything is counted in characters,
//! four to a token, and cut between characters.

/// Characters that count as one token.
const CHARACTERS_PER_TOKEN: u64 = 4;

/// Tier 1 keeps so many lines at the end.
const LINES: usize = 80;

/// Tier 3 cuts no text below so many characters.
const LEAST_CHARACTERS: u64 = 200;

/// Stands for what was left out.
const GAP: &str = "...";

/// What the judge is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    pub(super) prior: String,
    pub(super) responses: Vec<String>,
    /// How far the prior conversation was shortened: 0, or the last tier.
    pub(super) prior_tier: u8,
    /// How far the responses were shortened.
    pub(super) responses_tier: u8,
    /// Tokens of all of it, estimated.
    pub(super) tokens: u64,
    /// Tokens that there is room for.
    pub(super) budget: u64,
}

impl View {
    /// Whether there is room for it.
    pub(super) fn fits(&self) -> bool {
        self.tokens <= self.budget
    }

    /// What was done to it, for people; nothing when all of it is there.
    pub(super) fn words(&self) -> Option<String> {
        let part = |what: &str, tier: u8| match tier {
            0 => None,
            1 => Some(format!("{what} cut to the last {LINES} lines")),
            2 => Some(format!("{what} cut to the first and the last paragraph")),
            _ => Some(format!("{what} cut to a number of characters")),
        };
        let prior = part("the prior conversation", self.prior_tier);
        let responses = part("the responses", self.responses_tier);
        let parts: Vec<String> = prior.into_iter().chain(responses).collect();
        (!parts.is_empty()).then(|| format!("for the judge, {}", parts.join(" and ")))
    }
}

/// Tokens of a text, estimated.
pub(super) fn tokens(text: &str) -> u64 {
    characters(text).div_ceil(CHARACTERS_PER_TOKEN)
}

/// A view that a window of so many tokens has room for, a fifth of it left free, or the nearest
/// there is to that; everything when the window is not known.
pub(super) fn view(prior: &str, responses: &[String], window: Option<u64>) -> View {
    let budget = window.map_or(u64::MAX, |window| window - window.div_ceil(5));
    let room = budget.saturating_mul(CHARACTERS_PER_TOKEN);
    let mut view = View {
        prior: prior.to_owned(),
        responses: responses.to_vec(),
        prior_tier: 0,
        responses_tier: 0,
        tokens: 0,
        budget,
    };
    let said = |view: &View| view.responses.iter().map(|text| characters(text)).sum::<u64>();
    let fits = |view: &View| characters(&view.prior).saturating_add(said(view)) <= room;
    let rest = room.saturating_sub(said(&view));
    for tier in 1..=3 {
        if fits(&view) || view.prior.is_empty() {
            break;
        }
        view.prior = shortened(&view.prior, tier, rest);
        view.prior_tier = tier;
    }
    let count = u64::try_from(view.responses.len()).unwrap_or(u64::MAX).max(1);
    let share = room.saturating_sub(characters(&view.prior)) / count;
    for tier in 1..=3 {
        if fits(&view) || view.responses.is_empty() {
            break;
        }
        for response in &mut view.responses {
            *response = shortened(response, tier, share);
        }
        view.responses_tier = tier;
    }
    let characters = characters(&view.prior).saturating_add(said(&view));
    view.tokens = characters.div_ceil(CHARACTERS_PER_TOKEN);
    view
}

/// One tier; the last one cuts at the share of the room that one text has.
fn shortened(text: &str, tier: u8, share: u64) -> String {
    match tier {
        1 => last_lines(text),
        2 => first_and_last_paragraph(text),
        _ => beginning(text, share.max(LEAST_CHARACTERS)),
    }
}

fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.len().checked_sub(LINES) {
        Some(left_out) if left_out > 0 => lines.get(left_out..).unwrap_or_default().join("\n"),
        _ => text.to_owned(),
    }
}

/// Paragraphs are parted by lines without a word. Where there are only two, nothing is between them.
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

/// So many characters from the beginning, the sign for the gap among them.
fn beginning(text: &str, most: u64) -> String {
    if characters(text) <= most {
        return text.to_owned();
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(GAP.len());
    let end = text.char_indices().nth(most).map_or(text.len(), |(end, _)| end);
    let (kept, left_out) = text.split_at(end);
    format!("{}{GAP}", whole_symbols(kept, left_out))
}

/// Leaves out the rest of a symbol that is made of several characters and was cut through, such as
/// an emoji with a skin tone or a family. Hostile texts are one symbol, so there is an end to it.
fn whole_symbols<'t>(kept: &'t str, left_out: &str) -> &'t str {
    const MOST_PARTS: usize = 16;
    let mut next = left_out.chars().next();
    let mut end = kept.len();
    for (place, letter) in kept.char_indices().rev().take(MOST_PARTS) {
        let is_torn = next.is_some_and(continues) || letter == ZERO_WIDTH_JOINER;
        if !is_torn {
            return kept.get(..end).unwrap_or(kept);
        }
        next = Some(letter);
        end = place;
    }
    // Nothing is gained when there is no end in sight.
    if end == 0 || next.is_some_and(continues) { kept } else { kept.get(..end).unwrap_or(kept) }
}

const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Characters that belong to the symbol before them: joiners, variations, skin tones, accents.
fn continues(letter: char) -> bool {
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
    use proptest::prelude::*;

    fn lines(count: usize, word: &str) -> String {
        (1..=count).map(|number| format!("{word} {number}")).collect::<Vec<_>>().join("\n")
    }

    /// A window with room for so many tokens.
    fn room_for(tokens: u64) -> Option<u64> {
        Some(tokens.div_ceil(4) * 5)
    }

    #[test]
    fn four_fifths_of_the_window_are_for_the_judges_material() {
        for (window, budget) in [(0, 0), (1, 0), (5, 4), (99, 79), (100, 80), (101, 80)] {
            assert_eq!(view("", &[], Some(window)).budget, budget, "{window}");
        }
        assert_eq!(view("", &[], Some(u64::MAX)).budget, u64::MAX / 5 * 4);
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let responses = ["x".repeat(40), "y".repeat(40)];
        let exact = view(&"p".repeat(80), &responses, Some(50));
        assert_eq!((exact.tokens, exact.budget, exact.words()), (40, 40, None));
        let one_more = view(&"p".repeat(81), &responses, Some(50));
        assert_eq!((one_more.prior_tier, one_more.responses_tier), (3, 3));
        let unbounded = view(&lines(9_999, "line"), &responses, None);
        assert_eq!((unbounded.prior_tier, unbounded.fits()), (0, true));
    }

    #[test]
    fn the_prior_conversation_goes_through_the_tiers_first() {
        let long = lines(100, "word");
        let responses = [lines(100, "said")];
        let said = tokens(&responses[0]);
        let first = view(&long, &responses, room_for(said + 180));
        assert_eq!((first.prior_tier, first.responses_tier), (1, 0));
        assert_eq!(first.prior.lines().count(), 80);
        assert!(first.prior.starts_with("word 21\n") && first.fits());

        let paragraphs = format!("begin\n\n{}\n \nmiddle\n\nend", lines(70, "long middle line"));
        let second = view(&paragraphs, &responses, room_for(said + 10));
        assert_eq!((second.prior_tier, second.responses_tier), (2, 0));
        assert_eq!(second.prior, "begin\n...\nend");

        let third = view(&long, &responses, room_for(said + 60));
        assert_eq!((third.prior_tier, third.responses_tier), (3, 0));
        assert!(third.prior.starts_with("word 21\n") && third.prior.ends_with(GAP));
        let left = (third.budget * 4).saturating_sub(characters(&responses[0]));
        assert_eq!(characters(&third.prior), left, "the room that the responses leave");
        assert!(third.fits());
        assert_eq!(third.responses, responses, "responses are not touched");
    }

    #[test]
    fn then_the_responses_do() {
        let prior = "p".repeat(1_000);
        let responses = vec![lines(100, "alpha"), lines(100, "beta")];
        let first = view(&prior, &responses, room_for(400));
        assert_eq!((first.prior_tier, first.responses_tier), (3, 1));
        assert_eq!(characters(&first.prior), LEAST_CHARACTERS);
        assert!(first.responses[1].starts_with("beta 21\n") && first.fits());

        let parted = |word: &str| format!("{word} one\n\n{}\n\n{word} end", lines(60, "middle"));
        let second = view(&prior, &[parted("a"), parted("b")], room_for(100));
        assert_eq!((second.prior_tier, second.responses_tier), (3, 2));
        assert_eq!(second.responses[1], "b one\n...\nb end");

        let third = view(&prior, &["x".repeat(5_000), "y".repeat(10)], room_for(200));
        assert_eq!((third.prior_tier, third.responses_tier), (3, 3));
        assert_eq!(characters(&third.responses[0]), (200 * 4 - 200) / 2);
        assert_eq!(third.responses[1], "y".repeat(10));
        assert!(third.fits());
    }

    #[test]
    fn what_never_fits_is_said_not_to() {
        let view = view(&"p".repeat(900), &["x".repeat(900), "y".repeat(900)], Some(100));
        assert_eq!((view.tokens, view.budget, view.fits()), (150, 80, false));
        assert_eq!(
            view.words().unwrap(),
            "for the judge, the prior conversation cut to a number of characters and the responses cut to a number of characters"
        );
    }

    #[test]
    fn symbols_of_several_characters_are_not_torn() {
        let family = "👩‍👩‍👧‍👦";
        let text = family.repeat(100);
        for most in 200..215 {
            let cut = beginning(&text, most);
            let kept = cut.strip_suffix(GAP).unwrap();
            assert_eq!(kept.replace(family, ""), "", "{most}");
            assert!(characters(&cut) <= most && characters(&cut) > most - 8);
        }
        assert_eq!(characters(&beginning(&"e\u{301}".repeat(200), 200)), 199);
        // One endless symbol is cut all the same.
        assert_eq!(characters(&beginning(&"\u{301}".repeat(999), 200)), 200);
        assert_eq!(characters(&beginning(&"\u{200d}".repeat(999), 200)), 200);
    }

    proptest! {
        /// Whatever the texts: no panic, never longer than before but for the sign of a gap, and
        /// within the budget unless it says otherwise.
        #[test]
        fn the_view_fits_or_says_that_it_does_not(
            prior in text(),
            responses in prop::collection::vec(text(), 0..6),
            window in prop::option::of(0_u64..3_000),
        ) {
            let view = view(&prior, &responses, window);
            let all = characters(&view.prior)
                + view.responses.iter().map(|text| characters(text)).sum::<u64>();
            prop_assert_eq!(view.tokens, all.div_ceil(4));
            prop_assert_eq!(view.fits(), all <= view.budget.saturating_mul(4));
            prop_assert_eq!(view.responses.len(), responses.len());
            prop_assert!(characters(&view.prior) <= characters(&prior) + 5);
            if view.responses_tier == 0 {
                prop_assert_eq!(&view.responses, &responses);
            }
            let least = LEAST_CHARACTERS * (responses.len() as u64 + 1);
            if view.budget.saturating_mul(4) >= least {
                prop_assert!(view.fits(), "there is room for the least of each");
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
