//! Progress of a search on standard error.

use crate::printer::count;
use crate::progress::ProgressPrinter;
use bakeoff_core::{Event, printable};
use bakeoff_report::{ranking_table, search_cost};
use bakeoff_select::{SearchProgress, Space, rank_combinations};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Interval of progress lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Interval at which the table is rendered.
const TABLE_INTERVAL: Duration = Duration::from_millis(250);

/// Interval at which an idle display is redrawn.
const TICK: Duration = Duration::from_millis(500);

/// Combinations in the table.
const MAX_ROWS: usize = 8;

/// Display of a search: a table of the leading combinations on a terminal, periodic lines elsewhere.
pub(super) struct SearchDisplay {
    bar: ProgressBar,
    prints_lines: bool,
    last_update: Option<Instant>,
    table: String,
    running: u64,
    finished: u64,
}

impl SearchDisplay {
    pub(super) fn new(is_hidden: bool) -> SearchDisplay {
        let is_terminal = std::io::stderr().is_terminal();
        let target = match is_terminal && !is_hidden {
            true => ProgressDrawTarget::stderr_with_hz(8),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed}  {msg}") {
            bar.set_style(style);
        }
        if is_terminal && !is_hidden {
            bar.enable_steady_tick(TICK);
        }
        SearchDisplay {
            bar,
            prints_lines: !is_terminal && !is_hidden,
            last_update: Some(Instant::now()),
            table: String::new(),
            running: 0,
            finished: 0,
        }
    }

    /// Returns a printer that keeps the table intact.
    pub(super) fn printer(&self) -> ProgressPrinter {
        ProgressPrinter::Bar(self.bar.clone())
    }

    /// Updates the counters; returns a line if one is due, so that long rounds print some too.
    pub(super) fn update(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::TrialStarted { .. } => self.running += 1,
            Event::TrialFinished { .. } => {
                self.running = self.running.saturating_sub(1);
                self.finished += 1;
            }
            _ => {}
        }
        self.draw();
        if !self.prints_lines || !self.is_due(LINE_INTERVAL) || self.finished == 0 {
            return None;
        }
        self.last_update = Some(Instant::now());
        Some(self.counters())
    }

    fn is_due(&self, interval: Duration) -> bool {
        self.last_update.is_none_or(|last| last.elapsed() >= interval)
    }

    fn counters(&self) -> String {
        format!("{} finished, {} in flight", count(self.finished, "cell"), self.running)
    }

    /// Updates the ranking after a round; returns a line if one is due.
    pub(super) fn update_round(
        &mut self,
        space: &Space,
        progress: SearchProgress<'_>,
    ) -> Option<String> {
        let interval = if self.prints_lines { LINE_INTERVAL } else { TABLE_INTERVAL };
        if !self.is_due(interval) || (!self.prints_lines && self.bar.is_hidden()) {
            return None;
        }
        self.last_update = Some(Instant::now());
        let ranking = rank_combinations(space, progress.evidence, progress.eliminations);
        let eliminated = progress.eliminations.len();
        let mut line = format!(
            "round {}: {} of {}, {}",
            progress.rounds,
            progress.evidence.cells(),
            count(space.cells() as u64, "cell"),
            search_cost(progress.evidence.spent(), progress.evidence.unknown_costs()),
        );
        if eliminated > 0 {
            line.push_str(&format!(", {eliminated} eliminated"));
        }
        if self.prints_lines {
            if let Some(leader) = ranking.first() {
                let score = leader.adjusted_score.unwrap_or_default();
                line.push_str(&format!("; leader: {} {score:.3} on {}", leader.name, leader.n));
            }
            return Some(line);
        }
        let table = ranking_table(&ranking, None, MAX_ROWS);
        self.table = format!("{line}\n{table}");
        self.draw();
        None
    }

    fn draw(&self) {
        if !self.bar.is_hidden() {
            let message = format!("{}  {}", self.counters(), self.table);
            self.bar.set_message(printable(&message).into_owned());
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
