//! Judging by the hidden quality that candidates carry, and by the words that a rubric quotes.

use serde_json::{Value, json};

/// The verdict that a prompt of a judged check asks for, if it is one: a statement is true of an
/// answer that has all the words which it quotes, a score is 5 or 1 by the same rule, and of two
/// answers the one with the better mark is preferred.
pub(crate) fn verdict(text: &str, bias: f64) -> Option<Value> {
    if let (Some(a), Some(b)) = (tagged(text, "answer_a"), tagged(text, "answer_b")) {
        let quality = |answer: &str| qualities(answer).next().unwrap_or(0.5);
        let ahead = quality(a) + bias - quality(b);
        let preferred = match ahead {
            ahead if ahead > 0.0 => "a",
            ahead if ahead < 0.0 => "b",
            _ => "tie",
        };
        return Some(json!({ "preferred": preferred, "reason": format!("ahead by {ahead:.2}") }));
    }
    let answer = tagged(text, "answer")?;
    let (_, question) = text.rsplit_once("</answer ")?;
    let meets = |statement: &str| quoted(statement).all(|word| answer.contains(word));
    if question.contains("{\"verdicts\"") {
        let statements = question.lines().filter(|line| is_numbered(line));
        let verdicts: Vec<Value> = (1..)
            .zip(statements)
            .map(|(number, line)| json!({ "criterion": number, "met": meets(line) }))
            .collect();
        return Some(json!({ "verdicts": verdicts }));
    }
    let (question, _) = question.split_once("Reply with {\"score\"")?;
    Some(json!({ "score": if meets(question) { 5 } else { 1 } }))
}

/// What stands between `<name x>` and `</name x>`.
fn tagged<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name} "))?;
    let (tag, rest) = rest.split_once(">\n")?;
    rest.split_once(&format!("\n</{name} {tag}>")).map(|(inner, _)| inner)
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).step_by(2)
}

fn is_numbered(line: &str) -> bool {
    let number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    number.len() < line.len() && number.starts_with(". ")
}

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
    fn gives_the_verdict_that_is_asked_for() {
        let one = |answer: &str, question: &str| {
            verdict(&format!("Asked.\n\n<answer 12>\n{answer}\n</answer 12>\n{question}"), 0.0)
        };
        let list = "1. It says \"Paris\".\n2. It says \"France\".\n\nReply with {\"verdicts\": …}";
        assert_eq!(
            one("Paris", list),
            Some(
                json!({"verdicts": [{"criterion": 1, "met": true}, {"criterion": 2, "met": false}]})
            )
        );
        let score = "Does it say \"Paris\"?\n\nReply with {\"score\": 1 to 5}";
        assert_eq!(one("Paris", score), Some(json!({"score": 5})));
        assert_eq!(one("Rome", score), Some(json!({"score": 1})));
        assert_eq!(verdict("no answer", 0.0), None);
    }

    #[test]
    fn prefers_the_better_mark_unless_it_is_biased() {
        let two = |a: &str, b: &str, bias| {
            let text =
                format!("<answer_a 1>\n{a}\n</answer_a 1>\n\n<answer_b 1>\n{b}\n</answer_b 1>\n");
            verdict(&text, bias).unwrap()["preferred"].clone()
        };
        assert_eq!(two("x [quality 0.9]", "y [quality 0.2]", 0.0), "a");
        assert_eq!(two("x [quality 0.2]", "y [quality 0.9]", 0.0), "b");
        assert_eq!(two("x", "y", 0.0), "tie");
        assert_eq!(two("x [quality 0.2]", "y [quality 0.9]", 1.0), "a");
    }

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
