//! Faults in replies about packed items, for testing parsers.
//!
//! One fault is excluded because it is undetectable: an answer under another item's id without that
//! item's own answer. In a truncated reply the false answer follows the true one, so a parser that
//! sees the former has seen the latter.

use super::reply::{ItemAnswer, ReplyLayout};
use crate::task::ReplyFormat;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Fault that a model puts into its replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyFault {
    /// No fault.
    None,
    /// Answers are in another order.
    Reorder,
    /// Some answers are missing.
    Drop,
    /// Some answers occur twice, with equal or different values.
    Duplicate,
    /// Some answers have unknown ids or the ids of other items.
    Rename,
    /// The reply is cut at a random position.
    Truncate,
    /// Prose and code fences surround the reply.
    Wrap,
    /// The reply has another format than requested, or two.
    Mix,
    /// Visible reasoning with wrong drafts precedes the reply.
    Think,
    /// All values have the wrong type, in every reply.
    Stubborn,
    /// Requests for structured output are rejected.
    Plain,
    /// Requests with an item that contains `REFUSE` are rejected.
    Picky,
    /// Any combination of faults, at random.
    Unruly,
}

impl ReplyFault {
    /// Returns the fault of the model with this name.
    pub(super) fn from_name(name: &str) -> Option<ReplyFault> {
        Some(match name.strip_prefix("map")? {
            "" => ReplyFault::None,
            "-reorder" => ReplyFault::Reorder,
            "-drop" => ReplyFault::Drop,
            "-duplicate" => ReplyFault::Duplicate,
            "-rename" => ReplyFault::Rename,
            "-truncate" => ReplyFault::Truncate,
            "-wrap" => ReplyFault::Wrap,
            "-mix" => ReplyFault::Mix,
            "-think" => ReplyFault::Think,
            "-stubborn" => ReplyFault::Stubborn,
            "-plain" => ReplyFault::Plain,
            "-picky" => ReplyFault::Picky,
            "-unruly" => ReplyFault::Unruly,
            _ => return None,
        })
    }
}

/// Probability of each fault in a reply of an unruly model, and of the fault at each answer.
const FAULT_RATE: f64 = 0.3;

/// Writes the reply with its faults.
pub(super) fn write(
    fault: ReplyFault,
    format: ReplyFormat,
    mut answers: Vec<ItemAnswer>,
    layout: &ReplyLayout<'_>,
    rng: &mut ChaCha8Rng,
) -> String {
    let is_unruly = fault == ReplyFault::Unruly;
    let mut has = |kind: ReplyFault| {
        // Always drawn, so that faults are independent of each other.
        let drawn = rng.random::<f64>() < FAULT_RATE;
        fault == kind || is_unruly && drawn
    };
    let kinds = [
        ReplyFault::Drop,
        ReplyFault::Reorder,
        ReplyFault::Rename,
        ReplyFault::Duplicate,
        ReplyFault::Mix,
        ReplyFault::Wrap,
        ReplyFault::Truncate,
    ];
    let [drops, reorders, renames, duplicates, mixes, wraps, truncates] = kinds.map(&mut has);
    if drops {
        answers.retain(|_| rng.random::<f64>() >= FAULT_RATE);
    }
    if reorders {
        for last in (1..answers.len()).rev() {
            answers.swap(last, rng.random_range(0..=last));
        }
    }
    if renames {
        for answer in &mut answers {
            if rng.random::<f64>() < FAULT_RATE / 2.0 {
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
        true => mixed(format, &answers, layout, rng),
        false => layout.write(format, &answers),
    };
    if wraps {
        text = wrapped(&text, rng);
    }
    if fault == ReplyFault::Think {
        text = format!("<think>\n{}\n</think>\n\n{text}", thought(format, &answers, layout));
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

/// Inserts copies of some answers anywhere, or only `behind` the originals; with `other`, the copies have
/// the values of another answer.
fn insert_copies(answers: &mut Vec<ItemAnswer>, other: bool, behind: bool, rng: &mut ChaCha8Rng) {
    for number in 0..answers.len() {
        if rng.random::<f64>() >= FAULT_RATE {
            continue;
        }
        let mut copy = answers[number].clone();
        if other {
            copy.values = answers[rng.random_range(0..answers.len())].values.clone();
        }
        let own = answers.iter().position(|answer| answer.id == copy.id).unwrap_or(number);
        let position = rng.random_range(if behind { own + 1 } else { 0 }..=answers.len());
        answers.insert(position, copy);
    }
}

/// Writes another format than the requested one, or two formats one after the other.
fn mixed(
    format: ReplyFormat,
    answers: &[ItemAnswer],
    layout: &ReplyLayout<'_>,
    rng: &mut ChaCha8Rng,
) -> String {
    let one = ReplyFormat::ALL[rng.random_range(0..ReplyFormat::ALL.len())];
    if rng.random::<bool>() {
        return layout.write(one, answers);
    }
    let (first, second) = answers.split_at(rng.random_range(0..=answers.len()));
    format!("{}\n{}", layout.write(format, first), layout.write(one, second))
}

/// Writes reasoning about each item, with drafts that have the values of another item.
fn thought(format: ReplyFormat, answers: &[ItemAnswer], layout: &ReplyLayout<'_>) -> String {
    let mut drafts = answers.to_vec();
    let mut text = String::new();
    for (number, draft) in drafts.iter_mut().enumerate() {
        let other = &answers[(number + 1) % answers.len()];
        text.push_str(&format!("There is {{\"id\":\"{}\",\"data\":\"…\"}}.\n", draft.id));
        draft.values.clone_from(&other.values);
    }
    format!("{text}Perhaps:\n{}\nNo, that is wrong.", layout.write(format, &drafts))
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
