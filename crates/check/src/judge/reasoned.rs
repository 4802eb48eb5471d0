//! Votes whose reason does not stand before them: behind the number, on the lines after it, or in an object.
//!
//! The number must be a vote without its reason, and the reason must not permit another reading.

use super::object::parse_object;
use super::vote::{LineKind, Token, claimed_numbers, classify_line, mention_at, tokenize};
use serde_json::{Map, Value};

/// Marks and words that separate a vote from its reason.
const SEPARATORS: [&str; 7] =
    [" (", " - ", " \u{2013} ", "\u{2014}", " because ", " since ", " as it "];

/// Words with which a reason takes its vote back, or gives no preference.
const RETRACTIONS: [&str; 15] = [
    "actually",
    "both",
    "correction",
    "equal",
    "equally",
    "either",
    "instead",
    "maybe",
    "neither",
    "perhaps",
    "reconsider",
    "reconsidering",
    "tie",
    "tied",
    "wait",
];

/// Keys of an object that name the vote.
const VOTE_KEYS: [&str; 10] = [
    "answer",
    "best",
    "best_response",
    "choice",
    "preferred",
    "response",
    "selected",
    "verdict",
    "vote",
    "winner",
];

/// Returns the vote of a reply that does not end with it.
pub(super) fn parse_reasoned(reply: &str, responses: usize) -> Option<usize> {
    let in_range = |number: &usize| (1..=responses).contains(number);
    let vote = parse_object_vote(reply)
        .or_else(|| parse_last_line(reply))
        .or_else(|| parse_first_line(reply, in_range))?;
    in_range(&vote).then_some(vote)
}

fn lines(reply: &str) -> impl DoubleEndedIterator<Item = &str> {
    reply.lines().filter(|line| line.chars().any(char::is_alphanumeric))
}

/// Returns the number of a line that is a vote and nothing else.
fn whole_vote(line: &str) -> Option<usize> {
    match classify_line(line) {
        LineKind::Vote(number) => number,
        LineKind::Prose => None,
    }
}

/// `Answer: Response 2 (it cites its source)`
fn parse_last_line(reply: &str) -> Option<usize> {
    let last = lines(reply).next_back()?;
    let starts = SEPARATORS.iter().filter_map(|separator| last.find(separator));
    let (head, reason) = last.split_at_checked(starts.min()?)?;
    let vote = whole_vote(head)?;
    // A number alone may also count the items of a list.
    let is_labelled = head.chars().any(char::is_alphabetic);
    let mentioned = mentions(reason);
    let is_only_line = lines(reply).count() == 1 && mentioned.contains(&vote);
    let names_others = mentioned.iter().any(|number| *number != vote);
    ((is_labelled || is_only_line) && !names_others && !is_retracted(reason)).then_some(vote)
}

/// `2`, and then `Response 2 is complete, while response 1 is not.`
fn parse_first_line(reply: &str, in_range: impl Fn(&usize) -> bool) -> Option<usize> {
    let first = lines(reply).next()?;
    let vote = whole_vote(first)?;
    let (_, reason) = reply.split_once(first)?;
    let begins_with_vote = mentions(reason).into_iter().find(&in_range) == Some(vote);
    let claims_other = claimed_numbers(&tokenize(reason)).iter().any(|(_, number)| *number != vote);
    (begins_with_vote && !claims_other && !is_retracted(reason)).then_some(vote)
}

/// `{"reason": "it cites its source", "best": 2}`
fn parse_object_vote(reply: &str) -> Option<usize> {
    let (object, _) = parse_object::<Map<String, Value>>(reply).ok()?;
    let votes = object.iter().filter(|(key, _)| VOTE_KEYS.contains(&key.to_lowercase().as_str()));
    let mut numbers = votes.map(|(_, value)| match value {
        Value::Number(number) => number.as_u64().and_then(|number| usize::try_from(number).ok()),
        Value::String(text) => whole_vote(text),
        _ => None,
    });
    let vote = numbers.next()??;
    numbers.all(|number| number == Some(vote)).then_some(vote)
}

/// Returns the numbers of responses that a text mentions, in order.
fn mentions(text: &str) -> Vec<usize> {
    let tokens = tokenize(text);
    (0..tokens.len()).filter_map(|index| mention_at(&tokens, index)).collect()
}

fn is_retracted(reason: &str) -> bool {
    tokenize(reason).iter().any(|token| token.is_one_of(&RETRACTIONS) || *token == Token::Mark('?'))
}

#[cfg(test)]
mod tests {
    use crate::judge::{BestResponse, JudgeQuestion};

    fn vote(reply: &str) -> Option<usize> {
        BestResponse { responses: 3 }.parse(reply).ok()
    }

    #[test]
    fn vote_before_its_reason_is_parsed() {
        for (reply, expected) in [
            ("2\n\nResponse 2 is accurate and complete.", 2),
            ("**2**\n\nResponse 2 is shorter, and response 1 invents a source.", 2),
            ("Response 1\n\nReasons: response 1 cites 7 sources; response 3 has none.", 1),
            ("Answer: Response 2 (it is the more complete of them)", 2),
            ("Both are fine.\nAnswer: Response 2 (more accurate)", 2),
            ("**Response 3** \u{2014} it names its sources.", 3),
            ("Verdict: 2 - it is correct", 2),
            ("Response 1 because it answers the question.", 1),
            ("The answer is response 2.", 2),
            ("2 - response 2 is correct", 2),
            ("I'd go with Response 2.", 2),
            ("I would say Response 3.", 3),
            ("Response 2 is superior.", 2),
            ("{\"reason\": \"it cites its source\", \"best\": 2}", 2),
            (
                "Here it is:\n```json\n{\n  \"winner\": \"Response 3\",\n  \"why\": \"it is 4 times shorter\"\n}\n```",
                3,
            ),
        ] {
            assert_eq!(vote(reply), Some(expected), "{reply:?}");
        }
    }

    #[test]
    fn reason_with_another_reading_makes_the_vote_invalid() {
        for reply in [
            "2\n\nResponse 1 is accurate and complete.",
            "2\n\nThe other one is accurate.",
            "2\n\nResponse 2 was my first thought. Response 1 is best.",
            "2\n\nWait, response 2 has a mistake in it, so no.",
            "1\n2\n3 are all fine",
            "1. clear\n2. vague\nso it is close",
            "1 - clear\n2 - vague",
            "2 - vague",
            "Answer: Response 2 (or response 1)",
            "Answer: Response 2 (both are equal)",
            "Response 2 (?)",
            "Answer: 7 (the seventh)",
            "The answer is 2 (two)",
            "Response 2 - 1",
            "{\"best\": 2, \"winner\": 1}",
            "{\"best\": 9}",
            "{\"score\": 2}",
            "{\"best\": null}",
            "[2, 1]\nis my ranking",
        ] {
            assert_eq!(vote(reply), None, "{reply:?}");
        }
    }
}
