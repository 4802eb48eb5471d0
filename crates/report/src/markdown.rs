//! Markdown for pull requests and step summaries: a table and folded lists of failed cases.

use crate::details::Details;
use crate::table::{cases, cost, duration, has_scores, interval, rate, score};
use bakeoff_core::{CaseSummary, Status, Summary, TargetSummary, Verdict, one_line, printable};
use std::fmt::Write;

/// Maximum number of listed cases per target; the run's folder has all of them.
const MAX_CASES: usize = 50;

/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Formats a run as Markdown.
pub fn markdown(summary: &Summary, details: &Details) -> String {
    let mut page = format!("## {}: {}\n\n", escape(&summary.suite), verdict_label(summary.verdict));
    if !summary.rule.is_empty() {
        let _ = writeln!(page, "{}\n", escape(&summary.rule));
    }
    let has_scores = has_scores(summary);
    let (names, lines) = match has_scores {
        true => (" score | 95 % interval |", "---:|---:|"),
        false => ("", ""),
    };
    let _ = writeln!(
        page,
        "| target | verdict | pass rate | 95 % interval |{names} cases | flaky | errors | p50 | cost |\n\
         |---|---|---:|---:|{lines}---:|---:|---:|---:|---:|",
    );
    for target in &summary.targets {
        let latency = summary.stats.latency_p50_ms.get(&target.target);
        let gate = if target.gate { "" } else { " (no gate)" };
        let scores = match has_scores {
            true => format!(" {} |", score(target).join(" | ")),
            false => String::new(),
        };
        let _ = writeln!(
            page,
            "| {} | {}{gate} | {} | {} |{scores} {} | {} | {} | {} | {} |",
            escape(target.target.as_str()),
            verdict_label(target.verdict),
            rate(target),
            interval(target),
            cases(target),
            target.flaky,
            target.errors,
            latency.map_or_else(|| "–".to_owned(), |ms| duration(*ms)),
            cost(target),
        );
    }
    for target in &summary.targets {
        notes(target, &mut page);
        // Cases that an early stop made unnecessary neither passed nor failed.
        let did_not_pass = |case: &CaseSummary| {
            case.status != Status::Passed
                && (case.status != Status::Skipped || target.needless == 0)
        };
        list(target, "did not pass", did_not_pass, details, &mut page);
        let is_flaky = |case: &CaseSummary| {
            case.status == Status::Passed && case.flake_rate.is_some_and(|rate| rate > 0.0)
        };
        list(target, "passed and flaky", is_flaky, details, &mut page);
    }
    let _ = writeln!(page, "\n<sub>{}</sub>", escape(summary.run_id.as_str()));
    page
}

/// Formats the number of planned trials, if not all of them were judged.
fn planned(case: &CaseSummary) -> String {
    match case.counted < case.total_trials {
        true => format!(" of {} planned", case.total_trials),
        false => String::new(),
    }
}

/// Adds notes on the figures of the table.
fn notes(target: &TargetSummary, page: &mut String) {
    let name = escape(target.target.as_str());
    if target.saved > 0 {
        let _ = writeln!(
            page,
            "\n{name}: {} of {} trials were saved by early stops; its pass rate is biased, its \
             verdict is not.",
            target.saved, target.total_trials,
        );
    }
    if target.errors > 0 {
        let kinds: Vec<String> =
            target.errors_by_kind.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let _ = writeln!(page, "\n{name}: errors are not failures: {}.", escape(&kinds.join(", ")));
    }
}

fn list(
    target: &TargetSummary,
    label: &str,
    is_listed: impl Fn(&CaseSummary) -> bool,
    details: &Details,
    page: &mut String,
) {
    let listed: Vec<CaseSummary> = target.cases.iter().filter(is_listed).collect();
    if listed.is_empty() {
        return;
    }
    let noun = if listed.len() == 1 { "case" } else { "cases" };
    let _ = writeln!(
        page,
        "\n<details>\n<summary>{}: {} {noun} {label}</summary>\n\n| case | status | trials passed | \
         why |\n|---|---|---:|---|",
        html(target.target.as_str()),
        listed.len(),
    );
    for case in listed.iter().take(MAX_CASES) {
        let found = details.case(&target.target, &case.id);
        let reason =
            found.failed_trials.values().next().map_or(String::new(), |trial| {
                trial.reason.chars().take(MAX_REASON_CHARS).collect()
            });
        let _ = writeln!(
            page,
            "| {} | {} | {}/{}{} | {} |",
            escape(case.id.as_str()),
            status_label(case.status),
            case.pass_count,
            case.counted,
            planned(case),
            escape(&reason),
        );
    }
    if listed.len() > MAX_CASES {
        let _ = writeln!(page, "\n… and {} more.", listed.len() - MAX_CASES);
    }
    page.push_str("\n</details>\n");
}

fn verdict_label(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "✅ passed",
        Verdict::Failed => "❌ failed",
        Verdict::Inconclusive => "❔ inconclusive",
    }
}

fn status_label(status: Status) -> &'static str {
    match status {
        Status::Passed => "passed",
        Status::Failed => "failed",
        Status::Error => "inconclusive",
        Status::Skipped => "skipped",
    }
}

/// Escapes text inside HTML, where Markdown is not parsed.
fn html(text: &str) -> String {
    one_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Escapes text inside a table cell: no markup, cell separators or line breaks.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in printable(text).chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '#' | '@' | '$' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}
