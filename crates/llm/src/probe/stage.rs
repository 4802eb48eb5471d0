//! Stages of a probe, and when each one sends its next request.

use super::confirmation::Confirmation;
use super::experiment::Experiment;
use super::level::LevelPurpose;
use super::pacer::MeasurePacer;

/// Maximum number of requests that a ramp level sends beyond its connections, so that it lasts longer than
/// one burst.
const MAX_EXTRA_REQUESTS: u32 = 8;

/// Next action of a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NextAction {
    /// Send a request.
    Send,
    /// Wait until this time, or until a request finishes.
    WaitUntil(f64),
    /// Wait until a request finishes.
    WaitForOutcome,
    /// The probe is finished.
    Done,
}

/// Stage of a probe.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProbeStage {
    /// Keeps this number of requests in flight.
    Ramp {
        connections: u32,
    },
    /// Polls the provider just above the limit.
    Measure(MeasurePacer),
    Experiment(Experiment),
    Confirm(Confirmation),
    Over,
}

/// Progress of the current level, from which its stage chooses the next action. Times are seconds since the
/// start of the probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelProgress {
    pub(super) now: f64,
    pub(super) sent: u32,
    pub(super) last_sent: f64,
    pub(super) in_flight: u32,
    pub(super) rejected: u32,
    /// Time in flight after which a request counts as accepted, in seconds.
    pub(super) acceptance_delay: f64,
    /// Maximum number of requests in flight.
    pub(super) max_connections: u32,
}

impl ProbeStage {
    /// Returns the next action, or `None` at the end of the level.
    pub(super) fn next(&mut self, level: LevelProgress) -> Option<NextAction> {
        match self {
            ProbeStage::Ramp { connections } => {
                let requests = *connections + (*connections).min(MAX_EXTRA_REQUESTS);
                let is_over = level.sent >= requests || level.rejected > *connections / 8;
                (!is_over).then(|| level.send_at(f64::NEG_INFINITY, *connections))
            }
            ProbeStage::Measure(pacer) => Some(pacer.next(
                level.now,
                level.in_flight,
                level.acceptance_delay,
                level.max_connections,
            )),
            ProbeStage::Experiment(Experiment { burst, spacing, requests }) => {
                let is_burst = level.sent < *burst;
                let at = if is_burst { f64::NEG_INFINITY } else { level.last_sent + *spacing };
                let is_over = level.sent >= *requests || level.rejected > 0;
                (!is_over).then(|| level.send_at(at, level.max_connections))
            }
            ProbeStage::Confirm(Confirmation { connections, spacing, requests, .. }) => {
                let at = level.last_sent + spacing.unwrap_or(0.0);
                let is_over = level.sent >= *requests || level.rejected > 0;
                (!is_over).then(|| level.send_at(at, *connections))
            }
            ProbeStage::Over => None,
        }
    }

    /// Whether the level is a confirmation, and enough requests were sent in `seconds`.
    pub(super) fn is_confirmed(&self, sent: u32, seconds: f64) -> bool {
        matches!(self, ProbeStage::Confirm(confirmation) if confirmation.is_complete(sent, seconds))
    }

    /// Returns purpose, requests in flight and interval of the level, or `None` after the last one.
    pub(super) fn load(&self) -> Option<(LevelPurpose, u32, Option<f64>)> {
        match self {
            ProbeStage::Ramp { connections } => Some((LevelPurpose::Ramp, *connections, None)),
            ProbeStage::Measure(pacer) => Some((LevelPurpose::Measure, pacer.max_in_flight, None)),
            ProbeStage::Experiment(experiment) => {
                Some((LevelPurpose::Measure, experiment.burst, Some(experiment.spacing)))
            }
            ProbeStage::Confirm(Confirmation { connections, spacing, .. }) => {
                Some((LevelPurpose::Confirm, *connections, *spacing))
            }
            ProbeStage::Over => None,
        }
    }
}

impl LevelProgress {
    /// Returns the action that sends a request at a time, with at most `connections` in flight.
    fn send_at(&self, time: f64, connections: u32) -> NextAction {
        if self.in_flight >= connections {
            NextAction::WaitForOutcome
        } else if time > self.now {
            NextAction::WaitUntil(time)
        } else {
            NextAction::Send
        }
    }
}
