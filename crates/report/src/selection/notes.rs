//! Findings of a search in words: winner, confidence, equivalents, costs.

use super::table::search_cost;
use bakeoff_core::NanoDollars;
use bakeoff_select::{RankedCombination, SearchLimit, SearchOutcome};

/// Maximum number of equivalents that are named; the ranking marks all of them.
const MAX_NAMED: usize = 5;

/// Returns the findings, one line each: the winner, what the confidence means, equivalents, the gap to the next, costs,
/// savings and the reason to stop.
pub fn selection_notes(selection: &SearchOutcome) -> Vec<String> {
    let Some(winner) = selection.ranked(selection.winner) else { return Vec::new() };
    let mut notes = vec![format!("best: {}", winner.name)];
    if let Some(confidence) = selection.confidence {
        let percent = 100.0 * round_down(confidence);
        // Selections of older versions have no claim.
        let claim = selection.claim.as_deref().unwrap_or("no combination is better on these cases");
        let scope =
            if has_unmeasured(selection) { "among the measured combinations, " } else { "" };
        notes.push(format!("confidence: {scope}{claim}: {percent:.1} % sure"));
    }
    notes.extend(unmeasured(selection));
    notes.extend(equivalents(selection));
    notes.extend(next(selection));
    notes.extend(cost(selection, winner));
    notes.push(format!(
        "cells: {} of {} ({:.0} %); spent: {}",
        selection.cells,
        selection.cells_of,
        100.0 * selection.cells as f64 / selection.cells_of.max(1) as f64,
        search_cost(selection.spent, selection.unknown_costs),
    ));
    notes.extend(savings(selection));
    notes.push(format!("reason to stop: {}", selection.reason));
    let count = selection.eliminations.len();
    if count > 0 {
        let noun = if count == 1 { "combination" } else { "combinations" };
        notes.push(format!("{count} {noun} eliminated; see selection.json for details"));
    }
    if selection.stopped.is_some_and(|limit| limit != SearchLimit::Halted) {
        notes.push("budget exhausted; a larger budget may change the result".to_owned());
    }
    if selection.ranking.iter().any(RankedCombination::is_adjusted) {
        notes.push(
            "~ adjusted: expected mean over all cases, by a model of the scores on shared cases; the ranking is by it"
                .to_owned(),
        );
    }
    notes
}

fn has_unmeasured(selection: &SearchOutcome) -> bool {
    selection.ranking.iter().any(|ranked| ranked.score.is_none())
}

/// Names the combinations of which all trials ended in errors.
fn unmeasured(selection: &SearchOutcome) -> Option<String> {
    let without = selection.ranking.iter().filter(|ranked| ranked.score.is_none());
    let names: Vec<&str> = without.map(|ranked| ranked.name.as_str()).collect();
    let more = match names.len() {
        0 => return None,
        count if count > MAX_NAMED => format!(" and {} more", count - MAX_NAMED),
        _ => String::new(),
    };
    let shown = names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    Some(format!("not measured, because all trials ended in errors: {shown}{more}"))
}

/// Names the combinations that the cases do not distinguish from the winner.
fn equivalents(selection: &SearchOutcome) -> Option<String> {
    let ranked: Vec<&RankedCombination> =
        selection.equivalents.iter().filter_map(|combo| selection.ranked(*combo)).collect();
    let cases = || ranked.iter().filter_map(|ranked| Some(ranked.gap?.cases));
    let (least, most) = (cases().min()?, cases().max()?);
    let on = match least == most {
        true => format!("these {most} cases"),
        false => format!("{least} to {most} shared cases"),
    };
    let names: Vec<&str> =
        ranked.iter().take(MAX_NAMED).map(|ranked| ranked.name.as_str()).collect();
    let more = match ranked.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more, marked `equivalent`"),
    };
    Some(format!("not distinguishable on {on}: {}{more}", names.join(", ")))
}

/// Describes the gap to the first combination that is worse than the winner.
fn next(selection: &SearchOutcome) -> Option<String> {
    let next = selection.ranked(selection.next?)?;
    let gap = next.gap?;
    let [low, high] = gap.interval;
    Some(format!(
        "next distinguishable: {}, worse by {:.3} (95 % interval {low:.3} – {high:.3}, {} shared cases)",
        next.name, gap.difference, gap.cases,
    ))
}

/// Compares the cost of the winner with that of its equivalents.
fn cost(selection: &SearchOutcome, winner: &RankedCombination) -> Option<String> {
    let own = winner.cost?;
    let mut costs: Vec<(NanoDollars, &str)> = (selection.equivalents.iter())
        .filter_map(|combo| selection.ranked(*combo))
        .filter_map(|ranked| Some((ranked.cost?, ranked.name.as_str())))
        .collect();
    costs.sort();
    let mut line = format!("cost: ${:.6} per task", own.as_dollars());
    let ratio = |other: NanoDollars| {
        let ratio = other.as_dollars() / own.as_dollars();
        match ratio {
            _ if own.is_zero() => format!("costs ${:.6}", other.as_dollars()),
            ratio if (0.995..1.005).contains(&ratio) => "costs the same".to_owned(),
            ratio => format!("costs {} times as much", significant(ratio)),
        }
    };
    match costs.last() {
        Some((most, _)) if *most < own => line.push_str("; no equivalent is more expensive"),
        Some((most, name)) => {
            line.push_str(&format!("; the most expensive equivalent ({name}) {}", ratio(*most)));
        }
        None => {}
    }
    match costs.first() {
        Some((least, _)) if *least >= own => line.push_str("; no equivalent is cheaper"),
        Some((least, name)) => {
            line.push_str(&format!("; the cheapest equivalent ({name}) {}", ratio(*least)));
        }
        None => {}
    }
    Some(line)
}

/// Describes what was not paid for.
fn savings(selection: &SearchOutcome) -> Option<String> {
    let unevaluated = selection.cells_of.saturating_sub(selection.cells);
    let avoided = selection.avoided.filter(|avoided| avoided.0 > 0).map(|avoided| {
        let amount = two_digits(avoided.as_dollars());
        format!("about ${amount} for {unevaluated} cells that were not evaluated")
    });
    let shared = (selection.saved.0 > 0)
        .then(|| format!("${:.6} by shared answers", selection.saved.as_dollars()));
    let parts: Vec<String> = [avoided, shared].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("saved: {}", parts.join(", ")))
}

/// Formats an estimated amount with two significant digits.
fn two_digits(amount: f64) -> String {
    let leading = if amount > 0.0 { amount.log10().floor() as i32 } else { 0 };
    let decimals = usize::try_from(1 - leading).unwrap_or(0).clamp(2, 9);
    format!("{amount:.decimals$}")
}

/// Formats a ratio with two significant digits.
fn significant(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 10.0 => format!("{ratio:.0}"),
        ratio if ratio >= 1.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.2}"),
    }
}

/// Rounds a probability down, so that it is not rounded up to certainty.
fn round_down(probability: f64) -> f64 {
    (probability * 1000.0).floor() / 1000.0
}
