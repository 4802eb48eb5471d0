//! One trial: ask the target, judge what it produced.

use crate::Error;
use crate::case::Case;
use crate::folder::RunFolder;
use crate::suite::{Artifacts, Suite, Target, TargetKind};
use bakeoff_core::{
    Attempt, ErrorKind, Event, Redactor, Request, Response, TrialError, TrialKey, TrialResult,
};
use bakeoff_llm::Client;
use bakeoff_pace::RunTag;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Everything that trials of a run share.
#[derive(Debug)]
pub(crate) struct Trials {
    pub(crate) suite: Arc<Suite>,
    /// The run, among others that share its pools.
    pub(crate) run: RunTag,
    pub(crate) client: Client,
    pub(crate) redactor: Redactor,
    pub(crate) folder: RunFolder,
    /// Ends what a trial is waiting for.
    pub(crate) stop: CancellationToken,
    /// Ends the trials that are under way.
    pub(crate) abort: CancellationToken,
    /// What happens within trials. Bounded: when it is full, nobody needs one more retry, and a
    /// program that was started is worth waiting for.
    pub(crate) events: mpsc::Sender<Event>,
}

/// A trial that was made. Its result stands even when its files could not be written.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) result: TrialResult,
    pub(crate) written: Result<(), Error>,
}

impl Trials {
    /// Makes one trial and writes its files.
    pub(crate) async fn make(self: Arc<Self>, target: usize, case: Case, trial: u32) -> Made {
        let target = &self.suite.targets[target];
        let key = TrialKey { target: target.name.clone(), case: case.id.clone(), trial };
        let started = Instant::now();
        let started_ms = milliseconds_since_epoch();
        let (mut attempt, trace) = self.attempt(target, &case, &key).await;
        attempt.timing.started_ms = started_ms;
        attempt.timing.elapsed_ms = milliseconds(started.elapsed());
        let result = self.judge(target, &case, key, attempt).await;
        let wanted = self.suite.settings.artifacts;
        if wanted == Artifacts::None {
            return Made { result, written: Ok(()) };
        }
        let trace = trace.to_lines(&result);
        let trials = Arc::clone(&self);
        let write = move || {
            let written = trials.folder.write_trial(wanted, &result, &trace);
            Made { result, written }
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(made) => made,
            Err(broken) => std::panic::resume_unwind(broken.into_panic()),
        }
    }

    async fn attempt(&self, target: &Target, case: &Case, key: &TrialKey) -> (Attempt, Trace) {
        let prompt = match target.prompt.render(&case.fields) {
            Ok(prompt) => prompt,
            Err(reason) => {
                return (
                    failed(ErrorKind::Template, format!("prompt: {reason}")),
                    Trace::default(),
                );
            }
        };
        match &target.kind {
            TargetKind::Model(model) => self.ask_model(model, prompt, case, key).await,
            TargetKind::Program(program) => {
                (self.run_program(program, prompt, key).await, Trace::default())
            }
        }
    }
}

/// What was said, for `trace.jsonl`.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) request: Option<Request>,
    pub(crate) response: Option<Response>,
}

impl Trace {
    fn to_lines(&self, result: &TrialResult) -> Vec<u8> {
        let mut lines = Vec::new();
        let parts = [
            self.request.as_ref().map(|request| serde_json::json!({ "request": request })),
            self.response.as_ref().map(|response| serde_json::json!({ "response": response })),
            result.attempt.error.as_ref().map(|error| serde_json::json!({ "error": error })),
        ];
        for part in parts.into_iter().flatten() {
            lines.extend_from_slice(part.to_string().as_bytes());
            lines.push(b'\n');
        }
        lines
    }
}

/// An attempt that produced nothing to judge.
pub(crate) fn failed(kind: ErrorKind, message: String) -> Attempt {
    Attempt { error: Some(TrialError { kind, message }), ..Attempt::default() }
}

pub(crate) fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn milliseconds_since_epoch() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, milliseconds)
}
