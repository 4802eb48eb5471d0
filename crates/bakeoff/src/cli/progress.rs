//! What is shown while a run goes on.

use crate::printer::Printer;
use bakeoff_core::{Event, NanoDollars, PoolState, RunPlan, Status};
use bakeoff_report::pool_line;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often a line is written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// How often the bar is drawn when nothing happens.
const TICK: Duration = Duration::from_millis(500);

/// Counts what happens and shows it: a bar on a terminal, now and then a line elsewhere.
pub(crate) struct Progress {
    bar: ProgressBar,
    lines: bool,
    last_line: Instant,
    total: u64,
    counts: Counts,
    /// How the calls to each model are doing.
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

impl Progress {
    /// Shows nothing when `hidden`; never a bar when `plain`.
    pub(crate) fn new(plan: &RunPlan, hidden: bool, plain: bool) -> Progress {
        let terminal = std::io::stderr().is_terminal() && !plain;
        let target = if terminal && !hidden {
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
        if terminal && !hidden {
            // While nothing happens, the clock still runs.
            bar.enable_steady_tick(TICK);
        }
        Progress {
            bar,
            lines: !terminal && !hidden,
            last_line: Instant::now(),
            total: plan.total,
            counts: Counts::default(),
            pools: BTreeMap::new(),
        }
    }

    /// Takes note of what happened; gives a line when one is due.
    pub(crate) fn note(&mut self, event: &Event) -> Option<String> {
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
                counts.last_retry = Some(match delay_ms {
                    0 => format!("waiting for another turn: {reason}"),
                    ms => format!("retrying in {:.1} s: {reason}", *ms as f64 / 1e3),
                });
            }
            Event::Pool { pool } => {
                self.pools.insert(pool.model.clone(), pool.clone());
            }
            Event::RunResumed { done, .. } => {
                // How long is left is told by what is made now.
                self.bar.set_position(*done);
                self.bar.reset_eta();
                return None;
            }
            _ => return None,
        }
        // Before the words: each of them draws the bar, and the two numbers should agree.
        if matches!(event, Event::TrialFinished { .. }) {
            self.bar.inc(1);
        }
        if !self.bar.is_hidden() {
            self.bar.set_message(counts.describe());
            if matches!(event, Event::Pool { .. }) {
                self.bar.set_prefix(self.pool_lines());
            }
        }
        let due = self.lines && self.last_line.elapsed() >= LINE_INTERVAL;
        due.then(|| {
            self.last_line = Instant::now();
            let (position, counts) = (self.bar.position(), self.counts.describe());
            format!("{position}/{}  {counts}{}", self.total, self.pool_lines())
        })
    }

    /// A line for each pool, below the first.
    fn pool_lines(&self) -> String {
        self.pools.values().map(|pool| format!("\n  {}", pool_line(pool))).collect()
    }

    /// Something that can speak while the bar is shown.
    pub(crate) fn voice(&self) -> Voice {
        Voice(self.bar.clone())
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Speaks between the bar's lines, or plainly where there is no bar.
pub(crate) struct Voice(ProgressBar);

impl Voice {
    pub(crate) fn new(bar: ProgressBar) -> Voice {
        Voice(bar)
    }

    pub(crate) fn say(&self, line: &str) {
        if self.0.is_hidden() {
            Printer::default().talk(line);
        } else {
            self.0.println(line);
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

    #[test]
    fn what_was_done_before_counts() {
        let plan = RunPlan {
            suite: "s".to_owned(),
            targets: Vec::new(),
            cases: 5,
            trials: 2,
            total: 10,
            seed: 0,
        };
        let mut progress = Progress::new(&plan, false, true);
        let event = Event::RunResumed { schema_version: 1, run_id: "r".into(), plan, done: 7 };
        assert_eq!(progress.note(&event), None);
        assert_eq!(progress.bar.position(), 7);
    }

    #[test]
    fn where_there_is_no_terminal_a_line_tells_how_pools_are_doing() {
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
            resting: 0,
            answers_per_second: 1.5,
            answered: 7,
            rejected: 1,
            failed: 0,
            blocked_ms: Some(30_000),
            next_ms: None,
            stopped: None,
        };
        let mut progress = Progress::new(&plan, false, true);
        assert_eq!(progress.note(&Event::Pool { pool: pool("b") }), None, "it is not due");
        progress.last_line -= LINE_INTERVAL;
        let line = progress.note(&Event::Pool { pool: pool("a") }).unwrap();
        insta::assert_snapshot!(line, @r"
        0/5  0 passed, 0 failed, 0 errors
          a  2/8 in flight · 1.5/s · 1 throttled · 3 waiting · blocked for 30 s
          b  2/8 in flight · 1.5/s · 1 throttled · 3 waiting · blocked for 30 s
        ");
        assert_eq!(progress.note(&Event::Pool { pool: pool("a") }), None, "there was one just now");
        let mut hidden = Progress::new(&plan, true, true);
        hidden.last_line -= LINE_INTERVAL;
        assert_eq!(hidden.note(&Event::Pool { pool: pool("a") }), None);
    }
}
