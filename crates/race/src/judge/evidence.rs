//! A judge's evidence in readable form, with branch names instead of response numbers.

use crate::names::BranchNames;
use crate::strategy::Ballot;

/// Maximum characters of evidence in a reason; the ballot has the complete reply.
const MAX_CHARACTERS: usize = 400;

/// Returns the evidence of a ballot on one line, with names instead of numbers; `None` if there is nothing
/// but the vote.
pub(crate) fn readable_evidence(ballot: &Ballot, names: &BranchNames) -> Option<String> {
    ballot.choice?;
    let mut lines: Vec<&str> =
        ballot.reply.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_vote = |line: &&str| line.chars().filter(|letter| letter.is_alphabetic()).count() == 0;
    if lines.last().is_some_and(is_vote) {
        lines.pop();
    }
    let evidence = name_responses(&lines.join(" "), &ballot.order, names);
    if evidence.trim().is_empty() {
        return None;
    }
    Some(match evidence.char_indices().nth(MAX_CHARACTERS) {
        None => evidence,
        Some((end, _)) => format!("{}…", evidence.get(..end).unwrap_or_default().trim_end()),
    })
}

/// Returns the start of a reply on one line.
pub(crate) fn excerpt(reply: &str) -> String {
    const MAX_EXCERPT: usize = 80;
    let line = reply.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_EXCERPT) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// Replaces `Response 2` by the name of the branch that the judge saw second.
fn name_responses(text: &str, order: &[usize], names: &BranchNames) -> String {
    const LABEL: &str = "response";
    let mut result = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let starts = !result.ends_with(char::is_alphanumeric)
            && rest.get(..LABEL.len()).is_some_and(|word| word.eq_ignore_ascii_case(LABEL));
        let found = match starts {
            true => parse_number(&rest[LABEL.len()..], order),
            false => None,
        };
        match found {
            Some((index, after)) => {
                result.push_str(&names.of_branch(index));
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

/// Parses a response number; returns the branch and the rest of the text.
fn parse_number<'t>(text: &'t str, order: &[usize]) -> Option<(usize, &'t str)> {
    let text = text.trim_start_matches([' ', '#']);
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, after) = text.split_at(end);
    let number: usize = digits.parse().ok()?;
    let index = order.get(number.checked_sub(1)?)?;
    (!after.starts_with(char::is_alphanumeric)).then_some((*index, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::answered;
    use bakeoff_agent::Session;

    #[test]
    fn evidence_has_names_and_no_vote() {
        let session = Session::named("s");
        let outcomes = ["sim.a", "sim.b"].map(|name| answered(&session, name, None, 1));
        let names = BranchNames::of(&outcomes);
        let evidence = |reply: &str| {
            let ballot = Ballot {
                loop_id: session.next_loop("j"),
                order: vec![1, 0],
                choice: Some(1),
                reply: reply.to_owned(),
            };
            readable_evidence(&ballot, &names)
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
            assert_eq!(evidence(reply).as_deref(), expected, "{reply:?}");
        }
        let long = evidence(&format!("{}\n1", "ж".repeat(999))).unwrap();
        assert_eq!(long.chars().count(), 401);
    }
}
