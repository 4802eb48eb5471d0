//! What is shown while a race goes on: who is asked, who writes, who is done.

use super::shown::Shown;
use crate::printer::{Printer, harmless};
use bakeoff_agent::{AgentEvent, EventReceiver, LoopId, LoopStatus};
use bakeoff_llm::Delta;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often it is told, where there is no terminal, that a model is asked again.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// How often the clocks of a terminal are drawn.
const TICK: Duration = Duration::from_millis(200);

/// Shows events: a line per loop on a terminal, elsewhere a line when one is done.
pub(super) struct Live<'a> {
    shown: &'a Shown,
    printer: &'a Printer,
    json: bool,
    bars: Option<MultiProgress>,
    loops: HashMap<LoopId, Going>,
}

/// A loop that is under way.
struct Going {
    since: Timestamp,
    /// When it was last told that a call is made again.
    told_retry: Option<Instant>,
    characters: usize,
    bar: Option<ProgressBar>,
}

impl<'a> Live<'a> {
    pub(super) fn new(shown: &'a Shown, printer: &'a Printer, json: bool) -> Live<'a> {
        let terminal = std::io::stderr().is_terminal() && !json && !printer.quiet;
        let bars = terminal
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8)));
        Live { shown, printer, json, bars, loops: HashMap::new() }
    }

    /// Listens until nobody tells anything any more.
    pub(super) async fn listen(mut self, mut events: EventReceiver) {
        while let Some(event) = events.recv().await {
            if self.json {
                self.shown.print_json(&event, self.printer);
            } else {
                self.note(&event);
            }
        }
    }

    fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::AgentStart { loop_id, timestamp, .. } => {
                let bar = self.bars.as_ref().map(|bars| {
                    let bar = bars.add(ProgressBar::new_spinner());
                    if let Ok(style) = ProgressStyle::with_template("{prefix}  {msg}  {elapsed}") {
                        bar.set_style(style);
                    }
                    bar.set_prefix(self.shown.name(loop_id));
                    bar.set_message("asked");
                    bar.enable_steady_tick(TICK);
                    bar
                });
                let going = Going { since: *timestamp, told_retry: None, characters: 0, bar };
                self.loops.insert(loop_id.clone(), going);
            }
            AgentEvent::MessageUpdate { loop_id, delta } => {
                let Some(going) = self.loops.get_mut(loop_id) else { return };
                match delta {
                    Delta::Text(text) => going.characters += text.chars().count(),
                    Delta::Thinking(_) if going.characters == 0 => return going.say("thinks"),
                    _ => {}
                }
                going.say(&format!("writes, {} characters", going.characters));
            }
            AgentEvent::Retry { loop_id, delay_ms, reason } => {
                let Some(going) = self.loops.get_mut(loop_id) else { return };
                going.characters = 0;
                let words = match delay_ms {
                    0 => format!("waits for another turn: {}", harmless(reason)),
                    ms => format!("asked again in {:.1} s: {}", *ms as f64 / 1e3, harmless(reason)),
                };
                going.say(&words);
                let is_due = going.told_retry.is_none_or(|told| told.elapsed() >= LINE_INTERVAL);
                if self.bars.is_none() && is_due {
                    going.told_retry = Some(Instant::now());
                    let name = self.shown.name(loop_id);
                    self.say(&format!("{name}: {words}"));
                }
            }
            AgentEvent::ToolExecutionStart { loop_id, call } => {
                if let Some(going) = self.loops.get(loop_id) {
                    going.say(&format!("runs {}", call.name));
                }
            }
            AgentEvent::ProgressMessage { loop_id, text } => {
                self.say(&format!("{}: {}", self.shown.name(loop_id), harmless(text)));
            }
            AgentEvent::AgentEnd { loop_id, status, usage, cost, timestamp } => {
                let Some(going) = self.loops.remove(loop_id) else { return };
                if let (Some(bars), Some(bar)) = (&self.bars, &going.bar) {
                    bar.finish_and_clear();
                    bars.remove(bar);
                }
                // A judge is asked often; what it says is told with the verdict.
                if !self.shown.is_branch(loop_id) && *status == LoopStatus::Completed {
                    return;
                }
                let elapsed = timestamp.duration_since(going.since).unsigned_abs();
                let name = self.shown.name(loop_id);
                self.say(&format!("{name}: {}", Shown::end(status, elapsed, *usage, *cost)));
            }
            _ => {}
        }
    }

    /// A line that stays.
    fn say(&self, line: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| self.printer.talk(line)),
            None => self.printer.talk(line),
        }
    }
}

impl Going {
    fn say(&self, words: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(words.to_owned());
        }
    }
}
