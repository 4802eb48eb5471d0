//! What is shown while a search goes on.

use crate::printer::count;
use crate::progress::Voice;
use bakeoff_core::Event;
use bakeoff_report::ranking_table;
use bakeoff_select::{SearchProgress, Space, rank_combinations};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often a line is written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// How often the table is made anew.
const TABLE_INTERVAL: Duration = Duration::from_millis(250);

/// How often it is drawn when nothing happens.
const TICK: Duration = Duration::from_millis(500);

/// Combinations in the table.
const SHOWN: usize = 8;

/// A table of those that are ahead on a terminal, now and then a line elsewhere.
pub(super) struct Live {
    bar: ProgressBar,
    lines: bool,
    last: Option<Instant>,
    table: String,
    running: u64,
    ended: u64,
}

impl Live {
    pub(super) fn new(hidden: bool) -> Live {
        let terminal = std::io::stderr().is_terminal();
        let target = match terminal && !hidden {
            true => ProgressDrawTarget::stderr_with_hz(8),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed}  {msg}") {
            bar.set_style(style);
        }
        if terminal && !hidden {
            bar.enable_steady_tick(TICK);
        }
        Live {
            bar,
            lines: !terminal && !hidden,
            last: Some(Instant::now()),
            table: String::new(),
            running: 0,
            ended: 0,
        }
    }

    /// Somebody who may speak while the table is shown.
    pub(super) fn voice(&self) -> Voice {
        Voice::new(self.bar.clone())
    }

    /// Takes note of what happened; gives a line when one is due, however long a round takes.
    pub(super) fn note(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::TrialStarted { .. } => self.running += 1,
            Event::TrialFinished { .. } => {
                self.running = self.running.saturating_sub(1);
                self.ended += 1;
            }
            _ => {}
        }
        self.draw();
        let due = self.lines && self.last.is_none_or(|last| last.elapsed() >= LINE_INTERVAL);
        if !due || self.ended == 0 {
            return None;
        }
        self.last = Some(Instant::now());
        Some(format!("{} made, {} under way", count(self.ended, "cell"), self.running))
    }

    /// Takes note of a round; gives a line when one is due.
    pub(super) fn round(&mut self, space: &Space, progress: SearchProgress<'_>) -> Option<String> {
        let interval = if self.lines { LINE_INTERVAL } else { TABLE_INTERVAL };
        let due = self.last.is_none_or(|last| last.elapsed() >= interval);
        if !due || (!self.lines && self.bar.is_hidden()) {
            return None;
        }
        self.last = Some(Instant::now());
        let ranking = rank_combinations(space, progress.evidence, progress.eliminations);
        let gone = progress.eliminations.len();
        let mut line = format!(
            "round {}: {} of {}, ${:.6}",
            progress.rounds,
            progress.evidence.cells(),
            count(space.cells() as u64, "cell"),
            progress.evidence.spent().as_dollars(),
        );
        if gone > 0 {
            line.push_str(&format!(", {gone} given up"));
        }
        if self.lines {
            if let Some(ahead) = ranking.first() {
                let score = ahead.score.unwrap_or_default();
                line.push_str(&format!("; ahead: {} {score:.3} on {}", ahead.name, ahead.n));
            }
            return Some(line);
        }
        let table = ranking_table(&ranking, None, &[], SHOWN);
        self.table = format!("{line}\n{table}");
        self.draw();
        None
    }

    fn draw(&self) {
        if !self.bar.is_hidden() {
            let (ended, running) = (self.ended, self.running);
            let head = format!("{} made, {running} under way", count(ended, "cell"));
            self.bar.set_message(format!("{head}  {}", self.table));
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
