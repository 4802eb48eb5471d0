//! Checks that the user's own code makes: programs, and Python in workers that stay.

use crate::attempt::trial_id;
use crate::judge::{Judge, Judged, cannot_say};
use bakeoff_agent::{Ended, Identity, Program, WorkerError, WorkerProgram, Workers};
use bakeoff_check::{Finding, ProgramCheck, PythonCheck, PythonSource, read_code_verdict};
use bakeoff_core::{ErrorKind, TrialError, TrialKey};
use bakeoff_suite::PYTHON_PROGRAM;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Most bytes of a verdict.
const MOST_OUTPUT: usize = 1 << 20;

/// Python is quick; more workers than this would only take memory.
const MOST_WORKERS: usize = 4;

/// Reads a question per line and prints a verdict per line.
const WORKER: &str = include_str!("worker.py");

/// Workers for `python` checks. None is started before the first question, on behalf of whose run
/// they all are.
#[derive(Debug)]
pub struct Python {
    folder: PathBuf,
    workers: OnceLock<Workers>,
}

impl Python {
    /// Workers that run in this folder.
    pub fn new(folder: &Path) -> Python {
        Python { folder: place(folder), workers: OnceLock::new() }
    }

    fn workers(&self, identity: Option<&Identity>) -> &Workers {
        self.workers.get_or_init(|| {
            let variables = identity.into_iter().flat_map(Identity::variables);
            let program = WorkerProgram {
                command: [PYTHON_PROGRAM, "-u", "-c", WORKER].map(Into::into).to_vec(),
                folder: self.folder.clone(),
                environment: variables
                    .map(|(name, value)| (name.to_owned(), value.into()))
                    .collect(),
                most_answer: MOST_OUTPUT,
            };
            let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            let count = NonZeroUsize::new(cores.min(MOST_WORKERS)).unwrap_or(NonZeroUsize::MIN);
            Workers::new(program, count)
        })
    }
}

/// The suite's folder; that of a suite in the current one has an empty name.
fn place(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }
}

/// All that was produced, and the case.
fn facts(judged: Judged<'_>) -> Result<Value, TrialError> {
    let json = |error: serde_json::Error| cannot_say(format!("cannot be written as JSON: {error}"));
    let mut facts = serde_json::to_value(judged.attempt).map_err(json)?;
    facts["case"] = serde_json::to_value(&judged.case.fields).map_err(json)?;
    facts["key"] = serde_json::to_value(judged.key).map_err(json)?;
    Ok(facts)
}

impl Judge<'_> {
    /// Whose programs those of checks are; for one trial, or for several.
    fn identity(&self, key: Option<&TrialKey>) -> Option<Identity> {
        let run = self.run_id?.to_string();
        Some(Identity { run, trial: key.map(trial_id), part: None })
    }

    pub(crate) async fn ask_program(
        &self,
        check: &ProgramCheck,
        judged: Judged<'_>,
    ) -> Result<Finding, TrialError> {
        let program = Program {
            command: check.command.iter().map(Into::into).collect(),
            input: facts(judged)?.to_string(),
            folder: place(self.suite.path.parent().unwrap_or(Path::new(""))),
            environment: BTreeMap::new(),
            identity: self.identity(Some(judged.key)),
            timeout: check.timeout,
            most_output: MOST_OUTPUT,
        };
        let finished = bakeoff_agent::run(&program, &self.cancel)
            .await
            .map_err(|error| cannot_say(error.to_string()))?;
        let said = match finished.stderr.trim() {
            "" => String::new(),
            text => format!(": {}", tail(text)),
        };
        match finished.ended {
            Ended::Exited(0) => read_code_verdict(&finished.stdout).map_err(cannot_say),
            Ended::Exited(code) => {
                Err(cannot_say(format!("the program ended with exit code {code}{said}")))
            }
            Ended::Signalled(signal) => {
                Err(cannot_say(format!("the program was ended by signal {signal}{said}")))
            }
            Ended::TimedOut => {
                let seconds = check.timeout.as_secs_f64();
                Err(cannot_say(format!("the program was still running after {seconds} s{said}")))
            }
            Ended::Cancelled => {
                Err(TrialError { kind: ErrorKind::Cancelled, message: "cancelled".to_owned() })
            }
        }
    }

    pub(crate) async fn ask_python(
        &self,
        check: &PythonCheck,
        judged: Judged<'_>,
    ) -> Result<Finding, TrialError> {
        let facts = facts(judged)?;
        let question: Value = match &check.source {
            PythonSource::Expression(expression) => {
                json!({ "expression": expression, "attempt": facts })
            }
            PythonSource::Function { file, name } => {
                json!({ "file": file, "function": name, "attempt": facts })
            }
        };
        let question = question.to_string();
        let workers = self.python.workers(self.identity(None).as_ref());
        let asked = workers.ask(&question, check.timeout, &self.cancel);
        let answer = asked.await.map_err(|error| match error {
            WorkerError::Cancelled => {
                TrialError { kind: ErrorKind::Cancelled, message: "cancelled".to_owned() }
            }
            error => cannot_say(format!("Python: {error}")),
        })?;
        let answer: Value = serde_json::from_str(&answer)
            .map_err(|error| cannot_say(format!("Python: not JSON: {error}")))?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(cannot_say(format!("Python: {}", tail(error)))),
            None => read_code_verdict(&answer.to_string()).map_err(cannot_say),
        }
    }
}

/// The end of a text, where programs say what went wrong.
fn tail(text: &str) -> String {
    const MOST: usize = 1000;
    let skipped = text.chars().count().saturating_sub(MOST);
    let end: String = text.chars().skip(skipped).collect();
    if skipped > 0 { format!("…{end}") } else { end }
}
