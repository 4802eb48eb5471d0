//! The header fields of the IETF draft: `RateLimit: "name";r=50;t=30` gives the remainder of the
//! policy that `RateLimit-Policy: "name";q=100;w=60` describes.

use super::{number, reading};
use crate::{Dimension, QuotaReading};
use std::time::Duration;

/// Returns the valid limits that have a policy. The length of the policy's window is not used.
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

/// Returns the dimension, by the unit if there is one, else by the name.
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
    // Other units, such as bytes, have no dimension.
    unit.is_none_or(|unit| unit == "requests").then_some(Dimension::Requests)
}

/// Returns the names of an item: the draft has one, Hugging Face puts the kind of window before it.
fn names(item: &str) -> impl Iterator<Item = &str> {
    split(item, ';').filter(|part| part.starts_with('"') || !part.contains('='))
}

fn parameter<'a>(item: &'a str, key: &str) -> Option<&'a str> {
    split(item, ';')
        .filter(|part| !part.starts_with('"'))
        .find_map(|part| part.split_once('=').filter(|(name, _)| *name == key))
        .map(|(_, value)| value)
}

/// Splits at separators outside of quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |character: char| {
        quoted ^= character == '"';
        character == separator && !quoted
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}
