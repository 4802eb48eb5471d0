//! Text of comparisons.

use crate::failures::plain;
use crate::table::{count, duration};
use bakeoff_core::{
    Comparison, ComparisonMetric, Finding, Interval, NanoDollars, ScoreComparison, Side,
    UnpairedCases, UnpairedTargets,
};
use comfy_table::{CellAlignment, Table, presets};

/// Smallest p-value that is shown as a number.
const MIN_PROBABILITY: f64 = 0.0001;

/// Decimals that a bound gets at most in addition to the usual ones.
const MORE_DECIMALS: usize = 3;

/// Returns a table with one line per comparison, for several that were made together.
pub fn comparison_table(comparisons: &[Comparison]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["target", "baseline", "candidate", "difference", "interval", "p", "finding"]);
    let first_run = comparisons.first().map(|comparison| &comparison.candidate.run_id);
    let is_one_run = comparisons.iter().all(|one| Some(&one.candidate.run_id) == first_run);
    for comparison in comparisons {
        let (baseline, candidate) = (&comparison.baseline, &comparison.candidate);
        let run = if is_one_run { String::new() } else { format!(" ({})", candidate.run_id) };
        let finding = match comparison.finding {
            Finding::Better => "better",
            Finding::Worse => "worse",
            Finding::NoDifference => "no difference found",
        };
        table.add_row([
            format!("{}{run}", candidate.target),
            percent(baseline.mean),
            percent(candidate.mean),
            points(comparison.difference),
            points_bounds(comparison.interval),
            probability(comparison.adjusted_p_value),
            if comparison.gate { finding.to_owned() } else { format!("({finding})") },
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if (1..=5).contains(&column.index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Returns the notes below the table of comparisons: the adjustment, targets without a counterpart and the
/// meaning of parentheses.
pub fn comparison_notes(comparisons: &[Comparison], unpaired: &[UnpairedTargets]) -> Vec<String> {
    let mut notes = Vec::new();
    if comparisons.len() > 1 {
        let number = comparisons.len();
        notes
            .push(format!("p and intervals are adjusted for {number} comparisons (Holm's method)"));
    }
    if comparisons.iter().any(|comparison| !comparison.gate) {
        notes.push("in parentheses: targets that do not gate".to_owned());
    }
    for run in unpaired {
        let names: Vec<String> = run.targets.iter().map(|name| plain(name.as_str())).collect();
        notes.push(format!("not compared, only in {}: {}", run.run_id, names.join(", ")));
    }
    notes
}

/// Returns the lines of a comparison.
pub fn comparison_lines(comparison: &Comparison) -> Vec<String> {
    let (baseline, candidate) = (&comparison.baseline, &comparison.candidate);
    let metric = match comparison.by {
        ComparisonMetric::Rates => "pass rate",
        ComparisonMetric::Verdicts => "share of passed cases",
    };
    let mut lines = vec![
        format!("baseline   {} ({})", baseline.target, baseline.run_id),
        format!("candidate  {} ({})", candidate.target, candidate.run_id),
        format!(
            "{metric} over {} cases: {} → {}, {}{}",
            comparison.cases,
            percent(baseline.mean),
            percent(candidate.mean),
            points(comparison.difference),
            interval(comparison.interval, comparison.level, points_bounds),
        ),
        format!(
            "{} ({}, {})",
            finding(comparison.finding),
            comparison.test,
            p_value(comparison.p_value, comparison.adjusted_p_value)
        ),
        format!("cases: {} better, {} worse", comparison.gained, comparison.lost),
    ];
    lines.extend(comparison.scores.iter().flat_map(score_lines));
    if let Some(effect) = comparison.effect {
        lines.push(format!("effect size d_z: {effect:.2}"));
    }
    // Rates cannot differ by 1 or more, so such a figure is not useful.
    let detectable = comparison.detectable.filter(|detectable| *detectable < 1.0);
    if let (Finding::NoDifference, Some(detectable)) = (comparison.finding, detectable) {
        lines.push(format!(
            "with {} cases, only differences of about {} are reliably detectable (80 % power)",
            comparison.cases,
            points(detectable).trim_start_matches('+'),
        ));
    }
    if let Some(needed) = comparison.needed {
        lines.push(format!(
            "detecting a difference of {} requires about {} cases",
            points(needed.difference).trim_start_matches('+'),
            needed.cases
        ));
    }
    if let Some(equivalence) = comparison.equivalence {
        let not = if equivalence.is_equivalent { "" } else { "not shown to be " };
        let by = match equivalence.p_value {
            Some(p) => format!("two one-sided t tests, p = {p:.4}"),
            None => "by the interval".to_owned(),
        };
        lines.push(format!(
            "{not}equal within {} ({by})",
            points(equivalence.margin).trim_start_matches('+'),
        ));
    }
    lines.extend(figure_lines(comparison));
    for (unpaired, side) in
        [(&comparison.only_baseline, "baseline"), (&comparison.only_candidate, "candidate")]
    {
        lines.extend(omitted_line(unpaired, side));
    }
    for change in &comparison.changes {
        lines.push(format!(
            "  {}: {} → {}",
            plain(change.case.as_str()),
            percent(change.baseline),
            percent(change.candidate)
        ));
    }
    lines
}

fn omitted_line(unpaired: &UnpairedCases, side: &str) -> Option<String> {
    let names: Vec<String> = unpaired.first.iter().map(|id| plain(id.as_str())).collect();
    let more = if unpaired.count as usize > names.len() { ", …" } else { "" };
    (unpaired.count > 0).then(|| {
        format!(
            "omitted, judged in the {side} only: {} ({}{more})",
            unpaired.count,
            names.join(", ")
        )
    })
}

/// Returns the lines about scores.
fn score_lines(scores: &ScoreComparison) -> [String; 2] {
    let ScoreComparison { baseline, candidate, difference, .. } = scores;
    [
        format!(
            "mean score: {baseline:.3} → {candidate:.3}, {difference:+.3}{}",
            interval(scores.interval, scores.level, score_bounds),
        ),
        format!(
            "by score, {} ({}, {})",
            finding(scores.finding),
            scores.test,
            p_value(scores.p_value, scores.adjusted_p_value)
        ),
    ]
}

fn finding(finding: Finding) -> &'static str {
    match finding {
        Finding::Better => "the candidate is better",
        Finding::Worse => "the candidate is worse",
        Finding::NoDifference => "no difference found",
    }
}

/// Returns the lines with cost, tokens and latency of both targets. An unknown value is a dash.
fn figure_lines(comparison: &Comparison) -> [String; 3] {
    let (baseline, candidate) = (&comparison.baseline, &comparison.candidate);
    let per_trial = |total: f64, side: &Side| total / side.trials.max(1) as f64;
    let tokens = |side: &Side| Some(per_trial(side.tokens? as f64, side));
    let line = |name: &str, texts: [String; 2], ratio: Option<f64>| {
        let ratio = ratio.filter(|ratio| *ratio > 0.0);
        let ratio = ratio.map_or_else(String::new, |ratio| format!(", × {ratio:.2}"));
        format!("{name}: {} → {}{ratio}", texts[0], texts[1])
    };
    let cost_text = |side: &Side| {
        let dollars = per_trial(side.cost_nanodollars?.as_dollars(), side);
        Some(NanoDollars::from_dollars(dollars)?.to_string())
    };
    let known = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let mut cost = line(
        "cost per trial",
        [baseline, candidate].map(|side| known(cost_text(side))),
        comparison.total_cost_ratio,
    );
    if let Some(ratio) = comparison.cost_ratio {
        let (low, high) = (ratio.interval.low, ratio.interval.high);
        cost += &format!("; per case × {:.2} ({low:.2} – {high:.2})", ratio.mean);
    }
    let token_text = |side: &Side| tokens(side).map(|tokens| count(tokens.round() as u64));
    let latency_text = |side: &Side| side.latency_p50_ms.map(duration);
    let latency = |side: &Side| side.latency_p50_ms.map(|ms| ms as f64);
    [
        cost,
        line(
            "tokens per trial",
            [baseline, candidate].map(|side| known(token_text(side))),
            quotient(tokens(baseline), tokens(candidate)),
        ),
        line(
            "latency p50",
            [baseline, candidate].map(|side| known(latency_text(side))),
            quotient(latency(baseline), latency(candidate)),
        ),
    ]
}

/// Returns the second value divided by the first; absent if one is unknown or the first is 0.
fn quotient(first: Option<f64>, second: Option<f64>) -> Option<f64> {
    first.filter(|first| *first > 0.0).zip(second).map(|(first, second)| second / first)
}

fn p_value(plain: f64, adjusted: f64) -> String {
    let relation = |p: f64| if p < MIN_PROBABILITY { "" } else { "= " };
    let show = |p: f64| format!("{}{}", relation(p), probability(p));
    let (plain, adjusted) = (show(plain), show(adjusted));
    if plain == adjusted {
        format!("p {plain}")
    } else {
        format!("p {plain}, adjusted p {adjusted}")
    }
}

fn probability(p: f64) -> String {
    if p < MIN_PROBABILITY { format!("< {MIN_PROBABILITY}") } else { format!("{p:.4}") }
}

fn interval(found: Interval, level: f64, bounds: fn(Interval) -> String) -> String {
    if found.low <= -1.0 && found.high >= 1.0 {
        return " (too few cases for an interval)".to_owned();
    }
    let confidence = format!("{:.2}", 100.0 * (1.0 - level));
    let confidence = confidence.trim_end_matches('0').trim_end_matches('.');
    format!(" ({confidence} % interval {})", bounds(found))
}

fn points_bounds(interval: Interval) -> String {
    let bound = |end: f64| signed(end * 100.0, 1);
    format!("{} to {} points", bound(interval.low), bound(interval.high))
}

fn score_bounds(interval: Interval) -> String {
    format!("{} to {}", signed(interval.low, 3), signed(interval.high, 3))
}

/// Formats a number with at least these decimals. A number other than 0 gets enough of them to show its sign.
fn signed(value: f64, decimals: usize) -> String {
    let shown = |decimals: usize| format!("{value:+.decimals$}");
    let is_zero = |text: &str| !text.contains(|c: char| ('1'..='9').contains(&c));
    let max = decimals + MORE_DECIMALS;
    let enough = (decimals..max).find(|decimals| value == 0.0 || !is_zero(&shown(*decimals)));
    shown(enough.unwrap_or(max))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn points(difference: f64) -> String {
    format!("{:+.1} points", difference * 100.0)
}
