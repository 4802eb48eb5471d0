//! One run of `bakeoff run` against a simulated provider over loopback HTTP, in real time.

use crate::Error;
use crate::provider::SimProcess;
use crate::proxy::Proxy;
use crate::scratch::Scratch;
use bakeoff_sim::Profile;
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Provider, work and limits of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpRun<'a> {
    /// Path of the program `bakeoff`.
    pub(crate) program: &'a Path,
    /// Keys of the provider's profile, as TOML.
    pub(crate) profile: &'a str,
    /// Number of calls.
    pub(crate) calls: u32,
    /// Keys of the suite's `limits`, as TOML.
    pub(crate) limits: &'a str,
    /// Maximum number of streams per connection of an HTTP/2 proxy in front of the provider.
    pub(crate) http2_streams: Option<u32>,
    /// Time after which the run is stopped.
    pub(crate) time_limit: Option<Duration>,
}

/// Results of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HttpFigures {
    /// Wall time, including the start of the program.
    pub(crate) seconds: f64,
    /// Correctly answered calls.
    pub(crate) answered: u64,
    /// Calls without a correct answer.
    pub(crate) lost: u64,
    /// Rejections per answered call.
    pub(crate) rejections_per_success: f64,
    /// Median latency as reported by the run.
    pub(crate) latency_p50_ms: Option<u64>,
    /// Whether the run was stopped at its time limit.
    pub(crate) is_stopped: bool,
}

impl HttpRun<'_> {
    /// Starts the provider, measures the run and stops the provider.
    pub(crate) fn measure(&self) -> Result<HttpFigures, Error> {
        let folder = Scratch::new()?;
        let profile = folder.write("profile.toml", &format!("[[profile]]\n{}\n", self.profile))?;
        let provider = SimProcess::start(self.program, &["--profile", &profile.to_string_lossy()])?;
        let proxy = self
            .http2_streams
            .map(|streams| Proxy::start(&folder, &provider.base_url, streams))
            .transpose()?;
        let base_url = proxy.as_ref().map_or(&provider.base_url, |proxy| &proxy.base_url);
        let suite = folder.write_suite("calls", self.calls, base_url, self.limits)?;
        let mut command = Command::new(self.program);
        command
            .args(["run", "--no-cache", "--no-memory", "--json", "--out"])
            .arg(suite.join("runs"))
            .arg(&suite);
        if let Some(proxy) = &proxy {
            command.env("SSL_CERT_FILE", &proxy.certificate);
        }
        let started = Instant::now();
        let done = run(command, self.program, self.time_limit)?;
        let seconds = started.elapsed().as_secs_f64();
        let stats = provider.stats()?;
        let (answered, latency_p50_ms) = match &done {
            Some(done) => {
                (passed(done)?, done["summary"]["stats"]["latency_p50_ms"]["echo"].as_u64())
            }
            // A stopped run prints no summary. The provider's count may include repeated answers.
            None => (stats["answered"].as_u64().unwrap_or(0).min(self.calls.into()), None),
        };
        let status = reject_status(self.profile);
        let rejected = stats["refused"][status.to_string()].as_u64().unwrap_or(0);
        Ok(HttpFigures {
            seconds,
            answered,
            lost: u64::from(self.calls).saturating_sub(answered),
            rejections_per_success: rejected as f64 / answered.max(1) as f64,
            latency_p50_ms,
            is_stopped: done.is_none(),
        })
    }
}

/// Returns the status of rejections by a provider.
fn reject_status(profile: &str) -> u16 {
    let profiles = Profile::parse_file_text(&format!("[[profile]]\n{profile}\n"));
    let status = profiles.ok().and_then(|profiles| profiles.first()?.reject_status);
    status.unwrap_or(429)
}

/// Runs a command to its end and returns its last event; returns `None` if the time limit stopped it.
fn run(
    mut command: Command,
    program: &Path,
    time_limit: Option<Duration>,
) -> Result<Option<Value>, Error> {
    let error = |source| Error::Io { action: "run", path: program.to_owned(), source };
    let mut child =
        ChildGuard(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(error)?);
    let (sender, receiver) = channel();
    let stdout = child.0.stdout.take();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.map_or(Ok(0), |mut stdout| stdout.read_to_end(&mut bytes));
        // The receiver is gone if the run was stopped.
        let _ = sender.send(read.map(|_| bytes));
    });
    let output = match time_limit {
        Some(limit) => match receiver.recv_timeout(limit) {
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            other => other.ok(),
        },
        None => receiver.recv().ok(),
    };
    let output = output.unwrap_or(Ok(Vec::new())).map_err(error)?;
    let status = child.0.wait().map_err(error)?;
    // Missing trials are reported as a figure, not as an error.
    if !matches!(status.code(), Some(0 | 1 | 3)) {
        return Err(Error::Run(status));
    }
    let text = String::from_utf8_lossy(&output);
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).map(Some).map_err(|error| Error::Summary(error.to_string()))
}

/// Returns the number of passed trials of the last event.
fn passed(done: &Value) -> Result<u64, Error> {
    let passed = done["summary"]["targets"][0]["pass_count"].as_u64();
    passed.ok_or_else(|| Error::Summary(done.to_string().chars().take(200).collect()))
}

/// Child process that is killed on drop.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Both calls fail only if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
