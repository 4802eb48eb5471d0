//! Progress of a race on standard error: one bar per branch or judge on a terminal, lines elsewhere.

use super::answer_stream::AnswerStream;
use super::render::{RaceRenderer, loop_end};
use crate::printer::Printer;
use crate::progress::ProgressPrinter;
use bakeoff_agent::{AgentEvent, EventReceiver, LoopId, LoopStatus};
use bakeoff_core::{Message, one_line};
use bakeoff_llm::Delta;
use chrono::{DateTime, Utc};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Minimum interval of retry messages per loop without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Interval at which the clocks are redrawn.
const TICK: Duration = Duration::from_millis(200);

/// Display of the events of a race.
pub(super) struct RaceDisplay<'a> {
    renderer: &'a RaceRenderer,
    printer: &'a Printer,
    bars: Option<MultiProgress>,
    loops: HashMap<LoopId, ActiveLoop>,
    /// Set if the answer is printed as it arrives.
    stream: Option<AnswerStream>,
}

/// A branch or judge that is running.
struct ActiveLoop {
    since: DateTime<Utc>,
    /// Time of the last retry message.
    last_retry: Option<Instant>,
    characters: usize,
    bar: Option<ProgressBar>,
}

impl<'a> RaceDisplay<'a> {
    /// With `streams`, the answer of the only branch is printed as it arrives.
    pub(super) fn new(
        renderer: &'a RaceRenderer,
        printer: &'a Printer,
        streams: bool,
    ) -> RaceDisplay<'a> {
        let has_bars = std::io::stderr().is_terminal() && printer.shows_progress();
        let bars = has_bars
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8)));
        let stream = streams.then(AnswerStream::default);
        RaceDisplay { renderer, printer, bars, loops: HashMap::new(), stream }
    }

    /// Returns a printer that keeps the bars intact.
    pub(super) fn printer(&self) -> ProgressPrinter {
        self.bars.clone().map_or(ProgressPrinter::Stderr, ProgressPrinter::Bars)
    }

    /// Displays events until the race drops its sender.
    pub(super) async fn listen(mut self, mut events: EventReceiver) {
        while let Some(event) = events.recv().await {
            self.printer.agent_event(&event);
            if !self.printer.is_json() {
                self.stream(&event);
                self.update(&event);
            }
        }
    }

    fn stream(&mut self, event: &AgentEvent) {
        let Some(stream) = &mut self.stream else { return };
        let text = match event {
            AgentEvent::MessageUpdate { delta: Delta::Text(text), loop_id } => {
                // A bar on the same terminal would overwrite the answer.
                let active = self.loops.get_mut(loop_id);
                if let Some(bar) = active.and_then(|active| active.bar.take()) {
                    bar.finish_and_clear();
                }
                stream.push(text)
            }
            AgentEvent::Retry { .. } => return stream.restart(),
            AgentEvent::Lagged { .. } => return stream.skip(),
            AgentEvent::MessageEnd { message, .. } => match &**message {
                Message::Assistant { .. } => stream.complete(&message.text()),
                _ => return,
            },
            AgentEvent::MessageAborted { .. } => stream.abort(),
            _ => return,
        };
        self.printer.answer_piece(&text);
    }

    fn update(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::AgentStart { loop_id, timestamp, .. } => {
                let bar = self.bars.as_ref().map(|bars| {
                    let bar = bars.add(ProgressBar::new_spinner());
                    if let Ok(style) = ProgressStyle::with_template("{prefix}  {msg}  {elapsed}") {
                        bar.set_style(style);
                    }
                    bar.set_prefix(one_line(&self.renderer.name(loop_id)));
                    bar.set_message("waiting");
                    bar.enable_steady_tick(TICK);
                    bar
                });
                let active = ActiveLoop { since: *timestamp, last_retry: None, characters: 0, bar };
                self.loops.insert(loop_id.clone(), active);
            }
            AgentEvent::MessageUpdate { loop_id, delta } => {
                let Some(active) = self.loops.get_mut(loop_id) else { return };
                match delta {
                    Delta::Text(text) => active.characters += text.chars().count(),
                    Delta::Thinking(_) if active.characters == 0 => {
                        return active.set_status("thinking");
                    }
                    _ => {}
                }
                active.set_status(&format!("writing, {} characters", active.characters));
            }
            AgentEvent::Retry { loop_id, delay_ms, reason } => {
                let Some(active) = self.loops.get_mut(loop_id) else { return };
                active.characters = 0;
                let reason = one_line(reason);
                let status = match delay_ms {
                    0 => format!("requeued: {reason}"),
                    ms => format!("retrying in {:.1} s: {reason}", *ms as f64 / 1e3),
                };
                active.set_status(&status);
                let is_due = active.last_retry.is_none_or(|last| last.elapsed() >= LINE_INTERVAL);
                if self.bars.is_none() && is_due {
                    active.last_retry = Some(Instant::now());
                    let name = self.renderer.name(loop_id);
                    self.print(&format!("{name}: {status}"));
                }
            }
            AgentEvent::ToolExecutionStart { loop_id, call } => {
                if let Some(active) = self.loops.get(loop_id) {
                    active.set_status(&format!("running {}", call.name));
                }
            }
            AgentEvent::JudgeRound { loop_ids, round, max_rounds } => {
                if let Some(loop_id) = loop_ids.first() {
                    let name = self.renderer.name(loop_id);
                    self.print(&format!("{name}: round {round} of {max_rounds}"));
                }
            }
            AgentEvent::ProgressMessage { loop_id, text } => {
                self.print(&format!("{}: {}", self.renderer.name(loop_id), one_line(text)));
            }
            AgentEvent::AgentEnd { loop_id, status, usage, cost, timestamp } => {
                let Some(active) = self.loops.remove(loop_id) else { return };
                if let (Some(bars), Some(bar)) = (&self.bars, &active.bar) {
                    bar.finish_and_clear();
                    bars.remove(bar);
                }
                // A judge makes many calls; the verdict has its reasons.
                if !self.renderer.is_branch(loop_id) && *status == LoopStatus::Completed {
                    return;
                }
                let elapsed = (*timestamp - active.since).to_std().unwrap_or_default();
                let name = self.renderer.name(loop_id);
                self.print(&format!("{name}: {}", loop_end(status, elapsed, *usage, *cost)));
            }
            _ => {}
        }
    }

    /// Prints a line above the bars.
    fn print(&self, line: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| self.printer.message(line)),
            None => self.printer.message(line),
        }
    }
}

impl ActiveLoop {
    fn set_status(&self, status: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(one_line(status));
        }
    }
}
