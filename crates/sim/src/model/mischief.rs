//! All that goes wrong with answers about packed items, for testing those who read them.
//!
//! One thing is never done, because nobody could tell: an answer under another item's id without that
//! item's own answer. In a reply that breaks off it comes only after it, so that a reader who sees
//! the one has seen the other.

use super::packed::{Answer, Form, Shape};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// What a model does to its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mischief {
    /// Nothing.
    None,
    /// Answers come in another order.
    Reorder,
    /// Some are missing.
    Drop,
    /// Some come twice, with the same or with other values.
    Duplicate,
    /// Some have ids that nobody has, or those of others.
    Rename,
    /// The reply breaks off anywhere.
    Truncate,
    /// Prose and fences stand around it.
    Wrap,
    /// It is in another form than asked for, or in two.
    Mix,
    /// It thinks aloud before it answers: about the items, and with drafts that are wrong.
    Think,
    /// All values are of the wrong type, for ever.
    Stubborn,
    /// Requests for structured output are refused.
    Plain,
    /// Requests with an item that says REFUSE are refused.
    Picky,
    /// Any of it, now and then.
    Unruly,
}

impl Mischief {
    /// Of the model of that name.
    pub(crate) fn named(name: &str) -> Option<Mischief> {
        Some(match name.strip_prefix("map")? {
            "" => Mischief::None,
            "-reorder" => Mischief::Reorder,
            "-drop" => Mischief::Drop,
            "-duplicate" => Mischief::Duplicate,
            "-rename" => Mischief::Rename,
            "-truncate" => Mischief::Truncate,
            "-wrap" => Mischief::Wrap,
            "-mix" => Mischief::Mix,
            "-think" => Mischief::Think,
            "-stubborn" => Mischief::Stubborn,
            "-plain" => Mischief::Plain,
            "-picky" => Mischief::Picky,
            "-unruly" => Mischief::Unruly,
            _ => return None,
        })
    }
}

/// How often an unruly model does each of these things.
const OFTEN: f64 = 0.3;

/// The reply, after what is done to it.
pub(super) fn write(
    mischief: Mischief,
    form: Form,
    mut answers: Vec<Answer>,
    shape: &Shape<'_>,
    rng: &mut ChaCha8Rng,
) -> String {
    let unruly = mischief == Mischief::Unruly;
    let mut does = |kind: Mischief| {
        // Drawn in any case, so that one thing does not depend on another.
        let drawn = rng.random::<f64>() < OFTEN;
        mischief == kind || unruly && drawn
    };
    let kinds = [
        Mischief::Drop,
        Mischief::Reorder,
        Mischief::Rename,
        Mischief::Duplicate,
        Mischief::Mix,
        Mischief::Wrap,
        Mischief::Truncate,
    ];
    let [drops, reorders, renames, duplicates, mixes, wraps, truncates] = kinds.map(&mut does);
    if drops {
        answers.retain(|_| rng.random::<f64>() >= OFTEN);
    }
    if reorders {
        for last in (1..answers.len()).rev() {
            answers.swap(last, rng.random_range(0..=last));
        }
    }
    if renames {
        for answer in &mut answers {
            if rng.random::<f64>() < OFTEN / 2.0 {
                answer.id = format!("{}x", answer.id.chars().rev().collect::<String>());
            }
        }
        insert_copies(&mut answers, true, truncates, rng);
    }
    if duplicates {
        let other = rng.random::<bool>();
        insert_copies(&mut answers, other, truncates, rng);
    }
    let mut text = match mixes {
        true => mixed(form, &answers, shape, rng),
        false => shape.write(form, &answers),
    };
    if wraps {
        text = wrapped(&text, rng);
    }
    if mischief == Mischief::Think {
        text = format!("<think>\n{}\n</think>\n\n{text}", thought(form, &answers, shape));
    }
    if truncates {
        let mut end = rng.random_range(0..=text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

/// Puts copies of some answers anywhere, or only `behind` them; with `other` values, those of another
/// answer.
fn insert_copies(answers: &mut Vec<Answer>, other: bool, behind: bool, rng: &mut ChaCha8Rng) {
    for number in 0..answers.len() {
        if rng.random::<f64>() >= OFTEN {
            continue;
        }
        let mut copy = answers[number].clone();
        if other {
            copy.values = answers[rng.random_range(0..answers.len())].values.clone();
        }
        let own = answers.iter().position(|answer| answer.id == copy.id).unwrap_or(number);
        let place = rng.random_range(if behind { own + 1 } else { 0 }..=answers.len());
        answers.insert(place, copy);
    }
}

/// Another form than the one that was asked for; or two of them, one after the other.
fn mixed(form: Form, answers: &[Answer], shape: &Shape<'_>, rng: &mut ChaCha8Rng) -> String {
    let forms = [Form::Json, Form::Xml, Form::Yaml];
    let one = forms[rng.random_range(0..forms.len())];
    if rng.random::<bool>() {
        return shape.write(one, answers);
    }
    let (first, second) = answers.split_at(rng.random_range(0..=answers.len()));
    format!("{}\n{}", shape.write(form, first), shape.write(one, second))
}

/// What each item is about, and all answers with the values of another.
fn thought(form: Form, answers: &[Answer], shape: &Shape<'_>) -> String {
    let mut drafts = answers.to_vec();
    let mut text = String::new();
    for (number, draft) in drafts.iter_mut().enumerate() {
        let other = &answers[(number + 1) % answers.len()];
        text.push_str(&format!("There is {{\"id\":\"{}\",\"data\":\"…\"}}.\n", draft.id));
        draft.values.clone_from(&other.values);
    }
    format!("{text}Perhaps:\n{}\nNo, that is wrong.", shape.write(form, &drafts))
}

fn wrapped(text: &str, rng: &mut ChaCha8Rng) -> String {
    match rng.random_range(0..4) {
        0 => format!("```\n{text}\n```"),
        1 => {
            format!("Sure! Here {{is}} what <you> asked for:\n```json\n{text}\n```\nAnything else?")
        }
        2 => format!("I looked at [all] of them.\n{text}\nI hope this helps."),
        _ => format!("<thinking>They want {{\"items\": …}}.</thinking>\n\n{text}\n"),
    }
}
