//! Text of a stored trial.

use crate::printer::count;
use bakeoff_core::{Attempt, CheckResult, NanoDollars, Status, TrialResult, Usage};
use bakeoff_history::{ExchangeMessage, JudgeRecord, StoredTrial, ToolCallRecord, TrialExchange};

/// Text of an unknown value.
const UNKNOWN: &str = "–";

/// Formats a trial in sections, each with a heading and an indented body.
pub(super) fn trial_text(trial: &StoredTrial) -> String {
    let (result, attempt) = (&trial.result, &trial.result.attempt);
    let nothing = TrialExchange::default();
    let exchange = trial.exchange.as_ref().ok().and_then(Option::as_ref);
    let exchange_or_nothing = exchange.unwrap_or(&nothing);
    let mut sections = vec![format!("{}\n{}", title(result), figures(attempt))];
    let prompt = match exchange {
        Some(TrialExchange { messages, .. }) => match messages.as_slice() {
            [only] if only.role == "user" => vec![message_body(only)],
            messages => messages.iter().map(message_text).collect(),
        },
        None => vec!["(not stored)".to_owned()],
    };
    sections.push(section("prompt", &prompt));
    sections.push(section("tools", &tool_texts(attempt, exchange_or_nothing)));
    let answer = if attempt.output.is_empty() { "(empty)" } else { &attempt.output };
    sections.push(section("answer", &[answer.to_owned()]));
    sections.push(section("standard error", std::slice::from_ref(&attempt.stderr)));
    let error = attempt.error.as_ref().map(|error| error.message.clone());
    sections.push(section("error", error.as_slice()));
    let checks: Vec<String> = result.checks.iter().map(check_text).collect();
    sections.push(section("checks", &checks));
    sections.extend(exchange_or_nothing.judging.iter().map(judge_text));
    sections.retain(|section| !section.is_empty());
    sections.join("\n\n")
}

fn title(result: &TrialResult) -> String {
    let status = match result.status {
        Status::Passed => "passed",
        Status::Failed => "failed",
        Status::Error => "error",
        Status::Skipped => "skipped",
    };
    let score = result.score.map_or_else(String::new, |score| format!(", score {}", number(score)));
    let key = &result.key;
    format!("{} / {} (trial {}): {status}{score}", key.target, key.case, key.trial)
}

/// Formats duration, tokens and cost; unknown values as a dash.
fn figures(attempt: &Attempt) -> String {
    let timing = &attempt.timing;
    let mut parts = vec![format!("{} ms", timing.latency_ms)];
    if timing.elapsed_ms > timing.latency_ms {
        parts.push(format!("{} ms with waiting", timing.elapsed_ms));
    }
    if timing.retries > 0 {
        parts.push(count(timing.retries.into(), "retried call"));
    }
    parts.push(tokens(attempt.usage));
    parts.push(cost(attempt.cost));
    if attempt.cached {
        parts.push("cached".to_owned());
    }
    if let Some(turns) = attempt.turns {
        parts.push(count(turns.into(), "turn"));
    }
    if let Some(code) = attempt.exit_code {
        parts.push(format!("exit code {code}"));
    }
    if attempt.judge_usage.is_some() {
        parts.push(format!(
            "judges: {}, {}",
            tokens(attempt.judge_usage),
            cost(attempt.judge_cost)
        ));
    }
    if attempt.dropped_bytes > 0 {
        parts.push(format!("{} bytes of output cut", attempt.dropped_bytes));
    }
    parts.join(" · ")
}

fn tokens(usage: Option<Usage>) -> String {
    match usage {
        Some(usage) => format!("{} input and {} output tokens", usage.prompt(), usage.output),
        None => format!("{UNKNOWN} tokens"),
    }
}

fn cost(cost: Option<NanoDollars>) -> String {
    cost.map_or_else(|| format!("cost {UNKNOWN}"), |cost| format!("cost {cost}"))
}

/// Formats a score with at most three decimals.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the heading and the indented entries; empty without text.
fn section(heading: &str, entries: &[String]) -> String {
    let text = entries.join("\n");
    if text.is_empty() {
        return String::new();
    }
    let indented = |line: &str| match line {
        "" => "\n".to_owned(),
        line => format!("\n  {line}"),
    };
    format!("{heading}{}", text.lines().map(indented).collect::<String>())
}

/// Formats a message with its step and role.
fn message_text(message: &ExchangeMessage) -> String {
    let step = message.step.as_ref().map_or_else(String::new, |step| format!("{step}, "));
    format!("[{step}{}] {}", message.role, message_body(message))
}

/// Formats the attachments and the text of a message.
fn message_body(message: &ExchangeMessage) -> String {
    let mut lines: Vec<String> =
        message.attachments.iter().map(|file| format!("[{file}]")).collect();
    lines.push(message.text.clone());
    lines.join("\n")
}

/// Formats the tool uses, with their results where these are stored.
fn tool_texts(attempt: &Attempt, exchange: &TrialExchange) -> Vec<String> {
    if exchange.tools.is_empty() {
        let uses = attempt.tool_uses.iter();
        return uses.map(|tool| format!("{} {}", tool.name, tool.arguments)).collect();
    }
    let text = |tool: &ToolCallRecord| {
        let head = format!("{} {}", tool.name, tool.arguments);
        let label = if tool.is_error { "failed: " } else { "" };
        match &tool.output {
            Some(output) => format!("{head}\n  → {label}{}", output.replace('\n', "\n    ")),
            None => head,
        }
    };
    exchange.tools.iter().map(text).collect()
}

fn check_text(check: &CheckResult) -> String {
    let status = if check.passed { "passed" } else { "failed" };
    let optional = if check.required { "" } else { " (not required)" };
    let message = match check.message.as_str() {
        "" => String::new(),
        message => format!(": {message}"),
    };
    format!("{status}  {}{optional}, score {}{message}", check.check, number(check.score))
}

fn judge_text(judge: &JudgeRecord) -> String {
    let prompt = judge.messages.iter().map(message_text);
    let entries: Vec<String> = prompt.chain([format!("[reply] {}", judge.reply)]).collect();
    section(&format!("judge {} of `{}`", judge.model, judge.check), &entries)
}
