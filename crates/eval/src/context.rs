//! State shared by all trials of a run.

use crate::attempt;
use crate::client::{RunClient, RunLimits, build_client};
use crate::code_check::PythonWorkers;
use crate::folder::RunFolder;
use crate::run::Run;
use crate::stopper::Stopper;
use crate::traffic_log::TrafficLog;
use crate::work_folder::WorkFolder;
use bakeoff_agent::Workers;
use bakeoff_core::{Event, Redactor, TargetName, TrialKey};
use bakeoff_llm::{Client, Network, Retry, Transport};
use bakeoff_pace::RunTag;
use bakeoff_suite::Suite;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Number of runs of this process. Runs that share a pool take turns by their tags.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Events from within trials that may wait to be recorded.
const EVENT_QUEUE: usize = 256;

/// State shared by all trials of a run.
#[derive(Debug)]
pub(crate) struct TrialContext {
    pub(crate) suite: Arc<Suite>,
    /// Identifies the run among those that share its pools.
    pub(crate) run: RunTag,
    pub(crate) client: Arc<Client>,
    /// Transport of the tool `http_fetch`.
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) redactor: Redactor,
    pub(crate) folder: RunFolder,
    /// Folder in which programs work.
    pub(crate) work: Arc<WorkFolder>,
    /// Ends waiting for permits and retries.
    pub(crate) stop: CancellationToken,
    /// Cancels running trials.
    pub(crate) abort: CancellationToken,
    /// Retries of a throttled program, if set on the command line.
    pub(crate) max_program_retries: Option<u32>,
    /// Whether workspaces of trials that did not pass are kept.
    pub(crate) keep: bool,
    /// Persistent workers, by target.
    pub(crate) workers: BTreeMap<TargetName, Workers>,
    /// Workers for `python` checks.
    pub(crate) python: PythonWorkers,
    /// Events from within trials. The channel is bounded: when it is full, retry events are dropped,
    /// and senders of `ProgramStarted` wait.
    pub(crate) events: mpsc::Sender<Event>,
}

impl TrialContext {
    /// Creates the context of a run. Also returns the receiver of trial events, and why the cache could
    /// not be opened.
    pub(crate) fn new(
        run: &Run,
        folder: &RunFolder,
        work: Arc<WorkFolder>,
        traffic: &TrafficLog,
        limits: RunLimits,
        stopper: &Stopper,
    ) -> (Arc<TrialContext>, mpsc::Receiver<Event>, Option<String>) {
        let RunClient { client, redactor, cache_error } =
            build_client(&run.suite, &run.config, folder, traffic, limits);
        let (events, receiver) = mpsc::channel(EVENT_QUEUE);
        let transport = run.config.transport.clone();
        let context = TrialContext {
            suite: Arc::clone(&run.suite),
            run: RunTag(RUNS.fetch_add(1, Ordering::Relaxed)),
            client: Arc::new(client),
            transport: transport.unwrap_or_else(|| Arc::new(Network::default())),
            redactor,
            folder: folder.clone(),
            // A token of its own: a reached deadline is no interrupt.
            stop: stopper.stop.child_token(),
            abort: stopper.abort.clone(),
            max_program_retries: run.config.limits.max_retries,
            keep: run.config.keep,
            workers: attempt::workers(&run.suite, &folder.id, &work),
            work,
            python: PythonWorkers::new(&run.suite),
            events,
        };
        (Arc::new(context), receiver, cache_error)
    }

    /// Emits a retry event; drops it when the channel is full.
    pub(crate) fn emit_retry(&self, key: &TrialKey, retry: &Retry<'_>) {
        let _ = self.events.try_send(Event::Retry {
            key: key.clone(),
            delay_ms: u64::try_from(retry.pause.as_millis()).unwrap_or(u64::MAX),
            reason: format!("{}: {}", retry.model, attempt::describe_failure(retry.failure)),
        });
    }
}
