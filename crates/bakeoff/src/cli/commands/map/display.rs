//! Progress of a job on standard error, and its JSON events.

use crate::printer::{Printer, count};
use crate::progress::ProgressPrinter;
use bakeoff_map::{JobOutcome, JobPlan, JobProgress, StopReason};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval of progress lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Interval of `progress` events.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which an idle bar is redrawn, so that its clock advances.
const TICK: Duration = Duration::from_millis(500);

/// Display of a job: a bar on a terminal, periodic lines or events elsewhere.
pub(super) struct JobDisplay<'p> {
    bar: ProgressBar,
    printer: &'p Printer,
    last_line: Instant,
    started: Instant,
    /// Rows that an earlier process has answered; they do not count for the speed.
    answered_before: u64,
}

impl<'p> JobDisplay<'p> {
    pub(super) fn new(plan: &JobPlan, printer: &'p Printer) -> JobDisplay<'p> {
        let has_bar = std::io::stderr().is_terminal() && printer.shows_progress();
        let target = match has_bar {
            true => ProgressDrawTarget::stderr_with_hz(8),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(plan.rows), target);
        let template = "{bar:24} {pos}/{len} rows  {msg}  {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        if has_bar {
            bar.enable_steady_tick(TICK);
        }
        let now = Instant::now();
        JobDisplay { bar, printer, last_line: now, started: now, answered_before: plan.answered }
    }

    /// Returns a printer that keeps the bar intact.
    pub(super) fn printer(&self) -> ProgressPrinter {
        ProgressPrinter::Bar(self.bar.clone())
    }

    pub(super) fn update(&mut self, progress: &JobProgress) {
        if !self.bar.is_hidden() {
            self.bar.set_message(format!("{}{}", figures(progress), self.time_left(progress)));
            self.bar.set_position(progress.settled);
            return;
        }
        let interval = if self.printer.is_json() { EVENT_INTERVAL } else { LINE_INTERVAL };
        if self.last_line.elapsed() < interval {
            return;
        }
        self.last_line = Instant::now();
        self.printer.event("progress", progress_to_json(progress));
        self.printer.message(format!(
            "{}/{} rows  {}{}",
            progress.settled,
            progress.rows,
            figures(progress),
            self.time_left(progress)
        ));
    }

    /// Estimates the remaining time from the speed so far.
    fn time_left(&self, progress: &JobProgress) -> String {
        let settled = progress.settled.saturating_sub(self.answered_before);
        let rest = progress.rows.saturating_sub(progress.settled);
        if settled == 0 || rest == 0 {
            return String::new();
        }
        let seconds = self.started.elapsed().as_secs_f64() * rest as f64 / settled as f64;
        format!("  left: {}", HumanDuration(Duration::from_secs_f64(seconds.min(1e9))))
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn figures(progress: &JobProgress) -> String {
    let mut text = count(progress.requests, "request");
    if progress.cached > 0 {
        text.push_str(&format!(", {} cached", progress.cached));
    }
    if progress.reasks > 0 {
        text.push_str(&format!(" ({} re-asked)", progress.reasks));
    }
    if progress.in_flight > 0 {
        text.push_str(&format!(", {} in flight", progress.in_flight));
    }
    if progress.errors > 0 {
        text.push_str(&format!(", {}", count(progress.errors, "error")));
    }
    if let Some(cost) = progress.cost.filter(|cost| !cost.is_zero()) {
        text.push_str(&format!(", {cost}"));
    }
    text
}

/// Returns the fields of a `progress` event.
fn progress_to_json(progress: &JobProgress) -> Value {
    json!({
        "rows": progress.rows,
        "done": progress.done,
        "errors": progress.errors,
        "finished": progress.settled,
        "requests": progress.requests,
        "cached": progress.cached,
        "reasked": progress.reasks,
        "in_flight": progress.in_flight,
        "cost_nanodollars": progress.cost,
        "usage": progress.usage,
    })
}

/// Returns the fields of the `planned` event.
pub(super) fn plan_to_json(plan: &JobPlan) -> Value {
    json!({
        "rows": plan.rows,
        "requests": plan.requests,
        "expected_cost_nanodollars": plan.expected_cost,
        "pack": plan.pack,
        "reason": plan.choice.map(|choice| choice.binding.to_string()),
        "answered": plan.answered,
        "resumed": plan.is_resumed,
        "retry": plan.is_retry,
    })
}

/// Returns the result of a job as the fields of the `done` event.
pub(super) fn result_to_json(finished: &JobOutcome, out: &Path) -> Value {
    let mut fields = progress_to_json(&finished.progress);
    fields["out"] = json!(out.display().to_string());
    fields["stop"] = match &finished.stop {
        None => json!(null),
        Some(StopReason::Interrupted) => json!("interrupted"),
        Some(StopReason::Budget) => json!("budget"),
        Some(StopReason::ModelUnavailable(reason)) => json!({ "rejected": reason }),
    };
    fields["rejected"] = (finished.unavailable_models.iter())
        .map(|(model, reason)| json!({ "model": model, "reason": reason }))
        .collect();
    fields
}
