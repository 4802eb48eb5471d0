//! Text of a comparison.

use crate::failures::plain;
use bakeoff_core::{Comparison, ComparisonMetric, Finding, UnpairedCases};

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
            interval(comparison),
        ),
        format!("{} ({}, p = {})", finding(comparison), comparison.test, p_value(comparison)),
        format!("cases: {} better, {} worse", comparison.gained, comparison.lost),
    ];
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
    if let Some(total) = comparison.total_cost_ratio {
        let each = comparison.cost_ratio.map_or_else(String::new, |ratio| {
            let (low, high) = (ratio.interval.low, ratio.interval.high);
            format!("; per case × {:.2} ({low:.2} – {high:.2})", ratio.mean)
        });
        lines.push(format!("cost: × {total:.2}{each}"));
    }
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

fn finding(comparison: &Comparison) -> &'static str {
    match comparison.finding {
        Finding::Better => "the candidate is better",
        Finding::Worse => "the candidate is worse",
        Finding::NoDifference => "no difference found",
    }
}

fn p_value(comparison: &Comparison) -> String {
    let format = |p: f64| if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") };
    let (plain, adjusted) = (format(comparison.p_value), format(comparison.adjusted_p_value));
    if plain == adjusted { plain } else { format!("{plain}, adjusted {adjusted}") }
}

fn interval(comparison: &Comparison) -> String {
    match comparison.interval {
        Some(interval) => {
            format!(" (95 % interval {} to {})", points(interval.low), points(interval.high))
        }
        None => " (too few cases for an interval)".to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn points(difference: f64) -> String {
    format!("{:+.1} points", difference * 100.0)
}
