//! Summary table of a run.

use bakeoff_core::{Interval, Score, Summary, TargetName, TargetSummary, Verdict};
use comfy_table::{CellAlignment, Table, presets};

/// Returns a table with one line per target, in the suite's order.
pub fn summary_table(summary: &Summary) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let has_scores = has_scores(summary);
    let mut header = vec!["target", "verdict", "pass rate", "95 % interval"];
    if has_scores {
        header.extend(["score", "95 % interval"]);
    }
    header.extend(["cases", "errors", "p50", "p95", "tokens", "cost"]);
    table.set_header(header);
    for target in &summary.targets {
        let latency = |map: &std::collections::BTreeMap<TargetName, u64>| {
            map.get(&target.target).map_or_else(|| "–".to_owned(), |ms| duration(*ms))
        };
        let mut row =
            vec![target.target.to_string(), verdict(target), rate(target), interval(target)];
        if has_scores {
            row.extend(score(target));
        }
        row.extend([
            cases(target),
            target.errors.to_string(),
            latency(&summary.stats.latency_p50_ms),
            latency(&summary.stats.latency_p95_ms),
            count(target.usage.total()),
            cost(target),
        ]);
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index >= 2 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Returns the notes below the table: pass@k, trials saved by early stops, flaky cases, limits of providers and
/// weak figures.
pub fn notes(summary: &Summary) -> Vec<String> {
    const MIN_CASES: u64 = 10;
    let mut notes = Vec::new();
    for target in &summary.targets {
        let name = &target.target;
        if let Some(k) = target.pass_k.last() {
            let format = |score: &bakeoff_core::Score| {
                let bound = |share: f64| percent(share.clamp(0.0, 1.0), 0);
                let (low, high) = (bound(score.interval.low), bound(score.interval.high));
                format!("{} ({low} – {high})", bound(score.mean))
            };
            notes.push(format!(
                "{name}: pass@{} {}, pass^{} {}",
                k.k,
                format(&k.any),
                k.k,
                format(&k.all)
            ));
        }
        if target.saved > 0 {
            let share = percent(target.saved as f64 / target.total_trials.max(1) as f64, 0);
            notes.push(format!(
                "{name}: early stops saved {} of {} trials ({share}); rates marked ~ are biased, \
                 verdicts are not",
                target.saved, target.total_trials,
            ));
        }
        if target.flaky > 0 {
            let verb = if target.flaky == 1 { "is" } else { "are" };
            notes.push(format!(
                "{name}: {} of {} cases {verb} flaky (some trials pass, some fail)",
                target.flaky, target.total_cases
            ));
        }
    }
    for pool in &summary.stats.pools {
        let limit = pool.limit.as_ref().map(|limit| format!("limit found: {limit}"));
        let noun = if pool.rejected == 1 { "request" } else { "requests" };
        let throttled = (pool.rejected > 0).then(|| format!("{} {noun} throttled", pool.rejected));
        let parts: Vec<String> = [throttled, limit].into_iter().flatten().collect();
        if !parts.is_empty() {
            notes.push(format!("{}: {}", pool.model, parts.join(", ")));
        }
    }
    let fewest = summary.targets.iter().map(|target| target.total_cases).min();
    if let Some(cases) = fewest.filter(|cases| (1..MIN_CASES).contains(cases)) {
        let verb = if cases == 1 { "case is" } else { "cases are" };
        notes.push(format!(
            "{cases} {verb} few: intervals are not ensured to cover 95 % below {MIN_CASES} cases; add cases, \
             not trials"
        ));
    }
    notes
}

fn verdict(target: &TargetSummary) -> String {
    let label = match target.verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "FAILED",
        Verdict::Inconclusive => "inconclusive",
    };
    if target.gate { label.to_owned() } else { format!("({label})") }
}

/// Whether the table shows scores: without a graded check, they only repeat the pass rate.
pub(crate) fn has_scores(summary: &Summary) -> bool {
    summary.targets.iter().any(|target| target.graded)
}

/// Formats the mean score and its interval.
pub(crate) fn score(target: &TargetSummary) -> [String; 2] {
    const DECIMALS: usize = 3;
    let Some(Score { mean, interval: Interval { low, high } }) = target.score else {
        return ["–".to_owned(), "–".to_owned()];
    };
    [format!("{mean:.DECIMALS$}"), format!("{low:.DECIMALS$} – {high:.DECIMALS$}")]
}

/// Formats the mean pass rate; `~` marks a rate that early stops bias.
pub(crate) fn rate(target: &TargetSummary) -> String {
    let mark = if target.stopped_early > 0 { "~" } else { "" };
    target
        .mean_pass_rate
        .map_or_else(|| "–".to_owned(), |rate| format!("{mark}{}", percent(rate, digits(target))))
}

/// Formats the number of passed and needed cases.
pub(crate) fn cases(target: &TargetSummary) -> String {
    let needed = target.total_cases - target.needless;
    let of =
        if target.needless > 0 { format!(" of {}", target.total_cases) } else { String::new() };
    format!("{}/{needed}{of}", target.passed)
}

pub(crate) fn interval(target: &TargetSummary) -> String {
    let digits = digits(target);
    target.interval.map_or_else(
        || "–".to_owned(),
        |interval| {
            format!("{} – {}", percent(interval.low, digits), percent(interval.high, digits))
        },
    )
}

/// Returns the number of decimals that the width of the interval justifies.
fn digits(target: &TargetSummary) -> usize {
    let width = target.interval.map_or(1.0, |interval| interval.high - interval.low);
    match width {
        0.03.. => 0,
        0.003.. => 1,
        _ => 2,
    }
}

/// Formats a share; only exact values appear as 0 % or 100 %.
pub(crate) fn percent(share: f64, digits: usize) -> String {
    let unit = 10_f64.powi(-(digits as i32));
    let shown = match share * 100.0 {
        percent if share > 0.0 && percent < unit / 2.0 => unit,
        percent if share < 1.0 && percent > 100.0 - unit / 2.0 => 100.0 - unit,
        percent => percent,
    };
    format!("{shown:.digits$} %")
}

/// Formats the cost of a target: a dash if it is unknown, a lower bound if a part of it is.
pub(crate) fn cost(target: &TargetSummary) -> String {
    let own = match (target.cost_nanodollars, target.unpriced) {
        (Some(known), 0) => known.to_string(),
        (Some(known), _) => format!("≥ {known}"),
        (None, _) => "–".to_owned(),
    };
    match target.judge_cost_nanodollars {
        judges if judges.is_zero() => own,
        judges => format!("{own} + {judges} for judges"),
    }
}

/// Formats milliseconds.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        _ => format!("{:.1} min", ms as f64 / 6e4),
    }
}

/// Formats a count.
pub(crate) fn count(number: u64) -> String {
    match number {
        0 => "–".to_owned(),
        1..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{:.0} k", number as f64 / 1e3),
        _ => format!("{:.1} M", number as f64 / 1e6),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bakeoff_core::{NanoDollars, RunStats, Usage};
    use std::collections::BTreeMap;

    /// Returns the summary of a run that failed.
    pub(crate) fn summary(targets: Vec<TargetSummary>) -> Summary {
        Summary {
            schema_version: 1,
            run_id: "run".into(),
            suite: "suite".to_owned(),
            verdict: Verdict::Failed,
            rule: String::new(),
            targets,
            stats: RunStats {
                latency_p50_ms: BTreeMap::from([("small".into(), 812)]),
                latency_p95_ms: BTreeMap::from([("small".into(), 2_040)]),
                ..RunStats::default()
            },
        }
    }

    pub(crate) fn target(name: &str, verdict: Verdict) -> TargetSummary {
        TargetSummary {
            target: name.into(),
            gate: true,
            verdict,
            rule: "2 of 4 cases pass, needs 4".to_owned(),
            suite_pass: verdict == Verdict::Passed,
            suite_pass_rate: 0.5,
            total_cases: 4,
            passed: 2,
            failed: 2,
            inconclusive: 0,
            trials_per_case: 1,
            pass_threshold: 1.0,
            total_trials: 4,
            pass_count: 2,
            counted: 4,
            errors: 0,
            errors_by_kind: BTreeMap::new(),
            skipped: 0,
            saved: 0,
            stopped_early: 0,
            needless: 0,
            flaky: 0,
            graded: false,
            min_score: None,
            score: None,
            pass_k: Vec::new(),
            mean_pass_rate: Some(0.5),
            interval: Some(Interval { low: 0.15, high: 0.85 }),
            usage: Usage { input: 12_000, output: 400, ..Usage::default() },
            cost_nanodollars: Some(NanoDollars(1_234_000)),
            judge_cost_nanodollars: NanoDollars::default(),
            unpriced: 0,
            cases: Default::default(),
        }
    }

    #[test]
    fn unknown_cost_is_a_dash() {
        let cost = |unpriced, tokens, nanodollars: Option<i64>| {
            let mut target = target("t", Verdict::Passed);
            target.counted = 2;
            target.unpriced = unpriced;
            target.usage = Usage { output: tokens, ..Usage::default() };
            target.cost_nanodollars = nanodollars.map(NanoDollars);
            super::cost(&target)
        };
        assert_eq!(cost(0, 5, Some(20_000_000)), "$0.020");
        assert_eq!(cost(0, 0, Some(20_000_000)), "$0.020");
        assert_eq!(cost(1, 5, Some(20_000_000)), "≥ $0.020");
        assert_eq!(cost(2, 5, None), "–");
        assert_eq!(cost(0, 0, None), "–");
    }

    #[test]
    fn table_has_a_row_per_target() {
        let mut broken = target("broken", Verdict::Inconclusive);
        broken.gate = false;
        broken.mean_pass_rate = None;
        broken.interval = None;
        broken.usage = Usage::default();
        broken.cost_nanodollars = None;
        let summary = summary(vec![target("small", Verdict::Failed), broken]);
        insta::assert_snapshot!(summary_table(&summary), @r#"
        target  verdict         pass rate  95 % interval  cases  errors     p50    p95  tokens     cost
        small   FAILED               50 %    15 % – 85 %    2/4       0  812 ms  2.0 s    12 k  $0.0012
        broken  (inconclusive)          –              –    2/4       0       –      –       –        –
        "#);
    }

    #[test]
    fn scores_are_shown_if_a_check_is_graded() {
        let mut graded = target("small", Verdict::Failed);
        graded.graded = true;
        let interval = Interval { low: 0.4, high: 0.75 };
        graded.score = Some(Score { mean: 0.6125, interval });
        let summary = summary(vec![graded, target("plain", Verdict::Passed)]);
        insta::assert_snapshot!(summary_table(&summary), @r#"
        target  verdict  pass rate  95 % interval  score  95 % interval  cases  errors     p50    p95  tokens     cost
        small   FAILED        50 %    15 % – 85 %  0.613  0.400 – 0.750    2/4       0  812 ms  2.0 s    12 k  $0.0012
        plain   passed        50 %    15 % – 85 %      –              –    2/4       0       –      –    12 k  $0.0012
        "#);
    }

    #[test]
    fn rounding_never_reaches_zero_or_one_hundred_percent() {
        assert_eq!(
            [percent(1.0, 0), percent(0.9997, 0), percent(0.9997, 2)],
            ["100 %", "99 %", "99.97 %"]
        );
        assert_eq!(
            [percent(0.0, 0), percent(0.0003, 0), percent(0.5, 1)],
            ["0 %", "1 %", "50.0 %"]
        );
    }

    #[test]
    fn durations_and_counts_are_rounded() {
        assert_eq!([duration(7), duration(1_500), duration(90_000)], ["7 ms", "1.5 s", "1.5 min"]);
        assert_eq!(
            [count(0), count(9_999), count(10_500), count(2_340_000)],
            ["–", "9999", "10 k", "2.3 M"]
        );
    }
}
