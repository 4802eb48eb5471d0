//! Checks by the user's own code: programs, and Python in persistent workers.

use crate::attempt::trial_id;
use crate::check_runner::{JudgeInput, check_error};
use bakeoff_agent::{ExitReason, Identity, Program, WorkerError, WorkerProgram, Workers};
use bakeoff_check::{CheckFinding, ProgramCheck, PythonCheck, PythonSource, parse_code_result};
use bakeoff_core::{ErrorKind, RunId, TrialError, TrialKey};
use bakeoff_suite::{PYTHON_PROGRAM, Suite};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tokio_util::sync::CancellationToken;

/// Maximum size of a verdict.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// Maximum number of workers: Python checks are fast, and each worker takes memory.
const MAX_WORKERS: usize = 4;

/// Characters of an error message that are kept.
const MAX_ERROR_CHARS: usize = 1000;

/// Python program that reads one request and prints one verdict per line.
const WORKER: &str = include_str!("worker.py");

/// Workers for `python` checks. They are started with the first check and carry the id of its run.
#[derive(Debug)]
pub struct PythonWorkers {
    folder: PathBuf,
    /// Added to the environment of this process.
    environment: BTreeMap<String, OsString>,
    workers: OnceLock<Workers>,
}

impl PythonWorkers {
    /// Creates the workers of a suite, which run in its folder.
    pub fn new(suite: &Suite) -> PythonWorkers {
        PythonWorkers {
            folder: suite_folder(suite),
            environment: suite.env_file.variables().collect(),
            workers: OnceLock::new(),
        }
    }

    fn workers(&self, identity: Option<&Identity>) -> &Workers {
        self.workers.get_or_init(|| {
            let variables = identity.into_iter().flat_map(Identity::variables);
            let variables = variables.map(|(name, value)| (name.to_owned(), value.into()));
            let command = [PYTHON_PROGRAM, "-u", "-c", WORKER].map(Into::into).to_vec();
            let mut program = WorkerProgram::new(command, &self.folder, MAX_OUTPUT_BYTES);
            program.environment = self.environment.clone();
            program.environment.extend(variables);
            let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            let count = NonZeroUsize::new(cores.min(MAX_WORKERS)).unwrap_or(NonZeroUsize::MIN);
            Workers::new(program, count)
        })
    }
}

/// Returns the folder of a suite; `.` for a suite in the current directory.
fn suite_folder(suite: &Suite) -> PathBuf {
    match suite.path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns the attempt and its case as JSON.
fn facts(input: JudgeInput<'_>) -> Result<Value, TrialError> {
    let json =
        |error: serde_json::Error| check_error(format!("cannot be written as JSON: {error}"));
    let mut facts = serde_json::to_value(input.attempt).map_err(json)?;
    facts["case"] = serde_json::to_value(&input.case.fields).map_err(json)?;
    facts["key"] = serde_json::to_value(input.key).map_err(json)?;
    Ok(facts)
}

/// Runs checks by the user's code.
pub(crate) struct CodeJudge<'a> {
    pub(crate) suite: &'a Suite,
    pub(crate) run_id: Option<&'a RunId>,
    pub(crate) python: &'a PythonWorkers,
    pub(crate) cancel: &'a CancellationToken,
}

impl CodeJudge<'_> {
    /// Returns the identity of a check's process, for one trial or for all.
    fn identity(&self, key: Option<&TrialKey>) -> Option<Identity> {
        let run = self.run_id?.to_string();
        Some(Identity { run, trial: key.map(trial_id), part: None })
    }

    pub(crate) async fn run_program(
        &self,
        check: &ProgramCheck,
        min_score: Option<f64>,
        input: JudgeInput<'_>,
    ) -> Result<CheckFinding, TrialError> {
        let command = check.command.iter().map(Into::into).collect();
        let folder = suite_folder(self.suite);
        let program = Program::new(command, folder, check.timeout, MAX_OUTPUT_BYTES)
            .input(facts(input)?.to_string())
            .environment(self.suite.env_file.variables().collect())
            .identity(self.identity(Some(input.key)));
        let finished = bakeoff_agent::run(&program, self.cancel)
            .await
            .map_err(|error| check_error(error.to_string()))?;
        let stderr = match finished.stderr.trim() {
            "" => String::new(),
            text => format!(": {}", tail(text)),
        };
        match finished.exit_reason {
            ExitReason::Exited(0) if finished.stdout.trim().is_empty() => {
                let expected = r#"expected a JSON object such as {"passed": true}"#;
                Err(check_error(format!("the program printed nothing; {expected}{stderr}")))
            }
            ExitReason::Exited(0) => parse_code_result(&finished.stdout, min_score)
                .map_err(|error| check_error(error.to_string())),
            ExitReason::Exited(code) => {
                Err(check_error(format!("the program exited with code {code}{stderr}")))
            }
            ExitReason::Signalled(signal) => {
                Err(check_error(format!("the program was ended by signal {signal}{stderr}")))
            }
            ExitReason::TimedOut => {
                let seconds = check.timeout.as_secs_f64();
                Err(check_error(format!("the program was still running after {seconds} s{stderr}")))
            }
            ExitReason::Cancelled => {
                Err(TrialError { kind: ErrorKind::Cancelled, message: "cancelled".to_owned() })
            }
        }
    }

    pub(crate) async fn run_python(
        &self,
        check: &PythonCheck,
        min_score: Option<f64>,
        input: JudgeInput<'_>,
    ) -> Result<CheckFinding, TrialError> {
        let facts = facts(input)?;
        let request: Value = match &check.source {
            PythonSource::Expression(expression) => {
                json!({ "expression": expression, "attempt": facts })
            }
            PythonSource::Function { file, name } => {
                json!({ "file": file, "function": name, "attempt": facts })
            }
        };
        let request = request.to_string();
        let workers = self.python.workers(self.identity(None).as_ref());
        let reply = workers.request(&request, check.timeout, self.cancel);
        let reply = reply.await.map_err(|error| match error {
            WorkerError::Cancelled => {
                TrialError { kind: ErrorKind::Cancelled, message: "cancelled".to_owned() }
            }
            error => check_error(format!("Python: {error}")),
        })?;
        let reply: Value = serde_json::from_str(&reply)
            .map_err(|error| check_error(format!("Python: not JSON: {error}")))?;
        match reply.get("error").and_then(Value::as_str) {
            Some(error) => Err(check_error(format!("Python: {}", tail(error)))),
            None => parse_code_result(&reply.to_string(), min_score)
                .map_err(|error| check_error(error.to_string())),
        }
    }
}

/// Returns the end of a text, which usually names the error.
fn tail(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(MAX_ERROR_CHARS);
    let end: String = text.chars().skip(skipped).collect();
    if skipped > 0 { format!("…{end}") } else { end }
}
