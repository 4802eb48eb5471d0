//! What a judge's reply says, read strictly: a reply that can be read in two ways is not read.

use std::ops::Range;

/// The number that a reply votes for, of `1..=most`.
///
/// What counts is the last line that says something: a number, with nothing around it but
/// decoration and words such as `Response` or `Final answer:`. Where that line says more, a number
/// counts of which the reply says that it is best, and of which alone.
pub(super) fn vote(reply: &str, most: usize) -> Option<usize> {
    let in_range = |number: &usize| (1..=most).contains(number);
    let last = reply.lines().rev().find(|line| line.chars().any(char::is_alphanumeric))?;
    match last_line(last) {
        Line::Vote(number) => number.filter(in_range),
        Line::Prose => claimed(&tokens(reply), in_range),
    }
}

/// A part of a reply.
#[derive(Debug, PartialEq)]
enum Token {
    /// Letters, in lower case.
    Word(String),
    /// Digits; `None` for what is no whole number of its own, such as `3.2`, `1/2`, `-1` or `2nd`.
    Number(Option<usize>),
    /// Anything else but space; a line break is one.
    Mark(char),
}

impl Token {
    fn is_one_of(&self, words: &[&str]) -> bool {
        matches!(self, Token::Word(word) if words.contains(&word.as_str()))
    }

    /// Whether it may stand in a sentence that says no more than which number is chosen.
    fn is_of_a_vote(&self) -> bool {
        match self {
            Token::Word(_) => [&BESIDE[..], &GOOD, &CHOOSING].iter().any(|w| self.is_one_of(w)),
            Token::Number(_) => true,
            Token::Mark(mark) => !BREAKS.contains(mark),
        }
    }

    /// Whether it says that something is better than something else.
    fn claims(&self) -> bool {
        self.is_one_of(&GOOD) || self.is_one_of(&CHOOSING) || self.is_one_of(&["wins"])
    }
}

/// Words that may stand beside the number of a vote, and say nothing themselves.
const BESIDE: [&str; 18] = [
    "a",
    "answer",
    "boxed",
    "candidate",
    "clearly",
    "i",
    "is",
    "my",
    "number",
    "option",
    "overall",
    "response",
    "so",
    "the",
    "therefore",
    "think",
    "wins",
    "would",
];

/// What a number is, when it is chosen.
const GOOD: [&str; 7] = ["best", "better", "choice", "final", "verdict", "vote", "winner"];

/// What a judge does with the number that it chooses.
const CHOOSING: [&str; 4] = ["choose", "pick", "prefer", "select"];

/// What ends a clause.
const BREAKS: [char; 8] = ['.', ',', ';', '!', '?', '\n', '\u{2013}', '\u{2014}'];

/// What the last line is.
enum Line {
    /// Nothing but a number, which may be one that cannot be read.
    Vote(Option<usize>),
    /// Something else.
    Prose,
}

fn last_line(line: &str) -> Line {
    let tokens = tokens(line);
    let numbers: Vec<Option<usize>> = tokens
        .iter()
        .filter_map(|token| match token {
            Token::Number(number) => Some(*number),
            Token::Word(_) | Token::Mark(_) => None,
        })
        .collect();
    // Digits of other scripts are nobody's words, and meant as a vote all the same.
    let other_digits = line.chars().any(|letter| letter.is_numeric() && !letter.is_ascii());
    if other_digits && !line.chars().any(char::is_alphabetic) {
        return Line::Vote(None);
    }
    let is_of_a_vote = |token: &Token| match token {
        Token::Mark(mark) => *mark != '?',
        other => other.is_of_a_vote(),
    };
    if numbers.is_empty() || !tokens.iter().all(is_of_a_vote) || is_about_the_task(&tokens) {
        return Line::Prose;
    }
    Line::Vote(match numbers[..] {
        [number] if !other_digits => number,
        _ => None,
    })
}

/// Whether a line may give the answer to what the candidates were asked: `the answer is 2`. As a
/// mere label, as in `Answer: 2`, it is for the judge's own.
fn is_about_the_task(line: &[Token]) -> bool {
    let mut words = line.iter().filter(|token| matches!(token, Token::Word(_)));
    let answers = |token: &Token| token.is_one_of(&["answer"]);
    let is_own = |token: &Token| token.claims() || token.is_one_of(&["my"]);
    line.iter().any(answers) && !line.iter().any(is_own) && !words.all(answers)
}

/// The number of which a reply says that it is best.
///
/// A claim is a clause of its own, or the beginning of one that goes on with the reason, and has
/// nothing in it but the number and words that are known. So `Response 1 is not the best` is none,
/// nor is `I cannot pick 1` or `The other one is better than response 1`. Nobody else may be named,
/// and nothing else claimed, unless the reply ends with its verdict on one of those it has named.
fn claimed(tokens: &[Token], in_range: impl Fn(&usize) -> bool) -> Option<usize> {
    let claims: Vec<(Range<usize>, usize)> = phrases(tokens)
        .filter_map(|phrase| Some((phrase.clone(), claim(tokens, &phrase)?)))
        .collect();
    let (last, number) = claims.last()?;
    if claims.iter().any(|(_, other)| other != number) {
        return None;
    }
    let is_outside = |place: &usize| claims.iter().all(|(phrase, _)| !phrase.contains(place));
    let outside: Vec<usize> = (0..tokens.len()).filter(is_outside).collect();
    let named: Vec<usize> =
        outside.iter().filter_map(|place| named_at(tokens, *place)).filter(&in_range).collect();
    let claims_more = outside.iter().filter_map(|place| tokens.get(*place)).any(Token::claims);
    let is_alone = !claims_more && named.iter().all(|other| other == number);
    let is_final = |token: &Token| token.is_one_of(&["final", "verdict"]);
    let is_verdict = tokens.get(last.clone()).unwrap_or_default().iter().any(is_final)
        && tokens.get(last.end..).unwrap_or_default().iter().all(|t| matches!(t, Token::Mark(_)))
        && named.contains(number);
    (is_alone || is_verdict).then_some(*number).filter(in_range)
}

/// The longest rows of tokens that can be of a vote.
fn phrases(tokens: &[Token]) -> impl Iterator<Item = Range<usize>> {
    let rows = tokens.split(|token| !token.is_of_a_vote());
    let mut start = 0;
    rows.map(move |row| {
        let phrase = start..start + row.len();
        start = phrase.end + 1;
        phrase
    })
}

/// The number that a phrase claims to be best.
fn claim(tokens: &[Token], phrase: &Range<usize>) -> Option<usize> {
    let is_break = |token: &Token| matches!(token, Token::Mark(mark) if BREAKS.contains(mark));
    let before = phrase.start.checked_sub(1).and_then(|place| tokens.get(place));
    let begins = before.is_none_or(|token| is_break(token) || token.is_one_of(&["and", "but"]));
    // What may come after it is its reason. A question is no claim.
    let reasons = ["as", "because", "for", "since", "than"];
    let goes_on = |token: &Token| is_break(token) || token.is_one_of(&reasons);
    let ends =
        tokens.get(phrase.end).is_none_or(|token| goes_on(token) && *token != Token::Mark('?'));
    let phrase = tokens.get(phrase.clone()).filter(|_| begins && ends)?;
    let place = phrase.iter().position(|token| matches!(token, Token::Number(_)))?;
    let (head, tail) = phrase.split_at_checked(place)?;
    let (Token::Number(number), tail) = tail.split_first()? else { return None };
    let has = |words: &[&str]| phrase.iter().any(|token| token.is_one_of(words));
    let is_equal = |token: &Token| matches!(token, Token::Mark(':' | '=' | '#'));
    // What is best may be so for 2 reasons.
    let is_said_to_be = has(&GOOD) && (has(&["is"]) || head.iter().any(is_equal));
    let wins = tail.iter().any(|token| token.is_one_of(&["wins"]));
    let is_single = !tail.iter().any(|token| matches!(token, Token::Number(_)));
    let is_claim =
        is_said_to_be || wins || (has(&["i"]) && has(&[&CHOOSING[..], &["vote"]].concat()));
    number.filter(|_| is_single && is_claim)
}

/// The number at a place, unless it says how many responses there are.
fn named_at(tokens: &[Token], place: usize) -> Option<usize> {
    let Some(Token::Number(number)) = tokens.get(place) else { return None };
    let counts = |token: &Token| token.is_one_of(&["candidates", "options", "responses"]);
    number.filter(|_| !tokens.get(place + 1).is_some_and(counts))
}

fn tokens(text: &str) -> Vec<Token> {
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

/// Whether digits are a whole number of their own, by what stands directly beside them.
fn stands_alone(before: Option<char>, after: &str) -> bool {
    let dashes = ['-', '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2212}'];
    let joins = |letter: char| {
        letter.is_alphanumeric() || dashes.contains(&letter) || "/\\+%^~".contains(letter)
    };
    let mut after = after.chars();
    let next = after.next();
    let goes_on = after.next().is_some_and(char::is_numeric);
    let before_is_free =
        before.is_none_or(|letter| !joins(letter) && !['.', ','].contains(&letter));
    let after_is_free = next.is_none_or(|letter| {
        let separates = ['.', ',', ':'].contains(&letter) && goes_on;
        !joins(letter) && !separates
    });
    before_is_free && after_is_free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_on_the_last_line_is_a_vote() {
        for (reply, most, expected) in [
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
        ] {
            assert_eq!(vote(reply, most), Some(expected), "{reply:?}");
        }
    }

    #[test]
    fn a_sentence_that_claims_something_of_one_number_is_a_vote() {
        for (reply, most, expected) in [
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
            assert_eq!(vote(reply, most), Some(expected), "{reply:?}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_no_vote() {
        for (reply, most) in [
            ("", 2),
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
            // What was asked about has an answer, too.
            ("Response 1 is correct: the answer is 2.", 2),
            ("Both say the answer is 2", 2),
            ("Both are right.\nThe answer is 2.", 2),
            ("Response 1 is right. Final answer: 2", 2),
            ("Both say that the final verdict is 2", 2),
            // Another number is meant as a response.
            ("Response 1 is good, but 2 is best.", 2),
            ("Response 1 is best, and so is 2.", 2),
            ("Of the 3 I would choose 2, for its clarity.", 3),
            // Nothing good is said of it.
            ("Response 1 has several mistakes and invents a source.", 2),
            ("Response 2 ignores the question.", 2),
            ("Response 1 is less accurate than the other one.", 2),
            ("Response 2 is it, thanks", 2),
            // What is said is no claim, or not about it.
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
            assert_eq!(vote(reply, most), None, "{reply:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_trouble(reply in "(?s).*", most in 0_usize..20) {
            let read = vote(&reply, most);
            proptest::prop_assert!(read.is_none_or(|number| (1..=most).contains(&number)));
        }

        #[test]
        fn a_number_alone_on_the_last_line_decides(words in "[a-zA-Z0-9 .\n]*", number in 1_usize..9) {
            proptest::prop_assert_eq!(vote(&format!("{words}\n{number}"), 9), Some(number));
        }
    }
}
