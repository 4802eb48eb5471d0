//! Progress of a run on standard error.

use bakeoff_core::{Event, NanoDollars, PoolState, RunPlan, Status, one_line, printable};
use bakeoff_report::pool_line;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Interval of progress lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Interval at which an idle bar is redrawn, so that its clock advances.
const TICK: Duration = Duration::from_millis(500);

/// Counters of a run, displayed as a bar on a terminal and as periodic lines elsewhere.
pub(crate) struct ProgressDisplay {
    bar: ProgressBar,
    prints_lines: bool,
    last_line: Instant,
    total: u64,
    counts: Counts,
    /// Latest state of each pool, by model.
    pools: BTreeMap<String, PoolState>,
}

#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    errors: u64,
    retries: u64,
    cost: NanoDollars,
    last_retry: Option<String>,
}

impl ProgressDisplay {
    /// Creates a display that shows nothing if `is_hidden` and no bar if `is_plain`.
    pub(crate) fn new(plan: &RunPlan, is_hidden: bool, is_plain: bool) -> ProgressDisplay {
        let has_bar = std::io::stderr().is_terminal() && !is_plain && !is_hidden;
        let target = if has_bar {
            ProgressDrawTarget::stderr_with_hz(8)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(plan.total), target);
        if let Ok(style) = ProgressStyle::with_template(
            "{bar:24} {pos}/{len}  {msg}  {elapsed} (left: {eta}){prefix}",
        ) {
            bar.set_style(style.progress_chars("=> "));
        }
        if has_bar {
            bar.enable_steady_tick(TICK);
        }
        ProgressDisplay {
            bar,
            prints_lines: !has_bar && !is_hidden,
            last_line: Instant::now(),
            total: plan.total,
            counts: Counts::default(),
            pools: BTreeMap::new(),
        }
    }

    /// Updates the display; returns a line if one is due.
    pub(crate) fn update(&mut self, event: &Event) -> Option<String> {
        let counts = &mut self.counts;
        match event {
            Event::TrialFinished { result } => {
                match result.status {
                    Status::Passed => counts.passed += 1,
                    Status::Failed => counts.failed += 1,
                    Status::Error => counts.errors += 1,
                    Status::Skipped => {}
                }
                counts.cost += result.attempt.cost.unwrap_or_default();
                counts.last_retry = None;
            }
            Event::Retry { delay_ms, reason, .. } => {
                counts.retries += 1;
                let reason = one_line(reason);
                counts.last_retry = Some(match delay_ms {
                    0 => format!("requeued: {reason}"),
                    ms => format!("retrying in {:.1} s: {reason}", *ms as f64 / 1e3),
                });
            }
            Event::Pool { pool } => {
                self.pools.insert(pool.model.clone(), pool.clone());
            }
            Event::RunResumed { done, .. } => {
                // The remaining time depends on the speed of this process only.
                self.bar.set_position(*done);
                self.bar.reset_eta();
                return None;
            }
            _ => return None,
        }
        // Before the message: setting it redraws the bar, and both numbers should agree.
        if matches!(event, Event::TrialFinished { .. }) {
            self.bar.inc(1);
        }
        if !self.bar.is_hidden() {
            self.bar.set_message(printable(&counts.describe()).into_owned());
            if matches!(event, Event::Pool { .. }) {
                self.bar.set_prefix(self.pool_lines());
            }
        }
        let is_due = self.prints_lines && self.last_line.elapsed() >= LINE_INTERVAL;
        is_due.then(|| {
            self.last_line = Instant::now();
            let (position, counts) = (self.bar.position(), self.counts.describe());
            format!("{position}/{}  {counts}{}", self.total, self.pool_lines())
        })
    }

    /// Returns a line per pool, to append to the first line.
    fn pool_lines(&self) -> String {
        self.pools.values().map(|pool| format!("\n  {}", pool_line(pool))).collect()
    }

    /// Returns a printer that keeps the bar intact.
    pub(crate) fn printer(&self) -> ProgressPrinter {
        ProgressPrinter::Bar(self.bar.clone())
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Printer of lines on standard error that keeps a progress display intact.
#[derive(Debug, Clone, Default)]
pub(crate) enum ProgressPrinter {
    /// No display.
    #[default]
    Stderr,
    /// Above a bar, if it is visible.
    Bar(ProgressBar),
    /// Above several bars.
    Bars(MultiProgress),
}

impl ProgressPrinter {
    pub(crate) fn print(&self, line: &str) {
        let line = &*printable(line);
        match self {
            ProgressPrinter::Bar(bar) if !bar.is_hidden() => bar.println(line),
            ProgressPrinter::Bars(bars) if !bars.is_hidden() => {
                // Standard error may be closed.
                let _ = bars.println(line);
            }
            _ => {
                let _ = writeln!(anstream::stderr(), "{line}");
            }
        }
    }
}

impl Counts {
    fn describe(&self) -> String {
        let mut text =
            format!("{} passed, {} failed, {} errors", self.passed, self.failed, self.errors);
        if self.retries > 0 {
            text.push_str(&format!(", {} retries", self.retries));
        }
        if self.cost > NanoDollars::default() {
            text.push_str(&format!(", {}", self.cost));
        }
        if let Some(retry) = &self.last_retry {
            text.push_str(&format!(", {retry}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_core::TrialKey;

    #[test]
    fn resumed_run_starts_at_the_finished_trials() {
        let plan = RunPlan {
            suite: "s".to_owned(),
            targets: Vec::new(),
            cases: 5,
            trials: 2,
            total: 10,
            seed: 0,
        };
        let mut progress = ProgressDisplay::new(&plan, false, true);
        let event = Event::RunResumed { schema_version: 1, run_id: "r".into(), plan, done: 7 };
        assert_eq!(progress.update(&event), None);
        assert_eq!(progress.bar.position(), 7);
    }

    #[test]
    fn reason_of_a_retry_is_on_one_line() {
        let plan = RunPlan {
            suite: "s".to_owned(),
            targets: Vec::new(),
            cases: 1,
            trials: 1,
            total: 1,
            seed: 0,
        };
        let mut progress = ProgressDisplay::new(&plan, false, true);
        progress.last_line -= LINE_INTERVAL;
        let event = Event::Retry {
            key: TrialKey { target: "t".into(), case: "c".into(), trial: 1 },
            delay_ms: 1500,
            reason: "over\r\n\u{1b}[2Jloaded\n".to_owned(),
        };
        let line = progress.update(&event).unwrap();
        assert!(line.ends_with(", retrying in 1.5 s: over [2Jloaded"), "{line:?}");
    }

    #[test]
    fn without_a_terminal_a_line_shows_the_pools() {
        let plan = RunPlan {
            suite: "s".to_owned(),
            targets: Vec::new(),
            cases: 5,
            trials: 1,
            total: 5,
            seed: 0,
        };
        let pool = |model: &str| PoolState {
            model: model.to_owned(),
            in_flight: 2,
            limit: Some(8),
            waiting: 3,
            backing_off: 0,
            answers_per_second: 1.5,
            answered: 7,
            rejected: 1,
            failed: 0,
            blocked_ms: Some(30_000),
            next_ms: None,
            binding: Some("cap 8".to_owned()),
            stopped: None,
        };
        let mut progress = ProgressDisplay::new(&plan, false, true);
        assert_eq!(progress.update(&Event::Pool { pool: pool("b") }), None, "not due yet");
        progress.last_line -= LINE_INTERVAL;
        let line = progress.update(&Event::Pool { pool: pool("a") }).unwrap();
        insta::assert_snapshot!(line, @r"
        0/5  0 passed, 0 failed, 0 errors
          a  2/8 in flight · 1.5/s · 1 throttled · 3 waiting · cap 8
          b  2/8 in flight · 1.5/s · 1 throttled · 3 waiting · cap 8
        ");
        assert_eq!(progress.update(&Event::Pool { pool: pool("a") }), None, "printed just now");
        let mut hidden = ProgressDisplay::new(&plan, true, true);
        hidden.last_line -= LINE_INTERVAL;
        assert_eq!(hidden.update(&Event::Pool { pool: pool("a") }), None);
    }
}
