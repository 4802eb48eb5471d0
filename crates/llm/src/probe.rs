//! Measurement of the rate and concurrency limits of a model.
//!
//! A probe sends requests until the provider rejects some, and determines whether the rejections depend on
//! the number of requests in flight or on the number per time. A state machine (`state`) decides what to send
//! next, and a pure function (`fit`) compares the outcomes with those that each kind of limit predicts. This
//! module adds the clock and the client.

mod bounds;
mod bucket;
mod conclusion;
mod confirmation;
mod event;
mod evidence;
mod experiment;
mod finding;
mod fit;
mod headers;
mod level;
mod pacer;
mod recommendation;
mod sample;
mod search;
mod stage;
mod state;
#[cfg(test)]
mod tests;
mod threshold;
mod window;

pub use finding::{LimitFinding, ProbeStop};
pub use headers::HeaderLimit;
pub use level::{LevelPurpose, ProbeLevel};
pub use recommendation::{Recommendation, connections_for_rate};

use crate::{Call, CallContext, CallError, Client, Model, quota};
use bakeoff_core::{ErrorKind, Message, NanoDollars, Request, Usage};
use bakeoff_pace::{Limits, Strategy};
use bounds::ProbeBounds;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use headers::{HeaderLimits, seconds_until_restored};
use sample::SampleOutcome;
use stage::NextAction;
use state::ProbeState;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Bounds and requests of a probe.
///
/// ```
/// use bakeoff_llm::probe::ProbeConfig;
/// use std::time::Duration;
///
/// let config = ProbeConfig::default().max_requests(200).max_time(Duration::from_secs(60));
/// # drop(config);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProbeConfig {
    /// Maximum number of requests.
    pub max_requests: u32,
    /// Maximum number of requests in flight.
    pub max_connections: u32,
    /// Maximum duration; requests in flight at its end may still finish.
    pub max_time: Duration,
    /// Maximum cost. It has no effect when the price of the model is unknown.
    pub max_cost: Option<NanoDollars>,
    /// Prompt; each request appends its own number.
    pub prompt: String,
    /// Maximum output tokens per request.
    pub max_tokens: u64,
    /// Timeout of one request.
    pub attempt_timeout: Duration,
    /// Stops the probe when cancelled: requests in flight finish, no other is sent.
    pub stop: CancellationToken,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        ProbeConfig {
            max_requests: 1000,
            max_connections: 256,
            max_time: Duration::from_secs(120),
            max_cost: None,
            prompt: "Repeat this number and say nothing else:".to_owned(),
            max_tokens: 16,
            attempt_timeout: Duration::from_secs(60),
            stop: CancellationToken::new(),
        }
    }
}

impl ProbeConfig {
    /// Sets the maximum number of requests.
    #[must_use]
    pub fn max_requests(mut self, max_requests: u32) -> Self {
        self.max_requests = max_requests;
        self
    }

    /// Sets the maximum number of requests in flight.
    #[must_use]
    pub fn max_connections(mut self, max_connections: u32) -> Self {
        self.max_connections = max_connections;
        self
    }

    /// Sets the maximum duration.
    #[must_use]
    pub fn max_time(mut self, max_time: Duration) -> Self {
        self.max_time = max_time;
        self
    }

    /// Sets the maximum cost.
    #[must_use]
    pub fn max_cost(mut self, max_cost: NanoDollars) -> Self {
        self.max_cost = Some(max_cost);
        self
    }

    /// Sets the prompt.
    #[must_use]
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// Sets the maximum output tokens per request.
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = max_tokens;
        self
    }

    /// Sets the timeout of one request.
    #[must_use]
    pub fn attempt_timeout(mut self, attempt_timeout: Duration) -> Self {
        self.attempt_timeout = attempt_timeout;
        self
    }

    /// Returns the maximum usage of one request, with the prompt at four characters per token.
    pub fn usage(&self) -> Usage {
        let input = (self.prompt.chars().count() as u64 + 5).div_ceil(4);
        Usage { input, output: self.max_tokens, ..Usage::default() }
    }

    fn request(&self, number: u64) -> Request {
        let prompt = format!("{} {number}", self.prompt);
        Request {
            messages: vec![Message::user(prompt)],
            max_tokens: Some(self.max_tokens),
            ..Request::default()
        }
    }
}

/// Result of a probe.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ProbeReport {
    /// Levels in order.
    pub levels: Vec<ProbeLevel>,
    /// Limit that was found.
    pub limit: LimitFinding,
    /// Recommended settings, if a limit or a lower bound is known.
    pub recommendation: Option<Recommendation>,
    /// Whether the recommended settings were tried without a rejection.
    pub is_confirmed: bool,
    /// Reason of an early end.
    pub stop: Option<ProbeStop>,
    /// Limits from response headers.
    pub header_limits: Vec<HeaderLimit>,
    /// Longest wait that a rejection asked for.
    pub longest_wait: Option<Duration>,
    /// Message of the last failure that was not a rejection for rate reasons.
    pub last_failure: Option<String>,
    /// Number of requests sent.
    pub requests: u32,
    /// Median latency without overload, in seconds.
    pub seconds_per_request: f64,
    /// Latency that nine of ten requests do not exceed, in seconds.
    pub slow_seconds_per_request: f64,
    /// Mean tokens of an accepted request.
    pub tokens_per_request: f64,
    /// Cost; `None` when the price is unknown.
    pub cost: Option<NanoDollars>,
    /// Duration in seconds.
    pub seconds: f64,
}

impl ProbeReport {
    /// Creates a report without requests, for tests of code that shows reports.
    pub fn new(limit: LimitFinding) -> ProbeReport {
        ProbeReport {
            levels: Vec::new(),
            limit,
            recommendation: None,
            is_confirmed: false,
            stop: None,
            header_limits: Vec::new(),
            longest_wait: None,
            last_failure: None,
            requests: 0,
            seconds_per_request: 0.0,
            slow_seconds_per_request: 0.0,
            tokens_per_request: 0.0,
            cost: None,
            seconds: 0.0,
        }
    }
}

/// Measures the limits of a model. `on_level` receives each finished level.
///
/// # Errors
///
/// The first failure that is neither a rejection nor transient, such as an invalid key.
pub fn probe<'a>(
    client: &'a Client,
    model: &'a Model,
    config: &'a ProbeConfig,
    on_level: &'a mut (dyn FnMut(&ProbeLevel) + Send),
) -> BoxFuture<'a, Result<ProbeReport, CallError>> {
    Box::pin(run_probe(client, model, config, on_level))
}

async fn run_probe(
    client: &Client,
    model: &Model,
    config: &ProbeConfig,
    on_level: &mut (dyn FnMut(&ProbeLevel) + Send),
) -> Result<ProbeReport, CallError> {
    // No pacing and no retries: the probe decides when to send, and must see every rejection.
    let unpaced = Limits::new(Strategy::None).max_retries(0);
    let model = model.clone().with_limits(unpaced.attempt_timeout(config.attempt_timeout));
    let started = Instant::now();
    let mut state = ProbeState::new(ProbeBounds {
        max_requests: config.max_requests,
        max_connections: config.max_connections.max(1),
        max_seconds: config.max_time.as_secs_f64(),
    });
    let mut totals = ProbeTotals::new(&model, config);
    let mut in_flight = FuturesUnordered::new();
    let (mut number, mut emitted_levels) = (0_u64, 0);
    loop {
        if config.stop.is_cancelled() {
            state.end(ProbeStop::Interrupted);
        }
        let next = state.next(started.elapsed().as_secs_f64());
        state.levels.iter().skip(emitted_levels).for_each(&mut *on_level);
        emitted_levels = state.levels.len();
        let until = match next {
            NextAction::Done => break,
            NextAction::Send if totals.exceeds_budget(state.in_flight_count()) => {
                state.end(ProbeStop::Cost);
                continue;
            }
            NextAction::Send => {
                let (request, model) = (config.request(number), &model);
                state.record_sent(started.elapsed().as_secs_f64(), number);
                in_flight.push(async move {
                    (number, client.call(model, request, &CallContext::default()).await)
                });
                number += 1;
                continue;
            }
            // Rounded up, so that the state machine does not ask for the same wait again.
            NextAction::WaitUntil(time) => {
                Duration::try_from_secs_f64(time).ok().map(|time| time + Duration::from_micros(1))
            }
            NextAction::WaitForOutcome => None,
        };
        let pause = async {
            match until.and_then(|until| started.checked_add(until)) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some((number, result)) = in_flight.next() => {
                let now = started.elapsed().as_secs_f64();
                totals.record(&mut state, now, number, result)?;
            }
            () = pause => {}
            () = config.stop.cancelled(), if !config.stop.is_cancelled() => {}
        }
    }
    Ok(totals.into_report(state, started.elapsed().as_secs_f64()))
}

/// Cost, tokens and header limits accumulated by a probe.
struct ProbeTotals {
    headers: HeaderLimits,
    longest_wait: Option<Duration>,
    last_failure: Option<String>,
    max_cost: Option<NanoDollars>,
    /// Maximum cost of one request; `None` when the price is unknown.
    request_cost: Option<NanoDollars>,
    cost: Option<NanoDollars>,
    accepted: u64,
    tokens: u64,
}

impl ProbeTotals {
    fn new(model: &Model, config: &ProbeConfig) -> ProbeTotals {
        let request_cost = model.cost(&config.usage());
        ProbeTotals {
            headers: HeaderLimits::default(),
            longest_wait: None,
            last_failure: None,
            max_cost: config.max_cost,
            request_cost,
            cost: request_cost.map(|_| NanoDollars(0)),
            accepted: 0,
            tokens: 0,
        }
    }

    /// Whether one more request could exceed the maximum cost.
    fn exceeds_budget(&self, in_flight: usize) -> bool {
        let (Some(max_cost), Some(cost), Some(request_cost)) =
            (self.max_cost, self.cost, self.request_cost)
        else {
            return false;
        };
        let unpaid = i64::try_from(in_flight).unwrap_or(i64::MAX).saturating_add(1);
        cost.0.saturating_add(request_cost.0.saturating_mul(unpaid)) > max_cost.0
    }

    /// Records the result of a request here and in the state machine.
    fn record(
        &mut self,
        state: &mut ProbeState,
        now: f64,
        number: u64,
        result: Result<Call, CallError>,
    ) -> Result<(), CallError> {
        match result {
            Ok(call) => {
                let tokens = call.response.usage.total();
                self.accepted += 1;
                self.tokens += tokens;
                let both = self.cost.zip(call.cost);
                self.cost = both.map(|(sum, cost)| NanoDollars(sum.0.saturating_add(cost.0)));
                let quota = quota::parse(&call.headers, None);
                self.headers.record(&quota);
                let reset = seconds_until_restored(&quota);
                state.record_outcome(now, number, SampleOutcome::Accepted { tokens }, None, reset);
            }
            Err(error) => {
                let failure = &error.failure;
                match failure.kind {
                    ErrorKind::RateLimit => {
                        let quota = quota::parse(&failure.headers, failure.retry_after);
                        self.headers.record(&quota);
                        self.longest_wait = self.longest_wait.max(quota.retry_after);
                        let wait = quota.retry_after.map(|wait| wait.as_secs_f64());
                        let reset = seconds_until_restored(&quota);
                        state.record_outcome(now, number, SampleOutcome::Rejected, wait, reset);
                    }
                    ErrorKind::Transient | ErrorKind::Timeout | ErrorKind::MalformedResponse => {
                        self.last_failure = Some(error.to_string());
                        state.record_outcome(now, number, SampleOutcome::Failed, None, None);
                    }
                    ErrorKind::Quota => {
                        self.last_failure = Some(error.to_string());
                        state.record_outcome(now, number, SampleOutcome::Rejected, None, None);
                        state.end(ProbeStop::Quota);
                    }
                    _ => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn into_report(self, state: ProbeState, seconds: f64) -> ProbeReport {
        let seconds_per_request = state.latency();
        let slow_seconds_per_request = state.slow_latency();
        ProbeReport {
            recommendation: Recommendation::new(
                state.limit,
                slow_seconds_per_request,
                &self.headers,
            ),
            limit: state.limit,
            is_confirmed: state.is_confirmed,
            stop: state.stop,
            header_limits: self.headers.0,
            longest_wait: self.longest_wait,
            last_failure: self.last_failure,
            requests: state.requests(),
            seconds_per_request,
            slow_seconds_per_request,
            tokens_per_request: match self.accepted {
                0 => 0.0,
                accepted => self.tokens as f64 / accepted as f64,
            },
            cost: self.cost,
            seconds,
            levels: state.levels,
        }
    }
}
