//! What a judge's reply says, read strictly: a reply that can be read in two ways is not read.

/// The number that a reply votes for, of `1..=most`.
///
/// What counts is the last line that says something: a number, with nothing around it but
/// decoration and words such as `Response` or `Final answer:`. A reply without such a line still
/// counts when exactly one number in it is called a response or a choice, and nothing in it sounds
/// like a rejection.
pub(super) fn vote(reply: &str, most: usize) -> Option<usize> {
    let in_range = |number: &usize| (1..=most).contains(number);
    let last = reply.lines().rev().find(|line| line.chars().any(char::is_alphanumeric))?;
    match last_line(last) {
        Line::Vote(number) => return number.filter(in_range),
        Line::Prose => {}
    }
    let tokens = tokens(reply);
    let rejects = |token: &Token| matches!(token, Token::Word(word) if is_rejection(word));
    if tokens.iter().any(rejects) {
        return None;
    }
    let mut named = labelled(&tokens).into_iter();
    let first = named.next()??;
    named.all(|number| number == Some(first)).then_some(first).filter(in_range)
}

/// A part of a reply.
#[derive(Debug, PartialEq)]
enum Token {
    /// Letters, in lower case.
    Word(String),
    /// Digits; `None` for what is no whole number of its own, such as `3.2`, `1/2`, `-1` or `2nd`.
    Number(Option<usize>),
    /// Anything else but space.
    Mark(char),
}

/// What the last line is.
enum Line {
    /// Nothing but a number, which may be one that cannot be read.
    Vote(Option<usize>),
    /// Something else.
    Prose,
}

/// Words that may stand beside the number of a vote.
const BESIDE: [&str; 24] = [
    "a",
    "answer",
    "best",
    "boxed",
    "candidate",
    "choice",
    "choose",
    "final",
    "i",
    "is",
    "my",
    "number",
    "option",
    "pick",
    "prefer",
    "response",
    "select",
    "so",
    "the",
    "therefore",
    "verdict",
    "vote",
    "winner",
    "would",
];

/// Words that announce a vote at the end of a line, whatever stands before them.
const FINAL: [&str; 3] = ["answer", "final", "verdict"];

/// Words that make the number after them a response's.
const LABELS: [&str; 8] =
    ["candidate", "choose", "option", "pick", "prefer", "response", "responses", "select"];

/// Words that do so with `:` or `is` between them: what is best may be so for 2 reasons.
const WEAK_LABELS: [&str; 7] = ["answer", "best", "choice", "final", "verdict", "vote", "winner"];

/// What may stand between a label and its number.
const BETWEEN: [&str; 2] = ["number", "the"];

/// What joins another number to one that is labelled.
const JOINING: [&str; 9] = ["and", "nor", "or", "over", "than", "then", "to", "versus", "vs"];

fn is_rejection(word: &str) -> bool {
    const REJECTIONS: [&str; 24] = [
        "not",
        "no",
        "none",
        "neither",
        "nor",
        "never",
        "cannot",
        "t",
        "worse",
        "worst",
        "weaker",
        "weakest",
        "wrong",
        "incorrect",
        "inferior",
        "bad",
        "fails",
        "lacks",
        "misses",
        "reject",
        "rejected",
        "without",
        "unlike",
        "loses",
    ];
    REJECTIONS.contains(&word)
}

fn last_line(line: &str) -> Line {
    let tokens = tokens(line);
    let is_beside = |token: &&Token| match token {
        Token::Word(word) => BESIDE.contains(&word.as_str()),
        Token::Number(_) | Token::Mark(_) => true,
    };
    let numbers: Vec<Option<usize>> = tokens
        .iter()
        .filter_map(|token| match token {
            Token::Number(number) => Some(*number),
            Token::Word(_) | Token::Mark(_) => None,
        })
        .collect();
    // Digits of other scripts are nobody's words, and meant as a vote all the same.
    let other_digits = line.chars().any(|letter| letter.is_numeric() && !letter.is_ascii());
    if tokens.iter().all(|token| is_beside(&token)) && !numbers.is_empty() {
        return Line::Vote(match numbers[..] {
            [number] if !other_digits => number,
            _ => None,
        });
    }
    if other_digits && !line.chars().any(char::is_alphabetic) {
        return Line::Vote(None);
    }
    match announced(&tokens) {
        Some(number) => Line::Vote(Some(number)),
        None => Line::Prose,
    }
}

/// The number at the very end, when a word such as `final:` announces it.
fn announced(tokens: &[Token]) -> Option<usize> {
    let is_mark = |token: &&Token| matches!(token, Token::Mark(_));
    let mut backwards = tokens.iter().rev().skip_while(is_mark);
    let Some(Token::Number(Some(number))) = backwards.next() else { return None };
    let mut is_parted = false;
    for token in backwards {
        match token {
            Token::Mark(mark) if is_separator(*mark) => is_parted |= is_equal(*mark),
            Token::Word(word) if word == "is" => is_parted = true,
            Token::Word(word) if BETWEEN.contains(&word.as_str()) || word == "response" => {}
            Token::Word(word) if FINAL.contains(&word.as_str()) => {
                return is_parted.then_some(*number);
            }
            Token::Word(_) | Token::Number(_) | Token::Mark(_) => return None,
        }
    }
    None
}

/// What the next number would be.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    /// Any number.
    Unlabelled,
    /// A response's, if `:` or `is` comes first.
    Perhaps,
    /// A response's.
    Labelled,
    /// A response's, if a joining word comes first.
    Joined,
}

/// Every number that is called a response or a choice.
fn labelled(tokens: &[Token]) -> Vec<Option<usize>> {
    let mut found = Vec::new();
    let mut next = Next::Unlabelled;
    for token in tokens {
        next = match token {
            Token::Number(number) if next == Next::Labelled => {
                found.push(*number);
                Next::Joined
            }
            Token::Number(_) => Next::Unlabelled,
            Token::Word(word) => match word.as_str() {
                word if LABELS.contains(&word) => Next::Labelled,
                word if WEAK_LABELS.contains(&word) => Next::Perhaps,
                word if JOINING.contains(&word) && next == Next::Joined => Next::Labelled,
                "is" if next == Next::Perhaps => Next::Labelled,
                "is" if next == Next::Labelled => Next::Labelled,
                word if BETWEEN.contains(&word) => next,
                _ => Next::Unlabelled,
            },
            Token::Mark(',' | '&' | '/') if next == Next::Joined => Next::Labelled,
            Token::Mark(mark) if is_equal(*mark) && next == Next::Perhaps => Next::Labelled,
            Token::Mark(mark) if is_separator(*mark) => next,
            Token::Mark(_) => Next::Unlabelled,
        };
    }
    found
}

/// Marks that say that something is the number.
fn is_equal(mark: char) -> bool {
    [':', '=', '#'].contains(&mark)
}

/// Decoration that may stand between a label and its number.
fn is_separator(mark: char) -> bool {
    ":=#*_`'\"“”‘’«»()[]{}<>".contains(mark)
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
            if !letter.is_whitespace() {
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
    fn one_number_that_is_called_a_response_is_a_vote() {
        for (reply, most, expected) in [
            ("Comparing 2 responses, response 1 is best", 2, 1),
            ("Of the 3 I would choose 2, for its clarity.", 3, 2),
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
