//! A program is run.

use crate::suite::ProgramTarget;
use crate::trial::{Trials, failed, milliseconds};
use bakeoff_agent::{Ended, Program};
use bakeoff_core::{Attempt, ErrorKind, Timing, TrialError, TrialKey};
use std::collections::BTreeMap;
use std::fs;
use tokio::time::Instant;

/// Most bytes kept of each of a program's outputs.
const MOST_OUTPUT: usize = 1024 * 1024;

impl Trials {
    /// Runs the program in an empty folder of its own, which is gone afterwards.
    pub(crate) async fn run_program(
        &self,
        target: &ProgramTarget,
        prompt: String,
        key: &TrialKey,
    ) -> Attempt {
        let name = blake3::hash(format!("{}\0{}\0{}", key.target, key.case, key.trial).as_bytes());
        let folder = self.folder.work().join(&name.to_hex()[..16]);
        if let Err(error) = fs::create_dir_all(&folder) {
            return failed(
                ErrorKind::Process,
                format!("cannot make {}: {error}", folder.display()),
            );
        }
        let program = Program {
            command: target.command.clone(),
            input: prompt,
            folder: folder.clone(),
            environment: BTreeMap::from([
                ("BAKEOFF_RUN_ID".to_owned(), self.folder.id.as_str().into()),
                ("BAKEOFF_TRIAL_ID".to_owned(), trial_id(key).into()),
            ]),
            timeout: self.suite.settings.timeout,
            most_output: MOST_OUTPUT,
        };
        let started = Instant::now();
        let finished = bakeoff_agent::run(&program, &self.abort).await;
        let latency_ms = milliseconds(started.elapsed());
        // What cannot be removed now is removed with the folder of all of them.
        let _ = tokio::task::spawn_blocking(move || fs::remove_dir_all(folder)).await;
        let finished = match finished {
            Ok(finished) => finished,
            Err(error) if error.is_exhaustion() => {
                return failed(ErrorKind::Process, format!("{error} [EVAL_PARALLEL_EXHAUSTION]"));
            }
            Err(error) => return failed(ErrorKind::Process, error.to_string()),
        };
        let (exit_code, error) = match finished.ended {
            Ended::Exited(code) => (Some(code), None),
            Ended::Signalled(signal) => {
                (None, Some((ErrorKind::Process, format!("ended by signal {signal}"))))
            }
            Ended::TimedOut => {
                let seconds = program.timeout.as_secs_f64();
                (None, Some((ErrorKind::Timeout, format!("still running after {seconds} s"))))
            }
            Ended::Cancelled => (None, Some((ErrorKind::Cancelled, "cancelled".to_owned()))),
        };
        Attempt {
            output: self.redactor.scrub(finished.stdout),
            stderr: self.redactor.scrub(finished.stderr),
            dropped_bytes: finished.dropped_bytes,
            exit_code,
            error: error.map(|(kind, message)| TrialError { kind, message }),
            timing: Timing { latency_ms, ..Timing::default() },
            ..Attempt::default()
        }
    }
}

/// Names the trial to a program and to the gateway.
fn trial_id(key: &TrialKey) -> String {
    format!("{}/{}/{}", key.target, key.case, key.trial)
}
