//! Verdicts that name a response by its number.
//!
//! Parsing is strict: a reply that permits two readings has no vote.

use super::PairPreference;
use super::reasoned::parse_reasoned;
use std::ops::Range;

/// Returns the number, from 1 to `responses`, that a reply votes for.
///
/// The last line with a letter or digit decides if it is a number with nothing around it but decoration and
/// words such as `Response` or `Final answer:`. If it is prose, the vote is the only number that the reply
/// claims to be best, or a vote that its reason follows.
pub(super) fn parse_vote(reply: &str, responses: usize) -> Option<usize> {
    let in_range = |number: &usize| (1..=responses).contains(number);
    match classify_line(last_line(reply)?) {
        LineKind::Vote(number) => number.filter(in_range),
        LineKind::Prose => {
            find_claim(&tokenize(reply), in_range).or_else(|| parse_reasoned(reply, responses))
        }
    }
}

/// Returns the preference between two responses that a reply ends with: a vote, or a tie on the last line.
pub(super) fn parse_preference(reply: &str) -> Option<PairPreference> {
    let last = last_line(reply)?;
    if is_tie(&tokenize(last)) {
        return Some(PairPreference::Tie);
    }
    // "Response 1 is better, or it is a tie" claims two things.
    let mentions_tie =
        tokenize(reply).iter().any(|token| token.is_one_of(&["tie", "ties", "tied"]));
    if mentions_tie && matches!(classify_line(last), LineKind::Prose) {
        return None;
    }
    match parse_vote(reply, 2)? {
        1 => Some(PairPreference::First),
        2 => Some(PairPreference::Second),
        _ => None,
    }
}

/// Words that start a line about the vote, which may follow it, as in `Confidence: 90%`.
const APPENDICES: [&str; 4] = ["certainty", "confidence", "rating", "score"];

/// Returns the last line with a letter or digit, apart from lines about the vote.
fn last_line(reply: &str) -> Option<&str> {
    let is_appendix = |line: &str| {
        let first = tokenize(line).into_iter().find(|token| !matches!(token, Token::Mark(_)));
        first.is_some_and(|token| token.is_one_of(&APPENDICES))
    };
    let mut lines = reply.lines().rev().filter(|line| line.chars().any(char::is_alphanumeric));
    lines.find(|line| !is_appendix(line))
}

/// Returns whether a line says that neither response is better, and nothing else.
fn is_tie(line: &[Token]) -> bool {
    let allowed = ["a", "answer", "final", "is", "it", "my", "overall", "the", "tie", "verdict"];
    line.iter().any(|token| token.is_one_of(&["tie"]))
        && line.iter().all(|token| match token {
            Token::Word(_) => token.is_one_of(&allowed),
            Token::Number(_) => false,
            Token::Mark(mark) => *mark != '?',
        })
}

/// A token of a reply.
#[derive(Debug, PartialEq)]
pub(super) enum Token {
    /// Letters, in lower case.
    Word(String),
    /// Digits; `None` if they are not a whole number on their own, as in `3.2`, `1/2`, `-1` or `2nd`.
    Number(Option<usize>),
    /// Any other character except spaces; a line break is a mark.
    Mark(char),
}

impl Token {
    pub(super) fn is_one_of(&self, words: &[&str]) -> bool {
        matches!(self, Token::Word(word) if words.contains(&word.as_str()))
    }

    /// Returns whether the token may occur in a sentence that says only which number is chosen.
    fn fits_vote(&self) -> bool {
        match self {
            Token::Word(_) => {
                [&NEUTRAL_WORDS[..], &BEST_WORDS, &CHOICE_VERBS].iter().any(|w| self.is_one_of(w))
            }
            Token::Number(_) => true,
            Token::Mark(mark) => !CLAUSE_ENDS.contains(mark),
        }
    }

    /// Returns whether the token ranks one thing above another.
    fn claims(&self) -> bool {
        self.is_one_of(&BEST_WORDS) || self.is_one_of(&CHOICE_VERBS) || self.is_one_of(&["wins"])
    }
}

/// Words that may accompany the number of a vote without a meaning of their own.
const NEUTRAL_WORDS: [&str; 23] = [
    "a",
    "answer",
    "boxed",
    "candidate",
    "clearly",
    "d",
    "go",
    "i",
    "is",
    "ll",
    "my",
    "number",
    "option",
    "overall",
    "response",
    "say",
    "so",
    "the",
    "therefore",
    "think",
    "wins",
    "with",
    "would",
];

/// Words for the chosen number.
const BEST_WORDS: [&str; 9] =
    ["best", "better", "choice", "final", "preferable", "superior", "verdict", "vote", "winner"];

/// Verbs for choosing a number.
const CHOICE_VERBS: [&str; 4] = ["choose", "pick", "prefer", "select"];

/// Marks that end a clause.
const CLAUSE_ENDS: [char; 8] = ['.', ',', ';', '!', '?', '\n', '\u{2013}', '\u{2014}'];

pub(super) enum LineKind {
    /// A number and nothing else; `None` if the number is ambiguous.
    Vote(Option<usize>),
    Prose,
}

pub(super) fn classify_line(line: &str) -> LineKind {
    let tokens = tokenize(line);
    let numbers: Vec<Option<usize>> = tokens
        .iter()
        .filter_map(|token| match token {
            Token::Number(number) => Some(*number),
            Token::Word(_) | Token::Mark(_) => None,
        })
        .collect();
    // Digits of other scripts are no known number, but are meant as a vote.
    let other_digits = line.chars().any(|letter| letter.is_numeric() && !letter.is_ascii());
    if other_digits && !line.chars().any(char::is_alphabetic) {
        return LineKind::Vote(None);
    }
    let fits_vote = |token: &Token| match token {
        Token::Mark(mark) => *mark != '?',
        other => other.fits_vote(),
    };
    if numbers.is_empty() || !tokens.iter().all(fits_vote) || may_answer_query(&tokens) {
        return LineKind::Prose;
    }
    LineKind::Vote(match numbers[..] {
        [number] if !other_digits => number,
        _ => None,
    })
}

/// Returns whether a line may answer the query instead of the judge's question, as in `the answer is 2`. The
/// mere label `Answer: 2` is the judge's own, and so is `the answer is response 2`.
fn may_answer_query(line: &[Token]) -> bool {
    let mut words = line.iter().filter(|token| matches!(token, Token::Word(_)));
    let answers = |token: &Token| token.is_one_of(&["answer"]);
    let is_own = |token: &Token| token.claims() || token.is_one_of(&["my"]);
    let names_response = line.windows(2).any(|pair| match pair {
        [word, Token::Number(_)] => word.is_one_of(&["response"]),
        _ => false,
    });
    line.iter().any(answers) && !names_response && !line.iter().any(is_own) && !words.all(answers)
}

/// Returns the number that a reply claims to be best.
///
/// A claim is a clause, or the start of one that continues with its reason, and consists of the number and
/// known words only. `Response 1 is not the best`, `I cannot pick 1` and `The other one is better than
/// response 1` are therefore no claims. No other response may be mentioned and nothing else claimed, unless
/// the reply ends with its verdict on one of the responses it mentions.
fn find_claim(tokens: &[Token], in_range: impl Fn(&usize) -> bool) -> Option<usize> {
    let claims = claimed_numbers(tokens);
    let (last, number) = claims.last()?;
    if claims.iter().any(|(_, other)| other != number) {
        return None;
    }
    let is_outside = |index: &usize| claims.iter().all(|(phrase, _)| !phrase.contains(index));
    let outside: Vec<usize> = (0..tokens.len()).filter(is_outside).collect();
    let mentioned: Vec<usize> =
        outside.iter().filter_map(|index| mention_at(tokens, *index)).filter(&in_range).collect();
    let claims_more = outside.iter().filter_map(|index| tokens.get(*index)).any(Token::claims);
    let is_alone = !claims_more && mentioned.iter().all(|other| other == number);
    let is_final = |token: &Token| token.is_one_of(&["final", "verdict"]);
    let is_verdict = tokens.get(last.clone()).unwrap_or_default().iter().any(is_final)
        && tokens.get(last.end..).unwrap_or_default().iter().all(|t| matches!(t, Token::Mark(_)))
        && mentioned.contains(number);
    (is_alone || is_verdict).then_some(*number).filter(in_range)
}

/// Returns the phrases that claim a number to be best, with the number.
pub(super) fn claimed_numbers(tokens: &[Token]) -> Vec<(Range<usize>, usize)> {
    phrases(tokens)
        .filter_map(|phrase| Some((phrase.clone(), parse_claim(tokens, &phrase)?)))
        .collect()
}

/// Returns the maximal ranges of tokens that fit a vote.
fn phrases(tokens: &[Token]) -> impl Iterator<Item = Range<usize>> {
    let runs = tokens.split(|token| !token.fits_vote());
    let mut start = 0;
    runs.map(move |run| {
        let phrase = start..start + run.len();
        start = phrase.end + 1;
        phrase
    })
}

/// Returns the number that a phrase claims to be best.
fn parse_claim(tokens: &[Token], phrase: &Range<usize>) -> Option<usize> {
    let is_break = |token: &Token| matches!(token, Token::Mark(mark) if CLAUSE_ENDS.contains(mark));
    let before = phrase.start.checked_sub(1).and_then(|index| tokens.get(index));
    let starts_clause =
        before.is_none_or(|token| is_break(token) || token.is_one_of(&["and", "but"]));
    // A reason may follow. A question is no claim.
    let reasons = ["as", "because", "for", "since", "than"];
    let can_follow = |token: &Token| is_break(token) || token.is_one_of(&reasons);
    let ends_claim =
        tokens.get(phrase.end).is_none_or(|token| can_follow(token) && *token != Token::Mark('?'));
    let phrase = tokens.get(phrase.clone()).filter(|_| starts_clause && ends_claim)?;
    let index = phrase.iter().position(|token| matches!(token, Token::Number(_)))?;
    let (head, tail) = phrase.split_at_checked(index)?;
    let (Token::Number(number), tail) = tail.split_first()? else { return None };
    let has = |words: &[&str]| phrase.iter().any(|token| token.is_one_of(words));
    let is_equal = |token: &Token| matches!(token, Token::Mark(':' | '=' | '#'));
    // "It is best for 2 reasons" has a number and no claim about it.
    let is_called_best = has(&BEST_WORDS) && (has(&["is"]) || head.iter().any(is_equal));
    let wins = tail.iter().any(|token| token.is_one_of(&["wins"]));
    let is_single = !tail.iter().any(|token| matches!(token, Token::Number(_)));
    let is_claim =
        is_called_best || wins || (has(&["i"]) && has(&[&CHOICE_VERBS[..], &["vote"]].concat()));
    number.filter(|_| is_single && is_claim)
}

/// Returns the response that the token at an index mentions, unless the number counts the responses.
pub(super) fn mention_at(tokens: &[Token], index: usize) -> Option<usize> {
    let Some(Token::Number(number)) = tokens.get(index) else { return None };
    let counts = |token: &Token| token.is_one_of(&["candidates", "options", "responses"]);
    number.filter(|_| !tokens.get(index + 1).is_some_and(counts))
}

pub(super) fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut before = None;
    while let Some(letter) = rest.chars().next() {
        let run = |keep: fn(char) -> bool| {
            let end = rest.find(|letter| !keep(letter)).unwrap_or(rest.len());
            rest.split_at(end)
        };
        let part = if letter.is_ascii_digit() {
            let (digits, after) = run(|letter| letter.is_ascii_digit());
            let is_whole = stands_alone(before, after);
            tokens.push(Token::Number(digits.parse().ok().filter(|_| is_whole)));
            digits
        } else if letter.is_alphabetic() {
            let (word, _) = run(char::is_alphabetic);
            tokens.push(Token::Word(word.to_lowercase()));
            word
        } else {
            let (mark, _) = rest.split_at(letter.len_utf8());
            if !letter.is_whitespace() || letter == '\n' {
                tokens.push(Token::Mark(letter));
            }
            mark
        };
        before = part.chars().next_back();
        rest = rest.get(part.len()..).unwrap_or_default();
    }
    tokens
}

/// Returns whether digits are a whole number on their own, given the characters next to them.
fn stands_alone(before: Option<char>, after: &str) -> bool {
    let dashes = ['-', '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2212}'];
    let joins = |letter: char| {
        letter.is_alphanumeric() || dashes.contains(&letter) || "/\\+%^~".contains(letter)
    };
    let mut after = after.chars();
    let next = after.next();
    let continues = after.next().is_some_and(char::is_numeric);
    let before_is_free =
        before.is_none_or(|letter| !joins(letter) && !['.', ','].contains(&letter));
    let after_is_free = next.is_none_or(|letter| {
        let separates = ['.', ',', ':'].contains(&letter) && continues;
        !joins(letter) && !separates
    });
    before_is_free && after_is_free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_on_the_last_line_is_a_vote() {
        for (reply, responses, expected) in [
            ("2", 2, 2),
            ("  2\n\n", 2, 2),
            ("**2**", 2, 2),
            ("\"1\".", 2, 1),
            ("[2]", 2, 2),
            ("_2_", 2, 2),
            ("#2", 2, 2),
            ("2.", 2, 2),
            ("```\n2\n```", 2, 2),
            ("{\"answer\": 2}", 2, 2),
            ("<answer>2</answer>", 2, 2),
            ("\\boxed{2}", 2, 2),
            ("Response 1", 2, 1),
            ("Response #2", 2, 2),
            ("Answer: 1", 2, 1),
            ("My answer is 1", 2, 1),
            ("The best answer is 1", 2, 1),
            ("**Final answer: 2**", 2, 2),
            ("I pick 3.", 3, 3),
            ("The best response is 12", 12, 12),
            ("1 is the best response.", 2, 1),
            ("Response 1 is not as good as Response 2, 3.5 against 7.\n2", 2, 2),
            ("Response 2 names its source.\r\n\r\nResponse 2\r\n", 2, 2),
            ("Ответ 1 короче, ответ 2 точнее. 🙂\n2", 2, 2),
            ("Answer: 2\nConfidence: 90%", 2, 2),
            ("Answer: 2\n\n**Score:** 9/10", 2, 2),
            ("2\nRating: 1\nCertainty: high", 2, 2),
        ] {
            assert_eq!(parse_vote(reply, responses), Some(expected), "{reply:?}");
        }
    }

    #[test]
    fn claim_about_a_single_number_is_a_vote() {
        for (reply, responses, expected) in [
            ("Comparing 2 responses, response 1 is best", 2, 1),
            ("Having read them all, I would choose 2, for its clarity.", 3, 2),
            ("Response 1 is better than the other one.", 2, 1),
            ("**Response 2** wins because it is whole, of 11 lines.", 2, 2),
            ("It is close, but response 2 is the winner!", 2, 2),
            ("I prefer response 2. It says why.", 2, 2),
            ("I select option 2 as it is short.", 2, 2),
            ("The winner is Response 2 because it cites 7 sources.", 2, 2),
            ("Response 1 is best.\nResponse 1 has it all, thanks.", 2, 1),
            ("Response 1 and Response 2 are close, but final: 2", 2, 2),
            ("Response 1 and Response 2 are close. Final answer is **2**.", 2, 2),
            ("My verdict: #2, clearly", 2, 2),
        ] {
            assert_eq!(parse_vote(reply, responses), Some(expected), "{reply:?}");
        }
    }

    #[test]
    fn ambiguous_reply_is_no_vote() {
        for (reply, responses) in [
            ("", 2),
            ("Confidence: 2", 2),
            (" \n\t\n", 2),
            ("none", 2),
            ("unclear", 2),
            ("0", 2),
            ("7", 2),
            ("12", 2),
            ("-1", 2),
            ("\u{2212}1", 2),
            ("1/2", 2),
            ("3.2", 3),
            (".5", 9),
            ("1,2", 2),
            ("1 2", 2),
            ("1-2", 2),
            ("1:2", 2),
            ("2nd", 2),
            ("2%", 2),
            ("1st", 2),
            ("\u{ff12}", 2),
            ("2 or \u{ff11}", 2),
            ("2, \u{ff11}", 2),
            ("Response A", 2),
            ("Response 1 or 2", 2),
            ("Responses 1 and 2 are equal", 2),
            ("Response 1/2", 2),
            ("Response 12", 2),
            ("I prefer response 1 over response 2", 2),
            ("I prefer response 1 over 2", 2),
            ("response 1, 2 and 3 are the same", 3),
            ("Response 2 is worse", 2),
            ("It is not response 1", 2),
            ("I can't pick response 1", 2),
            ("Response 1 is best.\n7", 2),
            ("Response 1 is best.\n\u{ff12}", 2),
            ("I saw 2 responses", 2),
            ("It is best for 2 reasons", 2),
            ("Both answer 2 of the questions, and the final 2", 2),
            ("final: 9", 2),
            // The query has an answer too.
            ("Response 1 is correct: the answer is 2.", 2),
            ("Both say the answer is 2", 2),
            ("Both are right.\nThe answer is 2.", 2),
            ("Response 1 is right. Final answer: 2", 2),
            ("Both say that the final verdict is 2", 2),
            // Another response is mentioned.
            ("Response 1 is good, but 2 is best.", 2),
            ("Response 1 is best, and so is 2.", 2),
            ("Of the 3 I would choose 2, for its clarity.", 3),
            // The response is described, not chosen.
            ("Response 1 has several mistakes and invents a source.", 2),
            ("Response 2 ignores the question.", 2),
            ("Response 1 is less accurate than the other one.", 2),
            ("Response 2 is it, thanks", 2),
            // Negated, conditional, or about another response.
            ("Response 1 is not the best", 2),
            ("Response 1 isn't the best.", 2),
            ("I don't think response 1 is best", 2),
            ("I cannot, in good faith, pick response 1", 2),
            ("The other one is better than response 1.", 2),
            ("I prefer the other one to response 1", 2),
            ("Response 1 loses to the better one.", 2),
            ("Response 1 is best avoided.", 2),
            ("If response 1 is best, I am a teapot.", 2),
            ("Response 1 is best? Hardly.", 2),
            ("Response 1 is better than it looks, but the second is better.", 2),
            ("Response 1 is better than it looks, but the second wins.", 2),
            ("Response 1 is better, but by no means the best.", 2),
            ("Response 1 is best. Response 1 is fair, response 2 is bad. Final: 2", 2),
            ("99999999999999999999999999", 2),
            ("Response 99999999999999999999999999", 2),
        ] {
            assert_eq!(parse_vote(reply, responses), None, "{reply:?}");
        }
    }

    #[test]
    fn preference_is_a_vote_or_a_tie_on_the_last_line() {
        use PairPreference::{First, Second, Tie};
        for (reply, expected) in [
            ("1", Some(First)),
            ("Response 2 cites its source.\n\n**2**", Some(Second)),
            ("Response 1 is best.", Some(First)),
            ("tie", Some(Tie)),
            ("Both are right.\n\"Tie\".", Some(Tie)),
            ("Verdict: **tie**", Some(Tie)),
            ("It is a tie.", Some(Tie)),
            ("It is nearly a tie, but 1 is shorter.\n1", Some(First)),
            ("It is not a tie.", None),
            ("A tie?", None),
            ("tie 1", None),
            ("1 (tie)", None),
            ("Response 1 is best, or it is a tie.", None),
            ("3", None),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(parse_preference(reply), expected, "{reply:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_within_range(reply in "(?s).*", responses in 0_usize..20) {
            let vote = parse_vote(&reply, responses);
            proptest::prop_assert!(vote.is_none_or(|number| (1..=responses).contains(&number)));
        }

        #[test]
        fn number_alone_on_the_last_line_decides(words in "[a-zA-Z0-9 .\n]*", number in 1_usize..9) {
            proptest::prop_assert_eq!(parse_vote(&format!("{words}\n{number}"), 9), Some(number));
        }
    }
}
