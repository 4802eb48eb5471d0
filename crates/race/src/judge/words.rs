//! A judge's words for people, who know the branches by name and not by number.

use crate::names::Names;
use crate::strategy::Ballot;

/// Most characters of a judge's words in a reason; the ballot has all of them.
const MOST_CHARACTERS: usize = 400;

/// What a judge said on a ballot besides the number, on one line, with names instead of numbers;
/// `None` when it said nothing else.
pub(crate) fn readable(ballot: &Ballot, names: &Names) -> Option<String> {
    ballot.choice?;
    let mut lines: Vec<&str> =
        ballot.reply.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_vote = |line: &&str| line.chars().filter(|letter| letter.is_alphabetic()).count() == 0;
    if lines.last().is_some_and(is_vote) {
        lines.pop();
    }
    let words = named(&lines.join(" "), &ballot.order, names);
    if words.trim().is_empty() {
        return None;
    }
    Some(match words.char_indices().nth(MOST_CHARACTERS) {
        None => words,
        Some((end, _)) => format!("{}…", words.get(..end).unwrap_or_default().trim_end()),
    })
}

/// The beginning of a reply, on one line.
pub(crate) fn excerpt(reply: &str) -> String {
    const MOST: usize = 80;
    let line = reply.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// A text in which `Response 2` is the name of the branch that stood second.
fn named(text: &str, order: &[usize], names: &Names) -> String {
    const LABEL: &str = "response";
    let mut result = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let starts = !result.ends_with(char::is_alphanumeric)
            && rest.get(..LABEL.len()).is_some_and(|word| word.eq_ignore_ascii_case(LABEL));
        let found = match starts {
            true => numbered(&rest[LABEL.len()..], order),
            false => None,
        };
        match found {
            Some((place, after)) => {
                result.push_str(&names.of_place(place));
                rest = after;
            }
            None => {
                result.push(letter);
                rest = rest.get(letter.len_utf8()..).unwrap_or_default();
            }
        }
    }
    result
}

/// The branch whose number follows, and what comes after it.
fn numbered<'t>(text: &'t str, order: &[usize]) -> Option<(usize, &'t str)> {
    let text = text.trim_start_matches([' ', '#']);
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, after) = text.split_at(end);
    let number: usize = digits.parse().ok()?;
    let place = order.get(number.checked_sub(1)?)?;
    (!after.starts_with(char::is_alphanumeric)).then_some((*place, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::answered;
    use bakeoff_agent::Session;

    #[test]
    fn numbers_become_names_and_the_vote_is_left_out() {
        let session = Session::named("s");
        let outcomes = ["sim.a", "sim.b"].map(|name| answered(&session, name, None, 1));
        let names = Names::of(&outcomes);
        let words = |reply: &str| {
            let ballot = Ballot {
                loop_id: session.next_loop("j"),
                order: vec![1, 0],
                choice: Some(1),
                reply: reply.to_owned(),
            };
            readable(&ballot, &names)
        };
        for (reply, expected) in [
            ("Response 1 beats response #2.\n\n**1**", Some("sim.b beats sim.a.")),
            ("RESPONSE 2 is it", Some("sim.a is it")),
            (
                "Response 12 and Response 3 and correspondence 1",
                Some("Response 12 and Response 3 and correspondence 1"),
            ),
            ("Response 1st", Some("Response 1st")),
            ("Ответ: response 1 — да\n1", Some("Ответ: sim.b — да")),
            ("responses", Some("responses")),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(words(reply).as_deref(), expected, "{reply:?}");
        }
        let long = words(&format!("{}\n1", "ж".repeat(999))).unwrap();
        assert_eq!(long.chars().count(), 401);
    }
}
