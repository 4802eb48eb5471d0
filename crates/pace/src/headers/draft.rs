//! The header fields of the IETF's draft: `RateLimit: "name";r=50;t=30` says what is left of the
//! policies that `RateLimit-Policy: "name";q=100;w=60` describes.

use super::{number, reading};
use crate::{Dimension, QuotaReading};
use std::time::Duration;

/// The limits that have a policy and are possible. The policy's window has no place in a reading.
pub(super) fn readings<'a>(
    limits: &'a str,
    policies: &'a str,
) -> impl Iterator<Item = QuotaReading> + use<'a> {
    split(limits, ',').filter_map(move |limit| {
        let named = |policy: &&str| names(policy).any(|one| names(limit).any(|two| one == two));
        let policy = split(policies, ',').find(named)?;
        let quota = number(parameter(policy, "q")?)?;
        let remaining = number(parameter(limit, "r")?)?;
        let reset = parameter(limit, "t")
            .and_then(number)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .filter(|reset| !reset.is_zero())
            .map(|reset| (reset, true));
        reading(dimension(limit, policy)?, quota, remaining, reset)
    })
}

/// What is counted: the unit where there is one, else what the name suggests.
fn dimension(limit: &str, policy: &str) -> Option<Dimension> {
    let unit = parameter(policy, "qu").map(|unit| unit.trim_matches('"'));
    let what = unit.or_else(|| names(limit).next())?.to_ascii_lowercase();
    let has = |word: &str| what.contains(word);
    if has("token") {
        return Some(match (has("input"), has("output")) {
            (true, false) => Dimension::InputTokens,
            (false, true) => Dimension::OutputTokens,
            _ => Dimension::Tokens,
        });
    }
    // Bytes and whatever else a unit may be are nothing that is counted here.
    unit.is_none_or(|unit| unit == "requests").then_some(Dimension::Requests)
}

/// The names in an item: one by the draft, but Hugging Face puts the kind of window before it.
fn names(item: &str) -> impl Iterator<Item = &str> {
    split(item, ';').filter(|part| part.starts_with('"') || !part.contains('='))
}

fn parameter<'a>(item: &'a str, key: &str) -> Option<&'a str> {
    split(item, ';')
        .filter(|part| !part.starts_with('"'))
        .find_map(|part| part.split_once('=').filter(|(name, _)| *name == key))
        .map(|(_, value)| value)
}

/// The parts between separators that are not in quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |character: char| {
        quoted ^= character == '"';
        character == separator && !quoted
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}
