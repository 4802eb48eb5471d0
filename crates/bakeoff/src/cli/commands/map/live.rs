//! What is shown while a job goes on: a bar on a terminal, now and then a line elsewhere.

use super::words;
use crate::printer::{Printer, count};
use crate::progress::Voice;
use bakeoff_core::ExitCode;
use bakeoff_map::{JobOutcome, JobPlan, JobProgress};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a line is written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// How often an event is written.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);

/// How often the bar is drawn when nothing happens.
const TICK: Duration = Duration::from_millis(500);

pub(super) struct Live<'p> {
    bar: ProgressBar,
    printer: &'p Printer,
    json: bool,
    last: Instant,
    started: Instant,
    /// Rows that were answered before; they take no time.
    before: u64,
}

impl<'p> Live<'p> {
    pub(super) fn new(plan: &JobPlan, json: bool, printer: &'p Printer) -> Live<'p> {
        let is_shown = std::io::stderr().is_terminal() && !json && !printer.quiet;
        let target = match is_shown {
            true => ProgressDrawTarget::stderr_with_hz(8),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(plan.rows), target);
        let template = "{bar:24} {pos}/{len} rows  {msg}  {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        if is_shown {
            bar.enable_steady_tick(TICK);
        }
        let now = Instant::now();
        Live { bar, printer, json, last: now, started: now, before: plan.answered }
    }

    pub(super) fn voice(&self) -> Voice {
        Voice::new(self.bar.clone())
    }

    pub(super) fn note(&mut self, progress: &JobProgress) {
        if !self.bar.is_hidden() {
            self.bar.set_message(format!("{}{}", figures(progress), self.left(progress)));
            self.bar.set_position(progress.settled);
            return;
        }
        let interval = if self.json { EVENT_INTERVAL } else { LINE_INTERVAL };
        if self.last.elapsed() < interval {
            return;
        }
        self.last = Instant::now();
        match self.json {
            true => self.printer.json(&event("progress", progress)),
            false => self.printer.talk(format!(
                "{}/{} rows  {}{}",
                progress.settled,
                progress.rows,
                figures(progress),
                self.left(progress)
            )),
        }
    }

    /// How long the rest will take, at the speed so far.
    fn left(&self, progress: &JobProgress) -> String {
        let made = progress.settled.saturating_sub(self.before);
        let rest = progress.rows.saturating_sub(progress.settled);
        if made == 0 || rest == 0 {
            return String::new();
        }
        let seconds = self.started.elapsed().as_secs_f64() * rest as f64 / made as f64;
        format!("  left: {}", HumanDuration(Duration::from_secs_f64(seconds.min(1e9))))
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

pub(super) fn figures(progress: &JobProgress) -> String {
    let mut text = count(progress.requests, "request");
    if progress.cached > 0 {
        text.push_str(&format!(", {} from the cache", progress.cached));
    }
    if progress.reasks > 0 {
        text.push_str(&format!(" ({} again)", progress.reasks));
    }
    if progress.in_flight > 0 {
        text.push_str(&format!(", {} under way", progress.in_flight));
    }
    if progress.errors > 0 {
        text.push_str(&format!(", {}", count(progress.errors, "error")));
    }
    if let Some(cost) = progress.cost.filter(|cost| !cost.is_zero()) {
        text.push_str(&format!(", {cost}"));
    }
    text
}

fn event(name: &str, progress: &JobProgress) -> Value {
    json!({
        "event": name,
        "rows": progress.rows,
        "done": progress.done,
        "errors": progress.errors,
        "settled": progress.settled,
        "requests": progress.requests,
        "cached": progress.cached,
        "asked_again": progress.reasks,
        "under_way": progress.in_flight,
        "cost_nanodollars": progress.cost,
        "usage": progress.usage,
    })
}

/// What is going to happen.
pub(super) fn planned(plan: &JobPlan) -> Value {
    json!({
        "event": "planned",
        "rows": plan.rows,
        "requests": plan.requests,
        "expected_cost_nanodollars": plan.expected_cost,
        "pack": plan.pack,
        "why": plan.choice.map(|choice| choice.binding.to_string()),
        "answered": plan.answered,
        "resumed": plan.is_resumed,
        "again": plan.is_retry,
    })
}

/// What it came to.
pub(super) fn done(finished: &JobOutcome, out: &Path, code: ExitCode) -> Value {
    let mut event = event("done", &finished.progress);
    event["out"] = json!(out.display().to_string());
    event["stop"] = words(&finished.stop);
    event["refused"] = (finished.unavailable_models.iter())
        .map(|(model, reason)| json!({ "model": model, "reason": reason }))
        .collect();
    event["exit_code"] = json!(code.code());
    event
}
